//! Many connections at once.

use lastbyte_wire::Direction;

use super::*;
use crate::{
    cid::{QuicLbConfig, QuicLbIds},
    close::CloseReason,
};

fn crowd(count: usize, lose: u64) -> World {
    crowd_at(server_with(|_| {}), count, lose)
}

fn crowd_at(server: Endpoint, count: usize, lose: u64) -> World {
    let mut world = World::new(server, count);
    world.lose = lose;
    for index in 0..count {
        world.begin(index);
        if index % 7 == 0 {
            world.step();
        }
    }
    world.run();
    world
}

#[test]
fn two_hundred_clients_connect_and_close() {
    let world = crowd(200, 0);
    assert_eq!(world.accepted.len(), 200);
    assert_eq!(world.up.len(), 200);
    let mut bodies: Vec<_> = world.up.values().cloned().collect();
    bodies.sort_unstable();
    let mut expected: Vec<_> = (0..200).map(body).collect();
    expected.sort_unstable();
    assert!(bodies == expected, "each got what was sent to it");
    for (index, arrived) in &world.down {
        let salt = usize::from(body(*index)[0]) + 1;
        assert!(*arrived == body(salt), "client {index}");
    }
    assert_eq!(world.closed.len(), 400);
    for (who, reason) in &world.closed {
        let expected = match who {
            None => CloseReason::PeerApplication { code: 0 },
            Some(_) => CloseReason::LocalApplication { code: 0 },
        };
        assert_eq!(*reason, Some(expected));
    }
    for endpoint in world.clients.iter().chain([&world.server]) {
        assert_empty(endpoint);
    }
    let statistics = world.server.statistics();
    assert_eq!(statistics.accepted, 200);
    assert_eq!(statistics.closed, 200);
    assert_eq!(
        statistics.dropped[DropReason::UnknownConnection as usize],
        0
    );
    assert!(world.now.since(START) < Duration::from_secs(2));
}

#[test]
fn two_hundred_clients_over_a_lossy_path() {
    let world = crowd(200, 15);
    assert_eq!(
        world
            .down
            .values()
            .filter(|body| body.len() == 3000)
            .count(),
        200
    );
    for endpoint in world.clients.iter().chain([&world.server]) {
        assert_empty(endpoint);
    }
}

#[test]
fn servers_with_load_balancer_ids_complete_transfers() {
    for nonce_len in [8, 12] {
        let config = QuicLbConfig {
            rotation: 0,
            server_id_len: 4,
            nonce_len,
            key: Some([6; 16]),
            encodes_length: true,
        };
        let ids = QuicLbIds::new(config, &[1, 2, 3, 4], [5; 32]).expect("possible");
        let serve = || server_with(|config| config.ids = Box::new(ids.clone()));
        let mut world = World::new(serve(), 1);
        world.begin(0);
        while world.server.handshakes() > 0 || world.accepted.is_empty() {
            assert!(world.step());
        }
        let handle = world.accepted[0];
        for id in world.server.peek(handle).expect("lives").local_ids() {
            let decoded = ids.layout().decode(id.as_slice()).expect("ours");
            assert_eq!(decoded.server_id(), [1, 2, 3, 4]);
        }
        let world = crowd_at(serve(), 20, 30);
        assert_eq!(world.down.len(), 20);
    }
}

#[test]
fn data_stays_with_its_connection_and_touched_connections_are_polled_once() {
    let mut server = Endpoint::<String>::with_data(server_config(), [1; 32]).expect("an endpoint");
    let mut handles = Vec::new();
    let mut copies = Vec::new();
    for index in 0..3 {
        let mut client = client(index as u8);
        let _ = connect(&mut client, START, index);
        for (_, mut datagram) in sent(&mut client, START) {
            let path = from_client(index);
            let route = server.route_with(START, &path, &mut datagram, |_, connection| {
                connection.network().remote.to_string()
            });
            if let Route::Accepted(handle) = route {
                handles.push(handle);
            }
            copies.push((path, datagram));
        }
    }
    let mut touch = |server: &mut Endpoint<String>| {
        for (path, datagram) in &mut copies {
            let route = server.route_with(START, path, datagram, |_, _| unreachable!("no other"));
            assert!(matches!(route, Route::Connection(_)), "{route:?}");
        }
    };
    touch(&mut server);
    assert_eq!(handles.len(), 3);
    let polled: Vec<_> = core::iter::from_fn(|| server.poll_touched()).collect();
    assert_eq!(polled, handles);
    for (index, handle) in handles.iter().enumerate() {
        let (_, data) = server.entry(*handle).expect("lives");
        assert_eq!(*data, client_address(index).to_string());
        data.push('!');
    }
    // Those that are closed are not polled.
    touch(&mut server);
    let _ = sent(&mut server, START);
    let late = START + Limits::default().handshake_timeout;
    assert_eq!(server.poll_timeout(late), None);
    assert_eq!(server.poll_touched(), None);
    let mut data: Vec<_> = core::iter::from_fn(|| server.poll_closed())
        .map(|closed| closed.data)
        .collect();
    data.sort_unstable();
    let expected = [0, 1, 2].map(|index| format!("{}!", client_address(index)));
    assert_eq!(data, expected);
}

#[test]
fn ready_connections_take_turns() {
    let mut world = World::new(server_with(|_| {}), 3);
    for index in 0..3 {
        world.begin(index);
    }
    while world.server.handshakes() > 0 || world.accepted.len() < 3 {
        assert!(world.step());
    }
    let now = world.now;
    let _ = sent(&mut world.server, now);
    for handle in world.accepted.clone() {
        let streams = world.server.connection(handle).expect("lives").streams();
        let stream = streams.open(Direction::Unidirectional).expect("a stream");
        streams
            .send_source(stream, Box::new(vec![1; 50_000]))
            .expect("open");
    }
    let to: Vec<_> = sent(&mut world.server, now)
        .iter()
        .map(|(path, _)| path.remote)
        .collect();
    assert!(to.len() >= 9, "{}", to.len());
    for turn in to.chunks_exact(3).take(3) {
        let mut turn = turn.to_vec();
        turn.sort_unstable();
        turn.dedup();
        assert_eq!(turn.len(), 3, "each once: {to:?}");
    }
}

#[test]
fn an_endpoint_is_send() {
    fn check<T: Send>(_: &T) {}
    check(&server_with(|_| {}));
}

#[test]
fn same_seed_same_datagrams() {
    let trace = |lose| crowd(20, lose).trace;
    assert_eq!(trace(10), trace(10));
    assert_ne!(trace(10), trace(0));
}

#[test]
fn rfc9000_5_2_all_ids_of_a_connection_route_to_it() {
    let mut world = World::new(server_with(|_| {}), 2);
    world.closes = false;
    world.begin(0);
    world.begin(1);
    while !(0..2).all(|index| {
        let handle = world.handles[index].expect("began");
        let client = world.clients[index].peek(handle).expect("lives");
        client.stage() == Stage::Confirmed
    }) {
        assert!(world.step());
    }
    let [first, second] = world.accepted[..] else {
        panic!("two were accepted");
    };
    for handle in [first, second] {
        let ids: Vec<_> = world
            .server
            .peek(handle)
            .expect("lives")
            .local_ids()
            .collect();
        assert!(ids.len() >= 2, "{ids:?}");
        for id in ids {
            let mut datagram = vec![0x40; 60];
            datagram[1..9].copy_from_slice(id.as_slice());
            // Whatever address it comes from.
            let route = world
                .server
                .route(world.now, &from_client(77), &mut datagram);
            assert_eq!(route, Route::Connection(handle));
        }
    }
    // A late copy of a first packet creates nothing new.
    let before = world.server.connections();
    let handle = world.server.peek(first).map(|_| first).expect("lives");
    let opening = world
        .server
        .slots
        .get(handle)
        .and_then(|slot| slot.routes.initial);
    let late = Probe {
        destination: opening.expect("of a server").destination,
        ..Probe::new()
    };
    let path = world.server.peek(first).expect("lives").network();
    let route = world.server.route(world.now, &path, &mut late.datagram());
    assert_eq!(route, Route::Connection(first));
    // The same ID from elsewhere is another client's.
    let route = deliver(
        &mut world.server,
        world.now,
        &from_client(55),
        &late.datagram(),
    );
    assert!(matches!(route, Route::Accepted(handle) if handle != first));
    assert_eq!(world.server.connections(), before + 1);
}

#[test]
fn rfc9000_5_2_1_clients_without_ids_are_found_by_address() {
    let mut server = server_with(|_| {});
    let mut config = EndpointConfig::client();
    config.ids = Box::new(crate::cid::RandomIds { len: 0 });
    let mut client = Endpoint::new(config, [4; 32]).expect("an endpoint");
    let handles: Vec<_> = (0..3)
        .map(|index| connect(&mut client, START, index))
        .collect();
    let taken = client.connect(
        START,
        to_server(1),
        "localhost",
        &Arc::new(super::config()),
        Arc::new(client_crypto(1)),
        Vec::new(),
    );
    assert_eq!(taken, Err(ConnectError::PathInUse));
    let mut now = START;
    for _ in 0..6 {
        for (path, datagram) in sent(&mut client, now) {
            let path = NetworkPath {
                local: path.remote,
                remote: path.local,
            };
            let _ = deliver(&mut server, now, &path, &datagram);
        }
        now = now + DELAY;
        for (path, datagram) in sent(&mut server, now) {
            let path = NetworkPath {
                local: path.remote,
                remote: path.local,
            };
            assert!(matches!(
                deliver(&mut client, now, &path, &datagram),
                Route::Connection(_)
            ));
        }
        now = now + DELAY;
    }
    for handle in &handles {
        let connection = client.peek(*handle).expect("lives");
        assert_eq!(connection.stage(), Stage::Confirmed);
    }
    // A datagram routed by its address may still be a stateless reset (§10.3.1).
    let doomed = client.peek(handles[1]).expect("lives");
    let reset = doomed.reset_tokens().next().expect("the server gave one");
    let mut datagram = vec![0x41; 60];
    datagram[44..].copy_from_slice(reset.as_bytes());
    let route = client.route(now, &to_server(1), &mut datagram);
    assert_eq!(route, Route::Reset(handles[1]));
    datagram[59] ^= 1;
    let route = client.route(now, &to_server(2), &mut datagram);
    assert_eq!(route, Route::Connection(handles[2]));
    assert_eq!(client.demux.sizes()[2], 3);
    for handle in handles {
        client.connection(handle).expect("lives").close(now, 1);
    }
    let _ = sent(&mut client, now);
    while let Some(at) = client.deadline() {
        while client.poll_timeout(at).is_some() {}
        let _ = sent(&mut client, at);
    }
    while client.poll_closed().is_some() {}
    assert_empty(&client);
}

/// A server and a client whose handshake is confirmed, with nothing to send, and a late datagram of the client.
fn quiet() -> (World, Handle, Vec<u8>) {
    let mut world = World::new(
        server_with(|config| config.reset_key = Some(ResetSecret([4; 32]))),
        1,
    );
    world.begin(0);
    let client = world.handles[0].expect("began");
    while world.clients[0].peek(client).map(Connection::stage) != Some(Stage::Confirmed) {
        assert!(world.step());
    }
    let handle = world.accepted[0];
    let _ = sent(&mut world.server, world.now);
    let id = world
        .server
        .peek(handle)
        .and_then(|peer| peer.local_ids().next());
    let mut late = [&[0x41], id.expect("one").as_slice()].concat();
    late.resize(100, 0);
    (world, handle, late)
}

/// The end of the closing or draining state of the server's only connection.
fn pass_the_end(server: &mut Endpoint, now: Time) {
    let end = server.deadline().expect("a timer");
    assert!(end > now, "{end:?}");
    assert_eq!(server.poll_timeout(end), None);
    assert_empty(server);
}

#[test]
fn rfc9000_10_2_a_closed_connection_is_released_at_once_and_repeats_its_close() {
    let (world, handle, late) = quiet();
    let (mut server, now) = (world.server, world.now);
    server.connection(handle).expect("lives").close(now, 5);
    let datagrams = sent(&mut server, now);
    assert_eq!(datagrams.len(), 1);
    let closed = server.poll_closed().expect("it needs nothing of it");
    assert_eq!(closed.handle, handle);
    assert_eq!(
        closed.connection.close_reason(),
        Some(CloseReason::LocalApplication { code: 5 })
    );
    assert!(server.connection(handle).is_none() && server.peek(handle).is_none());
    assert_eq!((server.connections(), server.handles().count()), (1, 0));
    // The same datagram, and no stateless reset.
    for answers in [1, 0, 1, 0, 0, 0, 1] {
        let route = deliver(&mut server, now, &from_client(0), &late);
        assert_eq!(route, Route::Closed(handle));
        assert_eq!(sent(&mut server, now), datagrams[..answers]);
    }
    pass_the_end(&mut server, now);
    assert!(server.poll_closed().is_none(), "once");
    assert_eq!(server.statistics().closed, 1);
    let route = deliver(&mut server, now, &from_client(0), &late);
    assert_eq!(route, Route::Answered(Answer::StatelessReset));
}

#[test]
fn rfc9000_10_2_2_a_draining_connection_is_released_at_once_and_sends_nothing() {
    let (mut world, handle, late) = quiet();
    let now = world.now;
    let client = world.handles[0].expect("began");
    let client = world.clients[0].connection(client).expect("lives");
    client.close(now, 5);
    for (_, datagram) in sent(&mut world.clients[0], now) {
        let route = deliver(&mut world.server, now, &from_client(0), &datagram);
        assert_eq!(route, Route::Connection(handle));
    }
    let server = &mut world.server;
    assert!(sent(server, now).is_empty());
    let closed = server.poll_closed().expect("it needs nothing of it");
    assert_eq!(
        closed.connection.close_reason(),
        Some(CloseReason::PeerApplication { code: 5 })
    );
    for _ in 0..100 {
        let route = deliver(server, now, &from_client(0), &late);
        assert_eq!(route, Route::Closed(handle));
        assert!(sent(server, now).is_empty());
    }
    pass_the_end(server, now);
}

/// A connection that may not send its `CONNECTION_CLOSE` yet is not released before it has.
#[test]
fn rfc9000_8_1_a_close_waits_for_the_amplification_limit() {
    let mut server = server_with(|_| {});
    let probe = Probe::new().datagram();
    let Route::Accepted(handle) = server.route(START, &from_client(0), &mut probe.clone()) else {
        panic!("accepted");
    };
    // Nothing of the client was passed to the connection, so nothing may be sent.
    server.connection(handle).expect("lives").close(START, 5);
    assert!(sent(&mut server, START).is_empty());
    assert!(server.poll_closed().is_none());
    let route = deliver(&mut server, START, &from_client(0), &probe);
    assert_eq!(route, Route::Connection(handle));
    assert_eq!(sent(&mut server, START).len(), 1);
    assert!(server.poll_closed().is_some());
    assert_eq!(
        deliver(&mut server, START, &from_client(0), &probe),
        Route::Closed(handle)
    );
}

#[test]
fn idle_connections_need_no_work_and_time_out() {
    let mut world = World::new(server_with(|_| {}), 50);
    for index in 0..50 {
        world.begin(index);
    }
    while world.server.handshakes() > 0 || world.accepted.len() < 50 {
        // No stream is opened: nothing is read from the clients.
        assert!(world.step());
    }
    // Their peers are cut off: only the server continues.
    let mut server = world.server;
    let mut now = world.now;
    let _ = sent(&mut server, now);
    assert!(server.ready.is_empty());
    while let Some(at) = server.deadline() {
        assert!(at >= now || at == Time::ZERO, "time goes back");
        now = now.max(at);
        while server.poll_timeout(now).is_some() {}
        let _ = sent(&mut server, now);
    }
    let mut count = 0;
    while server.poll_closed().is_some() {
        count += 1;
    }
    assert_eq!(count, 50);
    assert_empty(&server);
    assert!((30..40).contains(&now.since(START).as_secs()), "{now:?}");
}
