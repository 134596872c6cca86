use super::*;
use crate::packet::{Packet, Packets, tests::CONFIG};

/// Removes header protection from a packet such that its first byte becomes `first_byte`, and checks its reserved bits.
fn reserved_bits(first_byte: u8, is_long: bool) -> Result<(), PacketError> {
    let mut datagram = vec![first_byte];
    if is_long {
        datagram.extend([0, 0, 0, 1, 0, 0, 30]);
    }
    datagram.extend([0; 30]);
    let Some(Ok(Packet::Protected(protected))) = Packets::new(&mut datagram, CONFIG).next() else {
        panic!("expected a protected packet");
    };
    protected.unmask([0; 5]).check_reserved_bits()
}

#[test]
fn rfc9000_17_2_reserved_bits_of_an_authentic_packet_are_a_protocol_violation() {
    for bits in 0..=0x1f {
        assert_eq!(reserved_bits(0x40 | bits, false).is_ok(), bits & 0x18 == 0);
    }
    for bits in 0..=0x0f {
        // 0-RTT, because its header has no token.
        assert_eq!(reserved_bits(0xd0 | bits, true).is_ok(), bits & 0x0c == 0);
    }
    let error = reserved_bits(0x48, false).expect_err("is reserved");
    assert_eq!(error.kind, PacketErrorKind::ReservedBits);
}

#[test]
fn masking_inverts_unmasking_for_every_first_byte() {
    let header_mask = [0xff, 1, 2, 3, 4];
    for first_byte in 0..=255 {
        let mut packet = [0x55; 40];
        packet[0] = first_byte;
        let plain = packet;
        mask(&mut packet, 10, header_mask).expect("is complete");
        // The header form and fixed bits, and the type bits of long headers, are not protected.
        let clear = if first_byte & 0x80 == 0 { 0xe0 } else { 0xf0 };
        assert_eq!((packet[0] ^ first_byte) & clear, 0);
        let header = Header {
            packet_type: PacketType::OneRtt,
            destination: 1..10,
            long: None,
        };
        let protected = Protected::new(&mut packet, header, 10).expect("is long enough");
        let unmasked = protected.unmask(header_mask);
        let number_len = usize::from(first_byte & 3) + 1;
        assert_eq!(unmasked.associated_data, &plain[..10 + number_len]);
        assert_eq!(unmasked.payload, &plain[10 + number_len..]);
        assert_eq!(unmasked.number().len().bytes(), number_len);
    }
}
