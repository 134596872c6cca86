#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use proptest::prelude::*;

use super::*;

pub(in crate::crypto::tickets::client) fn session(server: &str, mark: u8) -> SavedSession {
    let ticket = NewSessionTicket {
        lifetime_s: 3600,
        age_add: 5,
        nonce: &[1],
        ticket: b"ticket",
        extensions: &[],
    };
    SavedSession {
        server: server.to_owned(),
        version: Version::V2,
        suite: 0x1301,
        group: 29,
        saved: WallTime::from_unix(Duration::from_millis(1_900_000_000_123)),
        alpn: b"h3".to_vec(),
        psk: vec![mark; 32],
        parameters: b"parameters".to_vec(),
        message: ticket.encode().unwrap(),
        chain: vec![b"leaf".to_vec(), b"root".to_vec()],
    }
}

#[test]
fn sessions_round_trip() {
    let saved = session("example.org", 7);
    let bytes = saved.to_bytes();
    let read = SavedSession::from_bytes(&bytes).unwrap();
    assert_eq!(read, saved);
    assert_eq!(read.server(), "example.org");
    assert_eq!(read.version(), Version::V2);
    assert_eq!(read.alpn, b"h3");
    assert_eq!(read.parameters, b"parameters");
    assert_eq!(
        read.expires().since_unix_epoch(),
        Duration::from_millis(1_900_003_600_123)
    );
    assert!(!format!("{read:?}").contains("psk"));
}

#[test]
fn a_session_of_another_rustls_version_is_rejected_by_name() {
    let bytes = session("example.org", 7).encode("0.24.1");
    let error = SavedSession::from_bytes(&bytes).unwrap_err();
    assert_eq!(error, SavedSessionError::OtherVersion("0.24.1".to_owned()));
    assert_eq!(
        error.to_string(),
        format!("the session was saved with rustls `0.24.1`, and this is `{RUSTLS_VERSION}`")
    );
}

#[test]
fn a_truncated_session_is_corrupt() {
    let bytes = session("example.org", 7).to_bytes();
    for len in 0..bytes.len() {
        let error = SavedSession::from_bytes(&bytes[..len]).unwrap_err();
        assert_eq!(error, SavedSessionError::Corrupt, "{len}");
    }
    let longer = [&bytes[..], b"1"].concat();
    assert_eq!(
        SavedSession::from_bytes(&longer),
        Err(SavedSessionError::Corrupt)
    );
}

#[test]
fn a_changed_session_is_corrupt_or_not_a_session() {
    let bytes = session("example.org", 7).to_bytes();
    for index in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[index] ^= 0x10;
        let expected = if index < 4 {
            SavedSessionError::NotASession
        } else {
            SavedSessionError::Corrupt
        };
        assert_eq!(SavedSession::from_bytes(&bytes), Err(expected), "{index}");
    }
    let other = SavedSession::from_bytes(b"some other file").unwrap_err();
    assert_eq!(other, SavedSessionError::NotASession);
}

#[test]
fn a_truncated_body_with_a_valid_checksum_is_corrupt() {
    // Of another layout: the checksum is right, the fields are not.
    let whole = session("example.org", 7).to_bytes();
    let body = &whole[..whole.len() - CHECK_LEN];
    let header_len = MAGIC.len() + 1 + RUSTLS_VERSION.len();
    for len in header_len..body.len() {
        let cut = [&body[..len], &check(&body[..len])].concat();
        assert_eq!(
            SavedSession::from_bytes(&cut),
            Err(SavedSessionError::Corrupt),
            "{len}"
        );
    }
}

#[test]
fn oversized_sessions_are_not_saved() {
    assert!(session("example.org", 7).fits());
    let with = |change: fn(&mut SavedSession)| {
        let mut session = session("example.org", 7);
        change(&mut session);
        session.fits()
    };
    assert!(with(|session| session.server = "a".repeat(255)));
    assert!(!with(|session| session.server = "a".repeat(256)));
    assert!(!with(|session| session.chain = vec![vec![0; 65_536]]));
    assert!(!with(|session| session.chain = vec![Vec::new(); 256]));
    assert!(!with(|session| session.chain = vec![vec![0; 40_000]; 2]));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_parsed_or_rejected(bytes in proptest::collection::vec(any::<u8>(), 0..300), magic: bool) {
        let bytes = if magic { [&MAGIC[..], &bytes].concat() } else { bytes };
        prop_assert!(SavedSession::from_bytes(&bytes).is_err());
    }
}
