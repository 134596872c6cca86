//! Resource limits.

use lastbyte_wire::{TransportError, packet::Version};

use super::*;
use crate::crypto::token::TokenKeys;

/// A first packet of another client each time.
fn knock(server: &mut Endpoint, now: Time, index: usize) -> Route {
    deliver(server, now, &from_client(index), &Probe::new().datagram())
}

const RETRY: Route = Route::Answered(Answer::Retry);
const REFUSED: Route = Route::Answered(Answer::Refused(TransportError::CONNECTION_REFUSED));

#[test]
fn rfc9000_5_2_2_connections_above_the_limit_are_refused() {
    let mut server = server_with(|config| config.limits.connections = 3);
    for index in 0..3 {
        assert!(matches!(
            knock(&mut server, START, index),
            Route::Accepted(_)
        ));
    }
    let _ = sent(&mut server, START);
    assert_eq!(knock(&mut server, START, 3), REFUSED);
    let answers = sent(&mut server, START);
    let (path, datagram) = &answers[0];
    assert_eq!(*path, from_client(3));
    let code = close_code(datagram, Version::V1, &Probe::new().destination);
    assert_eq!(code, Some(TransportError::CONNECTION_REFUSED));
    assert!(datagram.len() < 100);
    assert_eq!(server.statistics().refused, 1);

    let mut config = EndpointConfig::client();
    config.limits.connections = 1;
    let mut client = Endpoint::new(config, [1; 32]).expect("an endpoint");
    connect(&mut client, START, 0);
    let second = client.connect(
        START,
        to_server(1),
        "localhost",
        &Arc::new(super::config()),
        Arc::new(client_crypto(1)),
        Vec::new(),
    );
    assert_eq!(second, Err(ConnectError::TooMany));
}

#[test]
fn a_stopping_server_refuses_connections() {
    let mut server = server_with(|_| {});
    server.set_accepting(false);
    assert_eq!(knock(&mut server, START, 0), REFUSED);
    server.set_accepting(true);
    assert!(matches!(knock(&mut server, START, 0), Route::Accepted(_)));
}

#[test]
fn rfc9000_8_1_2_under_load_clients_must_validate_their_address() {
    let mut server = server_with(|config| {
        policy(config, RetryPolicy::UnderLoad { handshakes: 5 });
    });
    let routes: Vec<_> = (0..10)
        .map(|index| knock(&mut server, START, index))
        .collect();
    for (index, route) in routes.into_iter().enumerate() {
        match route {
            Route::Accepted(_) => assert!(index < 5),
            Route::Answered(Answer::Retry) => assert!(index >= 5),
            _ => panic!("{route:?}"),
        }
    }
    assert_eq!(server.handshakes(), 5);
}

#[test]
fn state_for_unvalidated_clients_is_bounded() {
    for (retry, expected) in [
        (RetryPolicy::Never, REFUSED),
        (
            RetryPolicy::UnderLoad { handshakes: 1000 },
            Route::Answered(Answer::Retry),
        ),
    ] {
        let mut server = server_with(|config| {
            policy(config, retry);
            config.limits.unvalidated = 7;
        });
        for index in 0..50 {
            let route = knock(&mut server, START, index);
            if index >= 7 {
                assert_eq!(route, expected);
            }
            let _ = sent(&mut server, START);
        }
        assert_eq!(server.connections(), 7);
        assert_eq!(server.demux.sizes()[1], 7);
        // Those that never finish are dropped silently.
        let end = START + Duration::from_secs(10);
        let mut now = START;
        while let Some(at) = server.deadline() {
            now = now.max(at);
            while server.poll_timeout(now).is_some() {}
            let _ = sent(&mut server, now);
        }
        assert_eq!(now, end);
        let mut count = 0;
        while let Some(closed) = server.poll_closed() {
            assert!(closed.is_handshake_timeout);
            assert_eq!(closed.connection.close_reason(), None);
            count += 1;
        }
        assert_eq!(count, 7);
        assert_eq!(server.statistics().handshake_timeouts, 7);
        assert_empty(&server);
        assert!(matches!(knock(&mut server, end, 99), Route::Accepted(_)));
    }
}

#[test]
fn the_total_number_of_handshakes_is_bounded() {
    let mut server = server_with(|config| config.limits.handshakes = 4);
    for index in 0..4 {
        assert!(matches!(
            knock(&mut server, START, index),
            Route::Accepted(_)
        ));
    }
    assert_eq!(knock(&mut server, START, 4), REFUSED);
}

/// A client with a validated address, the same for each call with the same address.
fn come_with_token(server: &mut Endpoint, remote: &str) -> Route {
    let path = NetworkPath {
        local: server_address(),
        remote: remote.parse().expect("an address"),
    };
    let token = server.new_token(START, path.remote, None).expect("short");
    let probe = Probe {
        token: &token,
        // The nonce distinguishes tokens, and thus connections.
        destination: id(&token[4..16]),
        ..Probe::new()
    };
    let route = deliver(server, START, &path, &probe.datagram());
    let _ = sent(server, START);
    route
}

#[test]
fn a_host_that_fills_its_share_of_handshakes_does_not_affect_others() {
    let mut server = server_with(|config| {
        config.limits.handshakes = 100;
        config.limits.handshakes_per_prefix = 10;
    });
    let accepts = |server: &mut Endpoint, remote: &str| match come_with_token(server, remote) {
        Route::Accepted(_) => true,
        REFUSED => false,
        other => panic!("{other:?}"),
    };
    for (host, neighbour, other) in [
        ("192.0.2.7:1", "192.0.2.7:2", "192.0.2.8:1"),
        ("[::ffff:192.0.2.9]:1", "192.0.2.9:1", "192.0.2.10:1"),
        (
            "[2001:db8:0:100::1]:1",
            "[2001:db8:0:1ff:2::]:1",
            "[2001:db8:0:200::1]:1",
        ),
    ] {
        for _ in 0..10 {
            assert!(accepts(&mut server, host));
        }
        assert!(!accepts(&mut server, host));
        assert!(!accepts(&mut server, neighbour), "{neighbour}");
        assert!(accepts(&mut server, other), "{other}");
    }
    assert_eq!(server.prefixes.counts.len(), 6);
    // The share is returned when the handshakes end.
    let end = START + Duration::from_secs(10);
    while server.poll_timeout(end).is_some() {}
    assert_eq!((server.prefixes.counts.len(), server.handshakes()), (0, 0));
    assert!(accepts(&mut server, "192.0.2.7:1"));
}

#[test]
fn many_hosts_that_fill_their_shares_do_not_lock_others_out() {
    for hosts in [1, 3, 9] {
        let mut server = server_with(|config| config.limits.handshakes = 100);
        let mut accepted = 0;
        for round in 0..100 {
            for host in 0..hosts {
                let remote = format!("192.0.2.{host}:{}", round + 1);
                let route = come_with_token(&mut server, &remote);
                accepted += usize::from(matches!(route, Route::Accepted(_)));
            }
        }
        assert_eq!(server.handshakes(), accepted);
        let room = 100 - server.handshakes();
        assert!(room >= 100 / (hosts + 1), "{hosts} hosts leave {room}");
        // One after the other, each takes what the rule permits.
        let mut one_by_one = server_with(|config| config.limits.handshakes = 100);
        for host in 0..hosts {
            for port in 1..=100 {
                let _ = come_with_token(&mut one_by_one, &format!("192.0.2.{host}:{port}"));
            }
        }
        let left = 100 - one_by_one.handshakes();
        assert!(
            left + hosts >= 100 / (hosts + 1),
            "{hosts} hosts leave {left}"
        );
        for other in 0..room {
            let remote = format!("198.51.100.{other}:1");
            let route = come_with_token(&mut server, &remote);
            assert!(matches!(route, Route::Accepted(_)), "{route:?}");
        }
    }
}

#[test]
fn a_host_at_its_connection_limit_does_not_lock_others_out() {
    let server = server_with(|config| config.limits.connections = 8);
    let mut world = World::new(server, 2000);
    world.closes = false;
    // All of one address, and then of others.
    for (clients, expected) in [
        ([0, 250, 500, 750, 1000, 1250, 1500], 4),
        ([1, 2, 3, 4, 5, 6, 7], 8),
    ] {
        for index in clients {
            world.begin(index);
            world.run_for(Duration::from_millis(500));
        }
        assert_eq!(world.server.connections(), expected);
    }
    assert_eq!(world.server.established.counts.len(), 5);
}

/// A host that spoofs another's address must not use up its share.
#[test]
fn unvalidated_addresses_do_not_count_for_their_prefix() {
    let mut server = server_with(|config| config.limits.handshakes_per_prefix = 5);
    for index in 0..10 {
        let probe = Probe {
            destination: id(&[index; 8]),
            ..Probe::new()
        };
        let route = deliver(&mut server, START, &from_client(0), &probe.datagram());
        assert!(matches!(route, Route::Accepted(_)));
    }
    assert_eq!(server.prefixes.counts.len(), 0);
    let remote = client_address(0).to_string();
    let route = come_with_token(&mut server, &remote);
    assert!(matches!(route, Route::Accepted(_)), "{route:?}");
}

#[test]
fn clients_have_a_handshake_timeout() {
    let mut client = client(1);
    connect(&mut client, START, 0);
    let mut now = START;
    while let Some(at) = client.deadline() {
        now = now.max(at);
        while client.poll_timeout(now).is_some() {}
        let _ = sent(&mut client, now);
    }
    assert_eq!(now, START + Duration::from_secs(10));
    assert!(
        client
            .poll_closed()
            .is_some_and(|closed| closed.is_handshake_timeout)
    );
    assert_empty(&client);
}

#[test]
fn responses_are_queued_up_to_a_limit() {
    let mut server = server_with(|config| {
        policy(config, RetryPolicy::Always);
        config.limits.answers = 5;
    });
    for index in 0..20 {
        let route = knock(&mut server, START, index);
        let expected = if index < 5 {
            Route::Answered(Answer::Retry)
        } else {
            Route::Dropped(DropReason::TooManyAnswers)
        };
        assert_eq!(route, expected);
    }
    assert_eq!(sent(&mut server, START).len(), 5);
}

#[test]
fn a_server_without_connection_ids_is_a_configuration_error() {
    let mut config = server_config();
    config.ids = Box::new(crate::cid::RandomIds { len: 0 });
    assert_eq!(
        Endpoint::new(config, [1; 32]).err(),
        Some(EndpointConfigError::IdLength)
    );
}

/// Clients reach any worker, and the process after this one.
#[test]
fn rfc9000_8_1_3_a_token_opens_with_its_secret_and_once_per_process() {
    let store = |secrets: &[[u8; 32]], seed| {
        let keys = TokenKeys::derive(secrets).expect("a key");
        Arc::new(TokenStore::new(keys, [seed; 32]))
    };
    let worker = |store: &Arc<TokenStore>| {
        server_with(|config| {
            policy(config, RetryPolicy::Always);
            config.server.as_mut().expect("a server").tokens = Some(Arc::clone(store));
        })
    };
    let path = from_client(0);
    let come = |server: &mut Endpoint, token: &[u8], first_byte| {
        let probe = Probe {
            token,
            destination: id(&[first_byte; 8]),
            ..Probe::new()
        };
        deliver(server, START, &path, &probe.datagram())
    };
    let of_process = store(&[[1; 32]], 1);
    let (mut one, mut other) = (worker(&of_process), worker(&of_process));
    let token = one.new_token(START, path.remote, None).expect("short");
    assert!(matches!(come(&mut other, &token, 1), Route::Accepted(_)));
    assert_eq!(come(&mut one, &token, 2), RETRY);
    assert_eq!(one.statistics().tokens_replayed, 1);
    // The process after this one, with an additional newer key.
    let mut next = worker(&store(&[[2; 32], [1; 32]], 2));
    assert!(matches!(come(&mut next, &token, 3), Route::Accepted(_)));
    of_process.set_keys(TokenKeys::derive(&[[3; 32]]).expect("a key"));
    let token = one.new_token(START, path.remote, None).expect("short");
    assert_eq!(come(&mut next, &token, 4), RETRY);
    assert!(matches!(come(&mut other, &token, 5), Route::Accepted(_)));
}
