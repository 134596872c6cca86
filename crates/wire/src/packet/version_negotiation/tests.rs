use proptest::prelude::*;

use super::*;
use crate::packet::{Packet, Packets, Version, tests::CONFIG};

fn decode(datagram: &mut [u8]) -> Result<VersionNegotiation<'_>, PacketErrorKind> {
    match Packets::new(datagram, CONFIG).next() {
        Some(Ok(Packet::VersionNegotiation(packet))) => Ok(packet),
        Some(Err(error)) => Err(error.kind),
        other => panic!("not a Version Negotiation packet: {other:?}"),
    }
}

#[test]
fn rfc8999_6_layout() {
    let versions = [Version::V1.number(), VersionNumber::reserved(0)];
    let mut buffer = [0; 64];
    let mut writer = Writer::new(&mut buffer);
    VersionNegotiation::encode(&mut writer, 0x05, &[1, 2], &[3], &versions).expect("fits");
    let expected = [
        0xc5, 0, 0, 0, 0, 2, 1, 2, 1, 3, 0, 0, 0, 1, 0x0a, 0x0a, 0x0a, 0x0a,
    ];
    assert_eq!(writer.written(), expected);
}

#[test]
fn rfc8999_6_an_empty_or_truncated_list_is_ignored() {
    let mut datagram = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
    for len in [8, 9, 10, 12, 13, 14] {
        // The header takes 7 bytes and each version 4.
        let kind = decode(&mut datagram[..len]).expect_err("is truncated");
        assert_eq!(kind, PacketErrorKind::VersionList, "{len}");
    }
    assert_eq!(
        decode(&mut datagram[..7]).expect_err("is empty"),
        PacketErrorKind::VersionList
    );
    assert_eq!(
        decode(&mut datagram).expect("is whole").versions().count(),
        2
    );
}

#[test]
fn connection_ids_above_255_bytes_cannot_be_sent() {
    let mut buffer = [0; 1000];
    let mut writer = Writer::new(&mut buffer);
    let versions = [Version::V1.number()];
    let result = VersionNegotiation::encode(&mut writer, 0, &[0; 256], &[], &versions);
    assert_eq!(result, Err(BufferFull));
    assert_eq!(writer.position(), 0);
}

proptest! {
    #[test]
    fn decode_inverts_encode(
        random in any::<u8>(),
        destination in prop::collection::vec(any::<u8>(), 0..256),
        source in prop::collection::vec(any::<u8>(), 0..256),
        versions in prop::collection::vec(any::<u32>().prop_map(VersionNumber::new), 1..8),
    ) {
        let len = 7 + destination.len() + source.len() + 4 * versions.len();
        let mut buffer = vec![0; len];
        let mut writer = Writer::new(&mut buffer);
        VersionNegotiation::encode(&mut writer, random, &destination, &source, &versions).expect("fits");
        prop_assert_eq!(writer.remaining(), 0);
        for cut in 1..len {
            let mut datagram = buffer[..cut].to_vec();
            if let Ok(packet) = decode(&mut datagram) {
                // A packet truncated between versions lists fewer versions.
                prop_assert_eq!((len - cut) % 4, 0);
                prop_assert!(packet.versions().eq(versions[..packet.versions().count()].iter().copied()));
            }
        }
        let packet = decode(&mut buffer).expect("is valid");
        prop_assert_eq!(packet.destination(), destination);
        prop_assert_eq!(packet.source(), source);
        prop_assert!(packet.versions().eq(versions));
    }
}
