use core::time::Duration;

use super::*;

fn store() -> Arc<TokenStore> {
    let keys = TokenKeys::derive(&[[7; 32]]).expect("a key");
    Arc::new(TokenStore::new(keys, [1; 32]))
}

fn tokens() -> Tokens {
    Tokens::new(store(), Lifetimes::default())
}

fn id(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).expect("8 bytes")
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn days(days: u64) -> WallTime {
    WallTime::from_unix(Duration::from_secs(days * 86_400))
}

#[test]
fn rfc9000_8_1_2_a_retry_token_is_bound_to_address_port_and_id() {
    let tokens = tokens();
    let ids = RetryIds {
        original_destination: id(1),
        retry_source: id(2),
    };
    let client = address("192.0.2.1:4433");
    let token = tokens
        .seal_retry(&ids, client, days(1), [3; 12])
        .expect("fits");
    let check = |remote, destination, at| tokens.check(&token, remote, &destination, at);
    assert_eq!(check(client, id(2), days(1)), Proof::Retry(ids));
    let mapped = address("[::ffff:192.0.2.1]:4433");
    assert_eq!(check(mapped, id(2), days(1)), Proof::Retry(ids));
    assert_eq!(
        check(address("192.0.2.1:4434"), id(2), days(1)),
        Proof::Invalid
    );
    assert_eq!(
        check(address("192.0.2.2:4433"), id(2), days(1)),
        Proof::Invalid
    );
    assert_eq!(check(client, id(1), days(1)), Proof::Invalid);
    let late = days(1) + Duration::from_secs(16);
    assert_eq!(check(client, id(2), late), Proof::Invalid);
}

#[test]
fn rfc9000_8_1_3_a_new_token_is_bound_to_the_address() {
    let tokens = tokens();
    let client = address("[2001:db8::1]:4433");
    let token = tokens
        .seal_new_token(client, None, days(1), [3; 12])
        .expect("fits");
    let check = |remote, at| tokens.check(&token, remote, &id(9), at);
    let earlier = Proof::Earlier {
        path: None,
        is_validated: true,
    };
    assert_eq!(check(client, days(1)), earlier);
    assert_eq!(check(address("[2001:db8::1]:1"), days(7)), earlier);
    // An invalid token is treated as none.
    assert_eq!(check(address("[2001:db8::2]:4433"), days(1)), Proof::None);
    assert_eq!(check(client, days(9)), Proof::None);
    let mut damaged = token.clone();
    damaged[20] ^= 1;
    assert_eq!(tokens.check(&damaged, client, &id(9), days(1)), Proof::None);
    assert_eq!(tokens.check(&[], client, &id(9), days(1)), Proof::None);
}

#[test]
fn rfc9000_8_1_4_a_token_is_valid_once_across_workers_with_bounded_memory() {
    let store = store();
    let worker = || Tokens::new(Arc::clone(&store), Lifetimes::default());
    let (tokens, other) = (worker(), worker());
    let client = address("192.0.2.1:4433");
    let token = tokens.seal_new_token(client, None, days(1), [3; 12]);
    let token = token.expect("fits");
    let check = |tokens: &Tokens| tokens.check(&token, client, &id(9), days(1));
    assert_eq!(
        check(&tokens),
        Proof::Earlier {
            path: None,
            is_validated: true,
        }
    );
    assert_eq!(
        check(&other),
        Proof::Earlier {
            path: None,
            is_validated: true,
        }
    );
    assert!(tokens.spend(&token));
    assert_eq!(check(&tokens), Proof::Replayed);
    // Also at the other worker, and if that checked it a moment before.
    assert_eq!(check(&other), Proof::Replayed);
    assert!(!other.spend(&token));

    let mut seen = UsedTokens::new(SipHash::new([3, 4]));
    assert!(!seen.contains(b"any"));
    for token in 0_u32..2000 {
        seen.add(&token.to_be_bytes());
        assert!(seen.contains(&token.to_be_bytes()));
    }
    let known = (0_u32..2000).filter(|token| seen.contains(&token.to_be_bytes()));
    assert!(known.count() > 1800, "most are remembered");
    for token in 0_u32..100_000 {
        seen.add(&token.to_be_bytes());
    }
    assert_eq!(seen.sets.len(), SETS);
}

#[test]
fn the_wall_clock_advances_with_the_monotonic_clock() {
    let clock = WallClock::new(Time::from_nanos(5), days(1));
    assert_eq!(clock.read(Time::from_nanos(5)), days(1));
    assert_eq!(
        clock.read(Time::from_nanos(9)),
        days(1) + Duration::from_nanos(4)
    );
    assert_eq!(clock.read(Time::ZERO), days(1));
}

#[test]
fn rfc9959_3_2_one_of_the_tokens_of_a_connection_carries_its_path() {
    let store = store();
    let worker = || Tokens::new(Arc::clone(&store), Lifetimes::default());
    let (tokens, other) = (worker(), worker());
    let path = |connection: u64, window: u64| TokenPath {
        saved: SavedPath {
            window,
            rtt: Duration::from_millis(40),
        },
        connection,
    };
    // Two measurements of a connection, at two workers at the same time.
    assert_eq!(tokens.spend_path(&path(7, 1000)), Some(path(7, 1000).saved));
    assert_eq!(other.spend_path(&path(7, 2000)), None);
    assert_eq!(tokens.spend_path(&path(7, 1000)), None);
    // Another connection's is another.
    assert_eq!(other.spend_path(&path(8, 2000)), Some(path(8, 2000).saved));
}
