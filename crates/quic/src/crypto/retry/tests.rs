//! RFC 9001 Appendix A.4, and the same of RFC 9369.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use lastbyte_wire::packet::{DecodeConfig, Packet, Packets};

use super::*;
use crate::crypto::testing::vectors::{DESTINATION, V1, V2, hex};

fn is_accepted(mut bytes: Vec<u8>, destination: &ConnectionId) -> bool {
    let config = DecodeConfig {
        connection_id_len: 0,
        grease_quic_bit: false,
    };
    match Packets::new(&mut bytes, config).next() {
        Some(Ok(Packet::Retry(retry))) => is_authentic(&retry, destination),
        _ => false,
    }
}

#[test]
fn the_tag_matches_the_rfcs() {
    let destination = ConnectionId::new(&hex(DESTINATION)).unwrap();
    for vectors in [&V1, &V2] {
        let packet = hex(vectors.retry);
        let (without_tag, expected) = packet.split_last_chunk().unwrap();
        let tag = tag(vectors.version, &destination, without_tag);
        assert_eq!(tag, Some(*expected));
        assert!(is_accepted(packet, &destination));
    }
}

#[test]
fn any_changed_byte_or_other_connection_id_is_detected() {
    let destination = ConnectionId::new(&hex(DESTINATION)).unwrap();
    for vectors in [&V1, &V2] {
        let packet = hex(vectors.retry);
        assert!(!is_accepted(packet.clone(), &ConnectionId::EMPTY));
        for at in 0..packet.len() {
            let mut changed = packet.clone();
            changed[at] ^= 0x01;
            assert!(!is_accepted(changed, &destination), "byte {at}");
        }
    }
}
