//! Stateless responses.

use lastbyte_wire::{
    TransportError,
    packet::{DecodeConfig, Packet, Packets, Version, VersionNumber},
};

use super::*;
use crate::crypto::retry;

const CONFIG: DecodeConfig = DecodeConfig {
    connection_id_len: 8,
    grease_quic_bit: false,
};

/// The only response.
fn answer(server: &mut Endpoint, now: Time, path: &NetworkPath) -> Vec<u8> {
    let mut answers = sent(server, now);
    assert_eq!(answers.len(), 1);
    let (to, datagram) = answers.remove(0);
    assert_eq!(to, *path);
    datagram
}

fn retry_server() -> Endpoint {
    server_with(|config| policy(config, RetryPolicy::Always))
}

/// Sends a first packet, and returns the Retry's token and source.
fn retry_of(server: &mut Endpoint, index: usize, version: Version) -> (Vec<u8>, ConnectionId) {
    let path = from_client(index);
    let probe = Probe {
        version,
        ..Probe::new()
    };
    let route = deliver(server, START, &path, &probe.datagram());
    assert_eq!(route, Route::Answered(Answer::Retry));
    let mut datagram = answer(server, START, &path);
    assert!(datagram.len() < 300);
    let Some(Ok(Packet::Retry(packet))) = Packets::new(&mut datagram, CONFIG).next() else {
        panic!("a Retry");
    };
    assert_eq!(
        (packet.version, packet.destination),
        (version, probe.source)
    );
    assert_ne!(packet.source, probe.destination);
    assert!(retry::is_authentic(&packet, &probe.destination));
    (packet.token.to_vec(), packet.source)
}

#[test]
fn rfc9000_8_1_2_a_retry_keeps_no_state_and_its_token_is_accepted() {
    for version in [Version::V1, Version::V2] {
        let mut server = retry_server();
        let (token, source) = retry_of(&mut server, 0, version);
        assert_empty(&server);
        let again = Probe {
            version,
            destination: source,
            token: &token,
            ..Probe::new()
        };
        let route = deliver(
            &mut server,
            START + DELAY,
            &from_client(0),
            &again.datagram(),
        );
        let Route::Accepted(handle) = route else {
            panic!("{route:?}");
        };
        assert_eq!(server.statistics().accepted_after_retry, 1);
        assert_eq!(server.load.unvalidated, 0);
        assert_eq!(server.load.handshakes, 1);
        assert!(server.peek(handle).is_some());
        // A repeated packet belongs to the same connection.
        let mut datagram = again.datagram();
        assert_eq!(
            server.route(START + DELAY, &from_client(0), &mut datagram),
            Route::Connection(handle)
        );
    }
}

#[test]
fn rfc9000_8_1_2_a_late_or_foreign_retry_token_closes_with_invalid_token() {
    let mut server = retry_server();
    let (token, source) = retry_of(&mut server, 0, Version::V1);
    let again = Probe {
        destination: source,
        token: &token,
        ..Probe::new()
    };
    let late = START + Duration::from_secs(16);
    for (now, index, probe) in [
        (START, 1, again),
        (
            START,
            0,
            Probe {
                destination: id(&[0xe; 8]),
                ..again
            },
        ),
        (late, 0, again),
    ] {
        let path = from_client(index);
        let route = deliver(&mut server, now, &path, &probe.datagram());
        assert_eq!(
            route,
            Route::Answered(Answer::Refused(TransportError::INVALID_TOKEN))
        );
        let datagram = answer(&mut server, now, &path);
        assert!(datagram.len() < 1200);
        let code = close_code(&datagram, probe.version, &probe.destination);
        assert_eq!(code, Some(TransportError::INVALID_TOKEN));
        assert_empty(&server);
    }
}

#[test]
fn rfc9000_8_1_3_a_token_of_an_earlier_connection_validates_once() {
    let mut server = retry_server();
    let path = from_client(3);
    let token = server.new_token(START, path.remote, None).expect("short");
    let probe = |destination| Probe {
        destination: id(&[destination; 8]),
        token: &token,
        ..Probe::new()
    };
    // From another port, but the same address.
    let mut moved = path;
    moved.remote.set_port(9);
    let route = deliver(&mut server, START, &moved, &probe(1).datagram());
    assert!(matches!(route, Route::Accepted(_)), "{route:?}");
    assert_eq!(server.statistics().accepted_with_token, 1);
    // A second use counts as no token.
    let route = deliver(&mut server, START, &path, &probe(2).datagram());
    assert_eq!(route, Route::Answered(Answer::Retry));
    assert_eq!(server.statistics().tokens_replayed, 1);
    // So does one that is not ours, or too long.
    for garbage in [vec![7; 60], vec![7; 600]] {
        let probe = Probe {
            token: &garbage,
            ..Probe::new()
        };
        let route = deliver(&mut server, START, &from_client(4), &probe.datagram());
        assert_eq!(route, Route::Answered(Answer::Retry));
    }
}

#[test]
fn rfc9000_14_1_small_initials_are_dropped() {
    let mut server = server_with(|_| {});
    let small = Probe {
        len: 1199,
        ..Probe::new()
    };
    let route = deliver(&mut server, START, &from_client(0), &small.datagram());
    assert_eq!(route, Route::Dropped(DropReason::TooSmall));
    assert_empty(&server);
}

#[test]
fn rfc9000_7_2_destination_ids_of_clients_have_at_least_eight_bytes() {
    let mut server = server_with(|_| {});
    for len in 0..8 {
        let probe = Probe {
            destination: id(&vec![0xd; len]),
            ..Probe::new()
        };
        let route = deliver(&mut server, START, &from_client(0), &probe.datagram());
        assert_eq!(route, Route::Dropped(DropReason::ShortDestination));
    }
    for len in [8, 20] {
        let probe = Probe {
            destination: id(&vec![0xd; len]),
            ..Probe::new()
        };
        let route = deliver(&mut server, START, &from_client(0), &probe.datagram());
        assert!(matches!(route, Route::Accepted(_)));
    }
}

#[test]
fn rfc9001_5_2_an_initial_that_does_not_open_creates_no_state() {
    let mut server = server_with(|_| {});
    let mut datagram = Probe::new().datagram();
    datagram[600] ^= 1;
    let route = deliver(&mut server, START, &from_client(0), &datagram);
    assert_eq!(route, Route::Dropped(DropReason::NotAuthentic));
    assert_empty(&server);
}

/// A long header of any version.
fn long_header(version: u32, destination: &[u8], source: &[u8], len: usize) -> Vec<u8> {
    let mut datagram = vec![0xc0];
    datagram.extend(version.to_be_bytes());
    for id in [destination, source] {
        datagram.push(id.len() as u8);
        datagram.extend(id);
    }
    datagram.resize(datagram.len().max(len), 0);
    datagram
}

#[test]
fn rfc9000_6_1_version_negotiation_lists_our_versions_and_a_reserved_one() {
    let mut server = server_with(|_| {});
    let path = from_client(0);
    for (destination, source) in [
        (vec![1; 255], vec![2; 255]),
        (vec![1; 8], vec![]),
        (vec![], vec![2]),
    ] {
        let datagram = long_header(0x5a6a_7a8a, &destination, &source, 1200);
        let route = deliver(&mut server, START, &path, &datagram);
        assert_eq!(route, Route::Answered(Answer::VersionNegotiation));
        let mut datagram = answer(&mut server, START, &path);
        let Some(Ok(Packet::VersionNegotiation(packet))) =
            Packets::new(&mut datagram, CONFIG).next()
        else {
            panic!("a Version Negotiation packet");
        };
        assert_eq!(packet.destination(), source);
        assert_eq!(packet.source(), destination);
        let versions: Vec<_> = packet.versions().collect();
        let [grease, first, second] = versions[..] else {
            panic!("{versions:?}");
        };
        assert!(grease.is_reserved() && grease != VersionNumber::new(0x5a6a_7a8a));
        assert_eq!(
            [first, second],
            [Version::V1, Version::V2].map(Version::number)
        );
    }
    assert_empty(&server);
}

#[test]
fn rfc9000_6_1_a_disabled_version_is_unknown() {
    let mut only_one = config();
    only_one.versions = vec![Version::V1];
    let mut server = server_with(|config| {
        config.server.as_mut().expect("a server").connection = Arc::new(only_one);
    });
    let probe = Probe {
        version: Version::V2,
        ..Probe::new()
    };
    let route = deliver(&mut server, START, &from_client(0), &probe.datagram());
    assert_eq!(route, Route::Answered(Answer::VersionNegotiation));
}

#[test]
fn rfc9000_6_1_neither_small_datagrams_nor_version_negotiation_are_answered() {
    let mut server = server_with(|_| {});
    let small = long_header(0x5a6a_7a8a, &[1; 8], &[2; 8], 1199);
    let route = deliver(&mut server, START, &from_client(0), &small);
    assert_eq!(route, Route::Dropped(DropReason::TooSmall));
    let negotiation = long_header(0, &[1; 8], &[2; 8], 1200);
    let route = deliver(&mut server, START, &from_client(0), &negotiation);
    assert_eq!(route, Route::Dropped(DropReason::VersionNegotiation));
    assert_empty(&server);
    // One for a client is routed to its connection.
    let mut client = client(1);
    let handle = connect(&mut client, START, 0);
    let local = client.peek(handle).expect("lives").local_ids().next();
    let negotiation = long_header(0, local.expect("one").as_slice(), &[2; 8], 30);
    let route = client.route(START, &to_server(0), &mut negotiation.clone());
    assert_eq!(route, Route::Connection(handle));
}

#[test]
fn rfc9000_6_1_version_negotiation_is_rate_limited() {
    let mut server = server_with(|config| {
        config.limits.answers = 1000;
        config.limits.version_negotiations = RateLimit {
            per_second: 10,
            burst: 5,
        };
    });
    let mut answered = |now| {
        let datagram = long_header(0x5a6a_7a8a, &[1; 8], &[2; 8], 1200);
        (0..100)
            .filter(|_| {
                deliver(&mut server, now, &from_client(0), &datagram)
                    == Route::Answered(Answer::VersionNegotiation)
            })
            .count()
    };
    assert_eq!(answered(START), 5);
    assert_eq!(answered(START + Duration::from_millis(100)), 1);
}

fn resetting() -> Endpoint {
    server_with(|config| config.reset_key = Some(ResetSecret([3; 32])))
}

#[test]
fn rfc9000_10_3_a_reset_is_smaller_than_its_trigger() {
    let mut server = resetting();
    let path = from_client(0);
    let unknown = id(&[9; 8]);
    let mut now = START;
    let mut seen = Vec::new();
    for len in 0..=1500 {
        now = now + Duration::from_secs(1);
        let mut datagram = vec![0x4a; len];
        if let Some(target) = datagram.get_mut(1..9) {
            target.copy_from_slice(unknown.as_slice());
        }
        let route = deliver(&mut server, now, &path, &datagram);
        if len < 22 {
            assert!(matches!(route, Route::Dropped(_)), "{len}: {route:?}");
            continue;
        }
        assert_eq!(route, Route::Answered(Answer::StatelessReset));
        let reset = answer(&mut server, now, &path);
        let expected = if len <= 43 { len - 1 } else { 42 };
        assert_eq!(reset.len(), expected);
        assert!(reset.len() >= 21);
        assert_eq!(reset[0] & 0xc0, 0x40, "looks like a short header");
        let key = ResetKey::new(&[3; 32]);
        assert_eq!(reset[reset.len() - 16..], *key.token(&unknown).as_bytes());
        seen.push(reset[1..5].to_vec());
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() > 1450, "unpredictable: {}", seen.len());
    assert_empty(&server);
}

#[test]
fn rfc9000_10_3_without_a_key_or_for_other_workers_there_is_no_reset() {
    use crate::cid::{QuicLbConfig, QuicLbIds};
    let mut server = server_with(|_| {});
    let route = deliver(&mut server, START, &from_client(0), &[0x41; 100]);
    assert_eq!(route, Route::Dropped(DropReason::UnknownConnection));

    let ids = |worker: u8| {
        let config = QuicLbConfig {
            rotation: 1,
            server_id_len: 3,
            nonce_len: 8,
            key: Some([1; 16]),
            encodes_length: false,
        };
        QuicLbIds::new(config, &[5, 5, worker], [worker; 32]).expect("possible")
    };
    let mut server = server_with(|config| {
        config.reset_key = Some(ResetSecret([3; 32]));
        config.ids = Box::new(ids(1));
    });
    let key = Arc::new(ResetKey::new(&[3; 32]));
    let mut datagram = |worker| {
        let id = ids(worker).generator(&key, [1; 32]).generate();
        let datagram = [&[0x41][..], id.as_slice(), &[0; 50]].concat();
        deliver(&mut server, START, &from_client(0), &datagram)
    };
    assert_eq!(datagram(2), Route::Dropped(DropReason::Foreign));
    assert_eq!(datagram(1), Route::Answered(Answer::StatelessReset));
}

/// During a change of the key, a server that was restarted has unknown connections with IDs of both layouts.
#[test]
fn rfc9000_10_3_the_replaced_layout_of_connection_ids_still_gets_resets() {
    use crate::cid::{QuicLbConfig, QuicLbIds};
    let ids = |rotation: u8, nonce_len| {
        let config = QuicLbConfig {
            rotation,
            server_id_len: 3,
            nonce_len,
            key: Some([rotation; 16]),
            encodes_length: false,
        };
        QuicLbIds::new(config, &[5, 5, 1], [rotation; 32]).expect("possible")
    };
    let mut server = server_with(|config| {
        config.reset_key = Some(ResetSecret([3; 32]));
        config.ids = Box::new(ids(1, 8));
    });
    let key = Arc::new(ResetKey::new(&[3; 32]));
    let deliver_id = |server: &mut Endpoint, rotation| {
        let id = ids(rotation, 8).generator(&key, [1; 32]).generate();
        let datagram = [&[0x41][..], id.as_slice(), &[0; 50]].concat();
        deliver(server, START, &from_client(0), &datagram)
    };
    let (reset, foreign) = (
        Route::Answered(Answer::StatelessReset),
        Route::Dropped(DropReason::Foreign),
    );
    assert_eq!(deliver_id(&mut server, 2), foreign);
    let other_length = server.replace_ids(Box::new(ids(2, 9)));
    assert_eq!(other_length, Err(EndpointConfigError::IdLength));
    assert_eq!(deliver_id(&mut server, 2), foreign);
    assert_eq!(server.replace_ids(Box::new(ids(2, 8))), Ok(()));
    assert_eq!(deliver_id(&mut server, 1), reset);
    assert_eq!(deliver_id(&mut server, 2), reset);
    // One earlier layout is remembered.
    assert_eq!(server.replace_ids(Box::new(ids(3, 8))), Ok(()));
    assert_eq!(deliver_id(&mut server, 1), foreign);
    assert_eq!(deliver_id(&mut server, 3), reset);
}

#[test]
fn rfc9000_10_3_resets_are_rate_limited() {
    let mut server = resetting();
    let datagram = [0x41; 100];
    let routes: Vec<_> = (0..1000)
        .map(|_| {
            let route = deliver(&mut server, START, &from_client(0), &datagram);
            let _ = sent(&mut server, START);
            route
        })
        .collect();
    let answered = routes
        .iter()
        .filter(|route| **route == Route::Answered(Answer::StatelessReset));
    assert_eq!(answered.count(), 50);
    assert_eq!(routes[999], Route::Dropped(DropReason::TooManyAnswers));
}

/// A server that lost its state ends the connections of its clients, and no other host can.
#[test]
fn rfc9000_10_3_1_a_reset_ends_the_connection_of_its_token() {
    let mut world = World::new(resetting(), 1);
    world.begin(0);
    let handle = world.handles[0].expect("began");
    while world.clients[0].peek(handle).map(Connection::stage) != Some(Stage::Confirmed) {
        assert!(world.step());
    }
    let now = world.now;
    let known = world.server.peek(world.accepted[0]).expect("lives");
    let id = known.local_ids().next().expect("one");
    let client = &mut world.clients[0];
    let _ = sent(client, now);
    // A server with the same key and no state.
    let mut server = resetting();
    let mut long_enough = [&[0x41], id.as_slice()].concat();
    long_enough.resize(100, 0);
    let route = deliver(&mut server, now, &from_client(0), &long_enough);
    assert_eq!(route, Route::Answered(Answer::StatelessReset));
    let reset = answer(&mut server, now, &from_client(0));
    // From another address it has no effect.
    let route = deliver(client, now, &to_server(0), &{
        let mut other = reset.clone();
        *other.last_mut().expect("long") ^= 1;
        other
    });
    assert_eq!(route, Route::Dropped(DropReason::UnknownConnection));
    let mut elsewhere = to_server(0);
    elsewhere.remote.set_port(4);
    let route = deliver(client, now, &elsewhere, &reset);
    assert_eq!(route, Route::Dropped(DropReason::UnknownConnection));
    let route = deliver(client, now, &to_server(0), &reset);
    assert_eq!(route, Route::Reset(handle));
    assert_eq!(client.statistics().resets_received, 1);
    // So is one that looks like a long header (§10.3.1).
    let mut long = reset.clone();
    long[0] |= 0x80;
    assert_eq!(
        deliver(client, now, &to_server(0), &long),
        Route::Reset(handle)
    );
    // The connection is draining, and has been returned.
    assert!(sent(client, now).is_empty());
    assert!(client.poll_closed().is_some());
    let route = deliver(client, now, &to_server(0), &reset);
    assert_eq!(route, Route::Closed(handle));
}

/// A server that is replaced while the client has not confirmed its handshake sends no response to Handshake packets;
/// what the client has sent in 1-RTT packets is repeated with them, and in a datagram of its own from the second probe
/// timeout on, which the new server can reset.
#[test]
fn rfc9002_6_2_4_a_server_replaced_during_the_handshake_is_noticed_early() {
    let mut world = World::new(resetting(), 1);
    world.begin(0);
    let is_confirmed = |world: &World| {
        let handle = world.accepted.first()?;
        Some(world.server.peek(*handle)?.stage() == Stage::Confirmed)
    };
    while is_confirmed(&world) != Some(true) {
        assert!(world.step());
    }
    // HANDSHAKE_DONE was not sent, and the rest of the request does not arrive.
    world.server = resetting();
    world.flying.clear();
    let start = world.now;
    while world.closed.is_empty() && world.step() {}
    let by_reset = (Some(0), Some(crate::close::CloseReason::StatelessReset));
    assert_eq!(world.closed, [by_reset]);
    // The round trip is 20 ms: the first probe timeout is 60 ms at most, the second follows after twice that.
    let after = world.now.since(start);
    assert!(after < Duration::from_millis(500), "{after:?}");
}

#[test]
fn clients_do_not_respond_to_unknown_packets() {
    let mut client = client(1);
    let unknown = long_header(0x5a6a_7a8a, &[1; 8], &[2; 8], 1200);
    for datagram in [Probe::new().datagram(), unknown] {
        let route = deliver(&mut client, START, &to_server(0), &datagram);
        assert_eq!(route, Route::Dropped(DropReason::NoServer));
    }
    let route = deliver(&mut client, START, &to_server(0), &[0x41; 100]);
    assert_eq!(route, Route::Dropped(DropReason::UnknownConnection));
    assert_empty(&client);
}

#[test]
fn tokens_are_not_in_debug_output() {
    assert!(!format!("{:?}", ResetSecret([77; 32])).contains("77"));
    assert_eq!(token(1), token(1));
}

/// What another process behind the same address would answer.
#[test]
fn packets_of_another_endpoint_are_foreign_and_those_of_this_one_or_of_a_new_client_are_not() {
    let mut first = server_with(|_| {});
    let mut second = server_with(|_| {});
    let mut client = client(3);
    let handle = connect(&mut client, START, 0);
    let path = from_client(0);
    let (mut now, mut short) = (START, 0);
    for round in 0..4 {
        for (_, mut datagram) in sent(&mut client, now) {
            // The first flight creates a connection at either; later ones have the IDs of the first.
            assert_eq!(
                second.is_foreign(&path, &mut datagram),
                round > 0,
                "{round}"
            );
            short += usize::from(datagram[0] & 0x80 == 0);
            let mut before = datagram.clone();
            let is_known = first.is_foreign(&path, &mut before);
            assert!(!is_known, "{round}");
            assert_eq!(before, datagram);
            let _ = deliver(&mut first, now, &path, &datagram);
            assert!(!first.is_foreign(&path, &mut datagram), "{round}");
        }
        for (_, datagram) in sent(&mut first, now) {
            let _ = deliver(&mut client, now, &to_server(0), &datagram);
        }
        now = now + DELAY;
        let streams = client.connection(handle).expect("it is open").streams();
        if let Some(id) = streams.open(lastbyte_wire::Direction::Bidirectional) {
            streams.send_source(id, Box::new(vec![1; 8])).expect("open");
        }
    }
    assert!(short > 0);
    // Neither noise, nor an unknown version, nor a new client of either version.
    for mut datagram in [
        vec![],
        vec![0x40],
        vec![0xc0, 0, 0, 0, 9, 1, 1, 1, 1],
        Probe::new().datagram(),
        Probe {
            version: Version::V2,
            ..Probe::new()
        }
        .datagram(),
    ] {
        assert!(!second.is_foreign(&path, &mut datagram), "{datagram:?}");
    }
    let mut spoiled = Probe::new().datagram();
    let last = spoiled.len() - 1;
    spoiled[last] ^= 1;
    assert!(second.is_foreign(&path, &mut spoiled));
    assert_eq!(second.statistics().datagrams, 0);
}
