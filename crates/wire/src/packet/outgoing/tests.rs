use super::*;
use crate::{
    ConnectionId,
    packet::{
        LongHeader, LongKind, Packet, PacketNumber, PacketNumberLen, Packets, ShortHeader, Version,
        tests::{CONFIG, TAG_LEN, id},
    },
};

const LENGTHS: [PacketNumberLen; 4] = [
    PacketNumberLen::One,
    PacketNumberLen::Two,
    PacketNumberLen::Three,
    PacketNumberLen::Four,
];

fn short(destination: &ConnectionId, len: PacketNumberLen) -> ShortHeader<'_> {
    ShortHeader {
        destination,
        number: PacketNumber::ZERO.truncate_to(len),
        spin_bit: true,
        key_phase: true,
        fixed_bit: true,
    }
}

fn handshake() -> LongHeader<'static> {
    LongHeader {
        kind: LongKind::Handshake,
        version: Version::V1,
        destination: ConnectionId::EMPTY,
        source: ConnectionId::EMPTY,
        number: PacketNumber::ZERO.truncate_to(PacketNumberLen::One),
        fixed_bit: true,
    }
}

#[test]
fn rfc9001_5_4_2_short_payloads_are_padded_to_the_sample_length() {
    for len in LENGTHS {
        for payload_len in 1..6 {
            let mut buffer = [0xee; 64];
            let mut writer = Writer::new(&mut buffer);
            let open = short(&id("0102"), len).begin(&mut writer).expect("fits");
            for _ in 0..payload_len {
                writer.u8(1).expect("fits");
            }
            let packet = open.finish(&mut writer, TAG_LEN).expect("fits");
            let padded_len = payload_len.max(4 - len.bytes());
            assert_eq!(packet.tag_offset - packet.payload_offset, padded_len);
            assert_eq!(packet.end - packet.tag_offset, TAG_LEN);
            assert_eq!(writer.position(), packet.end);
            assert!(packet.sample(&buffer).is_some());
            let padding = &buffer[packet.payload_offset + payload_len..packet.tag_offset];
            assert!(padding.iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
fn a_packet_that_does_not_fit_does_not_move_the_writer() {
    let destination = id("0102");
    let header = short(&destination, PacketNumberLen::One);
    for space in 0..4 + 3 + TAG_LEN {
        let mut buffer = vec![0; space];
        let mut writer = Writer::new(&mut buffer);
        let Ok(open) = header.begin(&mut writer) else {
            assert!(space < 4 && writer.position() == 0);
            continue;
        };
        assert_eq!(open.finish(&mut writer, TAG_LEN), Err(BufferFull));
        assert_eq!(writer.position(), 4);
        writer.rewind(open.start);
        assert_eq!(writer.position(), 0);
    }
}

#[test]
fn rfc9000_17_2_the_length_counts_packet_number_payload_and_tag() {
    let mut buffer = vec![0; 20_000];
    for (payload_len, fits) in [(100, true), (16_383 - 17, true), (16_383 - 16, false)] {
        let mut writer = Writer::new(&mut buffer);
        let open = handshake().begin(&mut writer).expect("fits");
        writer.zeros(payload_len).expect("fits");
        let before = writer.position();
        let finished = open.finish(&mut writer, TAG_LEN);
        assert_eq!(finished.is_ok(), fits, "{payload_len}");
        if fits {
            let length = usize::from(u16::from_be_bytes([buffer[7], buffer[8]]) & 0x3fff);
            assert_eq!(length, 1 + payload_len + TAG_LEN);
        } else {
            assert_eq!(writer.position(), before);
        }
    }
}

#[test]
fn packets_written_consecutively_are_coalesced() {
    let mut buffer = [0; 200];
    let mut writer = Writer::new(&mut buffer);
    let mask = [0xff; 5];
    for _ in 0..2 {
        let open = handshake().begin(&mut writer).expect("fits");
        writer.u8(1).expect("fits");
        let packet = open.finish(&mut writer, TAG_LEN).expect("fits");
        packet
            .mask(writer.written_mut(), mask)
            .expect("is complete");
    }
    let header = short(&ConnectionId::EMPTY, PacketNumberLen::Two);
    let open = header.begin(&mut writer).expect("fits");
    writer.u8(1).expect("fits");
    let packet = open.finish(&mut writer, TAG_LEN).expect("fits");
    packet
        .mask(writer.written_mut(), mask)
        .expect("is complete");

    let packets: Vec<_> = Packets::new(writer.written_mut(), CONFIG).collect();
    assert_eq!(packets.len(), 3);
    for packet in packets {
        let Ok(Packet::Protected(protected)) = packet else {
            panic!("expected a protected packet");
        };
        let unmasked = protected.unmask(mask);
        assert_eq!(unmasked.check_reserved_bits(), Ok(()));
        assert_eq!(unmasked.number().expand(None), PacketNumber::ZERO);
        assert_eq!(unmasked.spin_bit(), unmasked.version().is_none());
        assert_eq!(unmasked.key_phase(), unmasked.version().is_none());
    }
}

#[test]
fn a_buffer_without_the_packet_is_rejected() {
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    let open = handshake().begin(&mut writer).expect("fits");
    writer.u8(1).expect("fits");
    let packet = open.finish(&mut writer, TAG_LEN).expect("fits");
    assert_eq!(packet.mask(&mut [0; 20], [1; 5]), None);
    assert_eq!(packet.sample(&[0; 20]), None);
}
