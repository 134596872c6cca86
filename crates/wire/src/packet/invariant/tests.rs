use proptest::prelude::*;

use super::*;

#[test]
fn rfc8999_5_1_connection_ids_of_unknown_versions_have_up_to_255_bytes() {
    let mut datagram = vec![0x80, 0x1a, 0x2a, 0x3a, 0x4a, 255];
    datagram.extend([7; 255]);
    datagram.push(3);
    datagram.extend([8; 3]);
    datagram.extend([9; 20]);
    let Ok(Invariant::Long(long)) = Invariant::decode(&datagram) else {
        panic!("expected a long header");
    };
    assert_eq!(long.version, VersionNumber::new(0x1a2a_3a4a));
    assert_eq!(
        (long.destination, long.source),
        (&[7; 255][..], &[8; 3][..])
    );
    for cut in 0..6 + 255 + 1 + 3 {
        let error = Invariant::decode(&datagram[..cut]).expect_err("is truncated");
        assert_eq!(error.kind, PacketErrorKind::Truncated);
    }
}

#[test]
fn rfc8999_5_2_a_short_header_does_not_contain_the_connection_id_length() {
    let short = Invariant::decode(&[0x00, 1, 2, 3]).expect("is a short header");
    assert_eq!(short.destination(0), Some(&[][..]));
    assert_eq!(short.destination(2), Some(&[1, 2][..]));
    assert_eq!(short.destination(4), None);
    assert!(Invariant::decode(&[]).is_err());
}

proptest! {
    #[test]
    fn any_datagram_decodes_or_fails(datagram in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(Invariant::Long(long)) = Invariant::decode(&datagram) {
            prop_assert_eq!(usize::from(datagram[5]), long.destination.len());
        }
    }
}
