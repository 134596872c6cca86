#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use super::*;
use crate::crypto::testing::vectors::hex;

#[test]
fn a_token_is_the_first_half_of_an_hmac() {
    // Computed with Python: hmac.new(bytes(range(32)), b"lastbyte", "sha256").
    let key = ResetKey::new(&std::array::from_fn(|i| i as u8));
    let token = key.token(&ConnectionId::new(b"lastbyte").unwrap());
    assert_eq!(
        token.as_bytes()[..],
        hex("a3308f785f3ac0d8e716c6601e410554")
    );
}

#[test]
fn tokens_differ_by_connection_id_and_by_key() {
    let id = |bytes: &[u8]| ConnectionId::new(bytes).unwrap();
    let (one, other) = (ResetKey::new(&[1; 32]), ResetKey::new(&[2; 32]));
    let token = one.token(&id(&[7; 8]));
    assert_eq!(token, one.token(&id(&[7; 8])));
    assert_ne!(token, other.token(&id(&[7; 8])));
    assert_ne!(token, one.token(&id(&[7; 9])));
    assert_ne!(token, one.token(&ConnectionId::EMPTY));
    assert_eq!(format!("{one:?}"), "ResetKey(..)");
}
