//! Encodes and decodes the headers of RFC 9001 Appendix A and RFC 9369 Appendix A.

use super::*;
use crate::{ConnectionId, Writer};

pub(super) const TAG_LEN: usize = 16;

pub(super) const CONFIG: DecodeConfig = DecodeConfig {
    connection_id_len: 0,
    grease_quic_bit: false,
};

pub(super) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter(|digit| !digit.is_whitespace())
        .map(|digit| digit.to_digit(16).expect("is a hex digit") as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

pub(super) fn id(digits: &str) -> ConnectionId {
    ConnectionId::new(&hex(digits)).expect("20 bytes at most")
}

fn array<const N: usize>(digits: &str) -> [u8; N] {
    hex(digits).try_into().expect("has the right length")
}

/// Builds a packet with a zero payload of this length, and writes the sample where the ciphertext would have it.
fn build(
    payload_len: usize,
    sample: &str,
    begin: impl FnOnce(&mut Writer<'_>) -> PacketBuilder,
) -> (Vec<u8>, FinishedPacket) {
    let mut buffer = vec![0; 1500];
    let mut writer = Writer::new(&mut buffer);
    let open = begin(&mut writer);
    writer.zeros(payload_len).expect("fits");
    let packet = open.finish(&mut writer, TAG_LEN).expect("fits");
    assert_eq!(packet.tag_offset, packet.payload_offset + payload_len);
    let end = writer.position();
    buffer.truncate(end);
    let sample = hex(sample);
    let sample_offset = packet.number_offset + 4;
    buffer[sample_offset..sample_offset + SAMPLE_LEN].copy_from_slice(&sample);
    (buffer, packet)
}

/// A long header packet from one of the appendices.
struct LongVector {
    header: LongHeader<'static>,
    number: u64,
    payload_len: usize,
    plain: &'static str,
    sample: &'static str,
    mask: &'static str,
    masked: &'static str,
}

fn client_initial(version: Version) -> LongHeader<'static> {
    LongHeader {
        kind: LongKind::Initial { token: &[] },
        version,
        destination: id("8394c8f03e515708"),
        source: ConnectionId::EMPTY,
        number: PacketNumber::from(2).truncate_to(PacketNumberLen::Four),
        fixed_bit: true,
    }
}

fn server_initial(version: Version) -> LongHeader<'static> {
    LongHeader {
        kind: LongKind::Initial { token: &[] },
        version,
        destination: ConnectionId::EMPTY,
        source: id("f067a5502a4262b5"),
        number: PacketNumber::from(1).truncate_to(PacketNumberLen::Two),
        fixed_bit: true,
    }
}

fn check_long(vector: &LongVector) {
    let (mut datagram, packet) = build(vector.payload_len, vector.sample, |writer| {
        vector.header.begin(writer).expect("fits")
    });
    assert_eq!(datagram[..packet.payload_offset], hex(vector.plain));
    assert_eq!(packet.sample(&datagram), Some(array(vector.sample)));
    let plain = datagram.clone();

    let mask = array(vector.mask);
    packet.mask(&mut datagram, mask).expect("is complete");
    assert_eq!(datagram[..packet.payload_offset], hex(vector.masked));
    assert_eq!(
        datagram[packet.payload_offset..],
        plain[packet.payload_offset..]
    );

    let mut packets = Packets::new(&mut datagram, CONFIG);
    let Some(Ok(Packet::Protected(protected))) = packets.next() else {
        panic!("expected a protected packet");
    };
    assert!(packets.next().is_none());
    assert_eq!(protected.packet_type(), PacketType::Initial);
    assert_eq!(protected.version(), Some(vector.header.version));
    assert_eq!(protected.destination(), vector.header.destination);
    assert_eq!(protected.source(), Some(vector.header.source));
    assert!(protected.token().is_empty());
    assert_eq!(*protected.sample(), array(vector.sample));
    let unmasked = protected.unmask(mask);
    assert_eq!(unmasked.associated_data, hex(vector.plain));
    assert_eq!(unmasked.payload.len(), vector.payload_len + TAG_LEN);
    assert_eq!(unmasked.number(), vector.header.number);
    assert_eq!(unmasked.number().expand(None).get(), vector.number);
    assert_eq!(unmasked.check_reserved_bits(), Ok(()));
    assert!(!unmasked.spin_bit() && !unmasked.key_phase());
}

#[test]
fn rfc9001_a_2_client_initial() {
    check_long(&LongVector {
        header: client_initial(Version::V1),
        number: 2,
        payload_len: 1162,
        plain: "c300000001088394c8f03e5157080000449e00000002",
        sample: "d1b1c98dd7689fb8ec11d242b123dc9b",
        mask: "437b9aec36",
        masked: "c000000001088394c8f03e5157080000449e7b9aec34",
    });
}

#[test]
fn rfc9001_a_3_server_initial() {
    check_long(&LongVector {
        header: server_initial(Version::V1),
        number: 1,
        payload_len: 99,
        plain: "c1000000010008f067a5502a4262b50040750001",
        sample: "2cd0991cd25b0aac406a5816b6394100",
        mask: "2ec0d8356a",
        masked: "cf000000010008f067a5502a4262b5004075c0d9",
    });
}

#[test]
fn rfc9369_a_2_client_initial() {
    check_long(&LongVector {
        header: client_initial(Version::V2),
        number: 2,
        payload_len: 1162,
        plain: "d36b3343cf088394c8f03e5157080000449e00000002",
        sample: "ffe67b6abcdb4298b485dd04de806071",
        mask: "94a0c95e80",
        masked: "d76b3343cf088394c8f03e5157080000449ea0c95e82",
    });
}

#[test]
fn rfc9369_a_3_server_initial() {
    check_long(&LongVector {
        header: server_initial(Version::V2),
        number: 1,
        payload_len: 99,
        plain: "d16b3343cf0008f067a5502a4262b50040750001",
        sample: "6f05d8a4398c47089698baeea26b91eb",
        mask: "4dd92e91ea",
        masked: "dc6b3343cf0008f067a5502a4262b5004075d92f",
    });
}

/// Checks the packets of RFC 9001 A.5 and RFC 9369 A.5, which have the same plaintext header.
fn check_short(packet: &str, mask: &str) {
    let number = PacketNumber::from(654_360_564);
    let header = ShortHeader {
        destination: &ConnectionId::EMPTY,
        number: number.truncate_to(PacketNumberLen::Three),
        spin_bit: false,
        key_phase: false,
        fixed_bit: true,
    };
    let mut buffer = [0; 21];
    let mut writer = Writer::new(&mut buffer);
    let open = header.begin(&mut writer).expect("fits");
    assert_eq!(open.payload_offset, 4);
    writer.u8(1).expect("fits");
    let finished = open.finish(&mut writer, TAG_LEN).expect("fits");
    assert_eq!(buffer[..4], hex("4200bff4"));
    // The AEAD would encrypt the payload.
    buffer[4..].copy_from_slice(&hex(packet)[4..]);
    let mask = array(mask);
    finished.mask(&mut buffer, mask).expect("is complete");
    assert_eq!(buffer, *hex(packet));

    let Some(Ok(Packet::Protected(protected))) = Packets::new(&mut buffer, CONFIG).next() else {
        panic!("expected a protected packet");
    };
    assert_eq!(protected.packet_type(), PacketType::OneRtt);
    assert_eq!((protected.version(), protected.source()), (None, None));
    assert_eq!(protected.sample()[..], hex(packet)[5..]);
    let unmasked = protected.unmask(mask);
    assert_eq!(unmasked.associated_data, hex("4200bff4"));
    assert_eq!(unmasked.payload, &hex(packet)[4..]);
    let previous = PacketNumber::from(654_360_563);
    assert_eq!(unmasked.number().expand(Some(previous)), number);
    assert_eq!(unmasked.check_reserved_bits(), Ok(()));
}

#[test]
fn rfc9001_a_5_chacha20_short_header() {
    check_short("4cfe4189655e5cd55c41f69080575d7999c25a5bfb", "aefefe7d03");
}

#[test]
fn rfc9369_a_5_chacha20_short_header() {
    check_short("5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba", "97580e32bf");
}
