//! RFC 9001 Appendix A.5, the same of RFC 9369; what any key, real or plain, must reject.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use lastbyte_wire::{
    ConnectionId, Side, Writer,
    packet::{PacketNumberLen, ShortHeader, Version},
};
use proptest::prelude::*;
use rustls::crypto::{
    aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
    cipher::{AeadKey, Iv},
};

use super::*;
use crate::crypto::{
    AeadProvider, initial,
    testing::{
        connection_id, first, handshake_packet, number,
        vectors::{CHACHA20_NUMBER, V1, V2, hex},
    },
};

fn chacha20(key: Vec<u8>, iv: Vec<u8>, hp: Vec<u8>) -> DirectionalKeys {
    let suite = TLS13_CHACHA20_POLY1305_SHA256.tls13().unwrap();
    let algorithm = suite.quic.unwrap();
    let aead_key = |bytes: Vec<u8>| AeadKey::from(<[u8; 32]>::try_from(bytes).unwrap());
    let iv = Iv::from(<[u8; 12]>::try_from(iv).unwrap());
    DirectionalKeys {
        packet: algorithm.packet_key(aead_key(key), iv).into(),
        header: HeaderKey(HeaderKeyKind::Cipher(
            algorithm.header_protection_key(aead_key(hp)),
        )),
    }
}

#[test]
fn a_short_header_packet_with_chacha20_matches_the_rfcs() {
    for vectors in [&V1, &V2] {
        let [key, iv, hp] = vectors.chacha20.map(hex);
        let keys = chacha20(key, iv, hp);
        let number = number(CHACHA20_NUMBER);
        let [header, payload, packet] = vectors.short.map(hex);
        let mut buffer = [0; 64];
        let mut writer = Writer::new(&mut buffer);
        let short_header = ShortHeader {
            destination: &ConnectionId::EMPTY,
            number: number.truncate_to(PacketNumberLen::Three),
            spin_bit: false,
            key_phase: false,
            fixed_bit: true,
        };
        let open = short_header.begin(&mut writer).unwrap();
        writer.bytes(&payload).unwrap();
        let finished = open.finish(&mut writer, TAG_LEN).unwrap();
        assert_eq!(writer.written()[..finished.payload_offset], header);
        keys.protect(number, &finished, writer.written_mut())
            .unwrap();
        assert_eq!(writer.written(), packet);

        let mut packet = packet;
        let protected = first(&mut packet, 0).unwrap();
        let largest = PacketNumber::new(number.get() - 1);
        let opened = keys.unprotect(protected, largest).unwrap();
        assert_eq!(opened.number, number);
        assert_eq!(opened.payload(), payload);
    }
}

#[test]
fn limits_match_the_rfc() {
    for aead in AeadProvider::ALL {
        let initial = initial::keys_by(aead, Side::Client, Version::V1, &connection_id());
        assert_eq!(initial.seal.packet.confidentiality_limit(), 1 << 23);
        assert_eq!(initial.seal.packet.integrity_limit(), 1 << 52);
    }
    let chacha20 = chacha20(vec![0; 32], vec![0; 12], vec![0; 32]).packet;
    // Above the number of possible packets.
    assert!(chacha20.confidentiality_limit() > 1 << 62);
    assert_eq!(chacha20.integrity_limit(), 1 << 36);
}

#[test]
fn packets_without_space_for_a_tag_are_neither_sealed_nor_opened() {
    for key in all_keys().map(|keys| keys.seal.packet) {
        for len in 0..TAG_LEN {
            let mut short = vec![0; len];
            assert_eq!(
                key.seal(number(0), &[], &mut short),
                Err(SealError::Malformed)
            );
            assert_eq!(
                key.open(number(0), &[], &mut short),
                Err(OpenError::NotAuthentic)
            );
        }
        let mut empty = [0; TAG_LEN];
        key.seal(number(0), &[], &mut empty).unwrap();
        assert_eq!(key.open(number(0), &[], &mut empty), Ok(0));
    }
}

#[test]
fn a_packet_that_is_not_in_the_buffer_is_an_error() {
    let packet = FinishedPacket {
        start: 4,
        number_offset: 8,
        payload_offset: 10,
        tag_offset: 20,
        end: 36,
    };
    for keys in all_keys() {
        let mut written = [0; 36];
        assert!(
            keys.seal
                .protect(number(0), &packet, &mut written[..35])
                .is_err()
        );
        for packet in [
            FinishedPacket {
                start: 11,
                ..packet
            },
            FinishedPacket { end: 9, ..packet },
            FinishedPacket {
                number_offset: 30,
                ..packet
            },
        ] {
            assert!(keys.seal.protect(number(0), &packet, &mut written).is_err());
        }
        assert_eq!(keys.seal.protect(number(0), &packet, &mut written), Ok(()));
    }
}

/// The keys of a client, of both libraries and plain.
fn all_keys() -> [Keys; 3] {
    keys_of(Side::Client)
}

fn keys_of(side: Side) -> [Keys; 3] {
    let [aws_lc, ring] =
        AeadProvider::ALL.map(|aead| initial::keys_by(aead, side, Version::V1, &connection_id()));
    let plain = plain::initial_keys(side, Version::V1, &connection_id());
    [aws_lc, ring, plain]
}

proptest! {
    #[test]
    fn any_flipped_bit_is_detected(
        payload in prop::collection::vec(any::<u8>(), 4..300),
        packet_number in 0_u32..0x8000,
        at in any::<prop::sample::Index>(),
    ) {
        for (client, server) in keys_of(Side::Client).iter().zip(keys_of(Side::Server)) {
            let packet = handshake_packet(&client.seal, packet_number, &payload);
            let open = |mut packet: Vec<u8>| {
                // If the header is corrupt there may be no packet left to open.
                let packet = first(&mut packet, 8)?;
                server.open.unprotect(packet, None).ok().map(|opened| opened.payload().to_vec())
            };
            let opened = open(packet.clone());
            prop_assert_eq!(opened.as_deref(), Some(&payload[..]));
            let bit = at.index(packet.len() * 8);
            let mut flipped = packet;
            flipped[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(open(flipped), None, "bit {}", bit);
        }
    }

    #[test]
    fn arbitrary_bytes_are_rejected_without_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 0..100),
        packet_number in any::<u32>(),
    ) {
        for keys in all_keys() {
            let number = number(packet_number);
            prop_assert_eq!(
                keys.open.packet.open(number, &[], &mut bytes),
                Err(OpenError::NotAuthentic)
            );
        }
    }
}
