#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use super::*;

const CONTENTS: Contents<'_> = Contents {
    issued: WallTime::from_unix(Duration::from_secs(1_900_000_000)),
    version: 1,
    parameters: b"parameters",
    session: b"session",
};

#[test]
fn contents_round_trip() {
    let bytes = CONTENTS.encode().unwrap();
    assert_eq!(Contents::decode(&bytes), Ok(CONTENTS));
    assert_eq!(bytes.len(), 8 + 2 + 4 + 1 + 10 + 7);
    assert!(CONTENTS.is_of(Version::V1));
    assert!(!CONTENTS.is_of(Version::V2));
    let own_end = bytes.len() - CONTENTS.session.len();
    for len in 0..own_end {
        assert!(Contents::decode(&bytes[..len]).is_err(), "{len}");
    }
    // Another layout, with more of our own data.
    let mut longer = bytes;
    longer[9] += 1;
    assert!(Contents::decode(&longer).is_err());
}

#[test]
fn parameters_are_bounded() {
    let longest = Contents {
        parameters: &[1; PARAMETERS_MAX],
        ..CONTENTS
    };
    let bytes = longest.encode().unwrap();
    assert_eq!(bytes[8..10], [0, 160], "{OWN_MAX} bytes");
    assert_eq!(Contents::decode(&bytes), Ok(longest));
    let parameters = Contents {
        parameters: &[1; PARAMETERS_MAX + 1],
        ..CONTENTS
    };
    assert_eq!(parameters.encode(), None);
}
