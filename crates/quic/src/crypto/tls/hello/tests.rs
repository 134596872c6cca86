//! Messages written by rustls.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use lastbyte_wire::packet::Version;

use super::*;
use crate::crypto::{ClientCrypto as _, Space, tls::testing::pair};

fn client_hello() -> Vec<u8> {
    let (client, _) = pair();
    let mut session = client
        .start(Version::V1, "localhost", b"some parameters")
        .unwrap();
    let mut sent_data = Vec::new();
    session.write_crypto(Space::Initial, &mut sent_data);
    sent_data
}

#[test]
fn parameters_are_found() {
    let hello = client_hello();
    assert!(is_whole(&hello));
    let expected = Seen {
        parameters: Some(b"some parameters"),
        ..Seen::default()
    };
    assert_eq!(look(&hello), Ok(expected));
}

#[test]
fn a_message_is_complete_with_its_last_byte() {
    let hello = client_hello();
    for len in 0..hello.len() {
        assert!(!is_whole(&hello[..len]), "{len}");
    }
}

#[test]
fn other_messages_than_a_client_hello_are_complete_at_once() {
    assert!(is_whole(&[2]));
    assert!(!is_whole(&[]));
    assert!(is_whole(&[1, 1, 0, 0]), "longer than any that is read");
}

#[test]
fn a_truncated_message_has_no_fields() {
    let hello = client_hello();
    for len in 0..hello.len() {
        assert_eq!(look(&hello[..len]), Ok(Seen::default()), "{len}");
    }
}

#[test]
fn any_changed_byte_is_parsed_without_panic() {
    let hello = client_hello();
    for at in 0..hello.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut changed = hello.clone();
            changed[at] = value;
            // The fields found are those of the message, wherever it starts.
            if let Ok(seen) = look(&changed) {
                assert!(seen.parameters.unwrap_or_default().len() < changed.len());
            }
        }
    }
}
