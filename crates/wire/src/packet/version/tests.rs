use super::*;

#[test]
fn rfc9000_15_reserved_versions() {
    assert!(VersionNumber::new(0x1a2a_3a4a).is_reserved());
    assert!(VersionNumber::reserved(0x1234_5678).is_reserved());
    assert_eq!(VersionNumber::reserved(0x1234_5678).get(), 0x1a3a_5a7a);
    assert!(!VersionNumber::new(0x1a2a_3a4b).is_reserved());
    assert!(!Version::V1.number().is_reserved());
    assert!(!Version::V2.number().is_reserved());
    assert!(!VersionNumber::NEGOTIATION.is_reserved());
}

#[test]
fn version_numbers_map_to_known_versions() {
    for version in [Version::V1, Version::V2] {
        assert_eq!(version.number().known(), Some(version));
    }
    assert_eq!(VersionNumber::new(1).known(), Some(Version::V1));
    assert_eq!(VersionNumber::new(0x6b33_43cf).known(), Some(Version::V2));
    for number in [0, 2, 0xff00_001d, 0x709a_50c4] {
        assert_eq!(VersionNumber::new(number).known(), None);
    }
}

#[test]
fn rfc9000_17_2_and_rfc9369_3_2_long_packet_types() {
    use LongType::{Handshake, Initial, Retry, ZeroRtt};
    let types = [
        (Version::V1, [Initial, ZeroRtt, Handshake, Retry]),
        (Version::V2, [Retry, Initial, ZeroRtt, Handshake]),
    ];
    for (version, types) in types {
        for (bits, long_type) in (0..).zip(types) {
            assert_eq!(version.long_type(0xc3 | bits << 4), long_type);
            assert_eq!(version.long_type_bits(long_type), bits << 4);
        }
    }
}
