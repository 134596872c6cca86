#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use proptest::prelude::*;

use super::*;

const NOW: WallTime = WallTime::from_unix(Duration::from_millis(1_800_000_000_123));

fn before(span: Duration) -> WallTime {
    WallTime::from_unix(NOW.since_unix_epoch().saturating_sub(span))
}

fn key(id: u32) -> TokenKey {
    TokenKey::new(id, &[id as u8; 32]).unwrap()
}

fn keys(id: u32) -> TokenKeys {
    TokenKeys {
        first: key(id),
        others: Vec::new(),
    }
}

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn retry() -> Token {
    Token {
        kind: TokenKind::Retry {
            original_destination: id(b"original"),
            retry_source: id(b"retry source"),
        },
        issued: NOW,
        path: None,
    }
}

fn new_token() -> Token {
    Token {
        kind: TokenKind::NewToken,
        issued: NOW,
        path: None,
    }
}

fn claim(now: WallTime) -> Claim<'static> {
    Claim {
        address: Some(Address {
            for_retry: b"address and port",
            for_new_token: b"address",
        }),
        now,
        lifetimes: Lifetimes::default(),
    }
}

fn seal(keys: &TokenKeys, token: &Token) -> Vec<u8> {
    let address = claim(NOW).address.unwrap().of(&token.kind);
    keys.seal(token, address, [9; NONCE_LEN]).unwrap()
}

#[test]
fn sealed_tokens_are_opened() {
    let keys = keys(1);
    for token in [retry(), new_token()] {
        let sealed = seal(&keys, &token);
        assert_eq!(keys.open(&sealed, &claim(NOW)), Ok(token));
    }
    assert_eq!(
        seal(&keys, &new_token()).len(),
        OVERHEAD + 1 + 8 + 1 + b"address".len()
    );
}

#[test]
fn the_first_key_seals_and_all_open() {
    let sealed = seal(&keys(1), &retry());
    let rotated = TokenKeys {
        first: key(2),
        others: vec![key(1)],
    };
    assert_eq!(rotated.open(&sealed, &claim(NOW)), Ok(retry()));
    assert_ne!(seal(&rotated, &retry())[..4], sealed[..4]);
    let retired = TokenKeys {
        first: key(3),
        others: vec![key(2)],
    };
    assert_eq!(
        retired.open(&sealed, &claim(NOW)),
        Err(TokenError::UnknownKey)
    );
    // Another key with the same identity.
    let other = TokenKeys {
        first: TokenKey::new(1, &[0xff; 32]).unwrap(),
        others: Vec::new(),
    };
    assert_eq!(other.open(&sealed, &claim(NOW)), Err(TokenError::Forged));
}

#[test]
fn keys_derived_from_one_secret_are_the_same_everywhere() {
    let derive = |secrets: &[[u8; 32]]| TokenKeys::derive(secrets).unwrap();
    let sealed = seal(&derive(&[[1; 32]]), &new_token());
    let rotated = derive(&[[2; 32], [1; 32]]);
    assert_eq!(rotated.open(&sealed, &claim(NOW)), Ok(new_token()));
    assert_eq!(
        derive(&[[2; 32]]).open(&sealed, &claim(NOW)),
        Err(TokenError::UnknownKey)
    );
    assert!(TokenKeys::derive(&[]).is_none());
}

#[test]
fn tokens_are_valid_for_their_lifetime_and_little_before() {
    let keys = keys(1);
    let millisecond = Duration::from_millis(1);
    for (token, lifetime) in [
        (retry(), Lifetimes::default().retry),
        (new_token(), Lifetimes::default().new_token),
    ] {
        let sealed = seal(&keys, &token);
        let open = |now| keys.open(&sealed, &claim(now)).map(|token| token.kind);
        let kind = token.kind;
        assert_eq!(open(NOW + lifetime), Ok(kind));
        assert_eq!(
            open(NOW + lifetime + millisecond),
            Err(TokenError::Expired(kind))
        );
        assert_eq!(open(before(CLOCK_SKEW)), Ok(kind));
        assert_eq!(
            open(before(CLOCK_SKEW + millisecond)),
            Err(TokenError::NotYetValid(kind))
        );
        assert_eq!(
            open(WallTime::from_unix(Duration::MAX)),
            Err(TokenError::Expired(kind))
        );
    }
}

#[test]
fn a_token_is_valid_for_its_address_and_kind_only() {
    let keys = keys(1);
    for token in [retry(), new_token()] {
        let sealed = seal(&keys, &token);
        for (for_retry, for_new_token) in [(&b"address"[..], &b"address and port"[..]), (b"", b"")]
        {
            let claim = Claim {
                address: Some(Address {
                    for_retry,
                    for_new_token,
                }),
                ..claim(NOW)
            };
            assert_eq!(
                keys.open(&sealed, &claim),
                Err(TokenError::OtherAddress(token.kind))
            );
        }
    }
}

#[test]
fn any_changed_byte_or_truncation_is_detected() {
    let keys = keys(1);
    for token in [retry(), new_token()] {
        let sealed = seal(&keys, &token);
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << bit;
                let expected = if at < KEY_ID_LEN {
                    TokenError::UnknownKey
                } else {
                    TokenError::Forged
                };
                assert_eq!(keys.open(&changed, &claim(NOW)), Err(expected), "{at}");
            }
            let error = keys.open(&sealed[..at], &claim(NOW)).unwrap_err();
            let too_short = at < KEY_ID_LEN + NONCE_LEN;
            assert_eq!(error == TokenError::Malformed, too_short, "{at}");
        }
    }
}

#[test]
fn oversized_tokens_are_not_sealed() {
    let keys = keys(1);
    assert_eq!(
        keys.seal(&new_token(), &[0; ADDRESS_MAX + 1], [0; NONCE_LEN]),
        Err(TokenTooLong)
    );
    let mut retry = retry();
    retry.kind = TokenKind::Retry {
        original_destination: id(&[1; 20]),
        retry_source: id(&[2; 20]),
    };
    let longest = keys.seal(&retry, &[0; ADDRESS_MAX], [0; NONCE_LEN]);
    assert_eq!(longest.map(|token| token.len()), Ok(TOKEN_MAX));
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_rejected_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..TOKEN_MAX + 50),
        known in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if known {
            for (to, from) in bytes.iter_mut().zip(1_u32.to_be_bytes()) {
                *to = from;
            }
        }
        prop_assert!(keys(1).open(&bytes, &claim(NOW)).is_err());
        // Sealed content never decodes to an impossible value.
        let _ = decode(&bytes);
    }
}

#[test]
fn rfc9959_3_1_a_token_may_carry_a_saved_path() {
    let keys = keys(1);
    let token = Token {
        path: Some(TokenPath {
            saved: SavedPath {
                window: u64::MAX,
                rtt: Duration::from_micros(12_345),
            },
            connection: u64::MAX - 1,
        }),
        ..new_token()
    };
    let sealed = seal(&keys, &token);
    assert!(sealed.len() <= TOKEN_MAX);
    assert_eq!(keys.open(&sealed, &claim(NOW)), Ok(token));
    // Each byte is authenticated.
    for index in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[index] ^= 1;
        assert!(keys.open(&changed, &claim(NOW)).is_err(), "{index}");
    }
}
