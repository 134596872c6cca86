//! The end of each request over HTTP/3: whatever ends it, nothing is kept for it, it has one line in the access log, and a
//! client that wastes requests loses its connection.

use std::time::Duration;

use lastbyte_http3::{Code, Response};
use lastbyte_origin::{
    FullResponse,
    exchange::{Exchange, Piece},
};
use lastbyte_quic::{close::CloseReason, stream::StreamEvent};
use lastbyte_wire::{Direction, StreamId, VarInt};

use crate::world::{Client, DELAY, World, frame, head, poll_once};

const BIDI: Direction = Direction::Bidirectional;

/// Opens a stream with a whole GET.
fn get(client: &mut Client, path: &str) -> Option<StreamId> {
    let id = client.open(BIDI)?;
    client.write(id, &head("GET", path, &[]), true);
    Some(id)
}

/// The count of lines that say whether the response was complete.
fn logged(world: &World, is_complete: bool) -> usize {
    let said = format!("\"complete\":{is_complete}");
    let lines = world.logged.iter();
    lines.filter(|line| line.contains(&said)).count()
}

/// Has a client waste requests in one way, until its connection is closed.
fn wasted(mut waste: impl FnMut(&mut World)) -> World {
    let mut world = World::new(1);
    for _ in 0..50 {
        for _ in 0..20 {
            waste(&mut world);
        }
        world.pass(DELAY);
        world.check();
        if world.clients[0].closed.is_some() {
            break;
        }
    }
    world.pass(4 * DELAY);
    let code = Code::EXCESSIVE_LOAD.get();
    let reason = Some(CloseReason::PeerApplication { code });
    assert_eq!(world.clients[0].closed, reason);
    let requests = world.requests();
    assert!((200..500).contains(&requests), "{requests}");
    world.end();
    assert_eq!(logged(&world, false), requests);
    world
}

#[test]
fn a_response_that_is_stopped_in_the_packet_of_its_request_is_logged_and_counted() {
    for path in ["/", "/large", "/late", "/hint", "/task"] {
        for stops_first in [false, true] {
            let mut world = wasted(|world| {
                let now = world.now;
                let client = &mut world.clients[0];
                let Some(id) = client.open(BIDI) else { return };
                if stops_first {
                    client.stop(now, id);
                }
                client.write(id, &head("GET", path, &[]), true);
                client.stop(now, id);
            });
            let statistics = world.server.application().statistics();
            // A few were in flight when the connection was closed.
            let counted = statistics.requests - statistics.resets;
            assert!(counted <= 100, "{path}: {statistics:?}");
            assert_eq!(statistics.cut_off, 0, "{path}: the client did it");
            assert_eq!(statistics.responses, [0; 6], "{path}");
        }
    }
}

#[test]
fn a_response_that_is_stopped_before_its_request_arrives_is_logged_and_counted() {
    wasted(|world| {
        let now = world.now;
        let Some(id) = world.clients[0].open(BIDI) else {
            return;
        };
        world.clients[0].stop(now, id);
        world.turn();
        world.clients[0].write(id, &head("GET", "/", &[]), true);
    });
}

/// `SETTINGS_MAX_FIELD_SECTION_SIZE` of 1: no response can be sent.
#[test]
fn responses_larger_than_the_client_accepts_are_logged_and_counted() {
    for path in ["/", "/large", "/late", "/task"] {
        let mut has_settings = false;
        let mut world = wasted(|world| {
            if !has_settings {
                has_settings = true;
                let control = world.clients[0].open(Direction::Unidirectional);
                world.clients[0].write(control.expect("permitted"), &[0, 4, 2, 6, 1], false);
                world.pass(2 * DELAY);
            }
            get(&mut world.clients[0], path);
            world.turn();
            let exchanges =
                std::mem::take(&mut *world.scripted.exchanges.lock().expect("no panic"));
            for mut exchange in exchanges {
                let response = Response::new(200).with("content-type", "text/plain");
                let _ = poll_once(exchange.outgoing.begin(response));
            }
        });
        assert_eq!(
            world.server.application().statistics().responses,
            [0; 6],
            "{path}"
        );
    }
}

/// Faults of the handler are not the client's: they end the response, and not the connection.
#[test]
fn responses_that_cannot_be_sent_end_and_the_connection_goes_on() {
    let mut world = World::new(1);
    for path in ["/invalid", "/short", "/failing"] {
        for _ in 0..1000 {
            get(&mut world.clients[0], path);
            world.pass(6 * DELAY);
            world.check();
        }
    }
    get(&mut world.clients[0], "/");
    world.pass(6 * DELAY);
    assert_eq!(world.clients[0].closed, None);
    assert_eq!(world.kept().records, 0);
    assert_eq!(world.requests(), 3001);
    assert_eq!(logged(&world, false), 3000);
    assert_eq!(world.server.application().statistics().cut_off, 3000);
    world.end();
}

/// A handler's task that ends without a response, or in the middle of one.
#[test]
fn a_task_that_gives_up_ends_its_request() {
    let mut world = World::new(1);
    for step in 0..4 {
        let id = get(&mut world.clients[0], "/task").expect("permitted");
        world.pass(2 * DELAY);
        let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
        let mut exchange = exchange.expect("it was passed on");
        let sent = match step {
            0 => None,
            1 => Some(poll_once(exchange.outgoing.inform(Response::new(103)))),
            2 => Some(poll_once(exchange.outgoing.begin(Response::new(200)))),
            _ => {
                let begun = poll_once(exchange.outgoing.begin(Response::new(200)));
                assert_eq!(begun, Some(Ok(())));
                Some(poll_once(exchange.outgoing.data(vec![b'x'; 5000].into())))
            }
        };
        assert!(sent.is_none_or(|sent| sent == Some(Ok(()))));
        drop(exchange);
        world.pass(10 * DELAY);
        assert_eq!(world.kept().records, 0, "{step} {id:?}");
        assert_eq!(world.kept().running, 0, "{step} {id:?}");
    }
    assert_eq!(logged(&world, true), 2, "502");
    assert_eq!(logged(&world, false), 2);
    world.end();
}

/// A handler that fails in the middle of a body, as a proxy whose upstream breaks off: the client receives what came before.
#[test]
fn rfc9114_4_1_a_response_that_breaks_off_is_reset_after_what_was_sent() {
    for len in [1, 5000, 200_000] {
        let mut world = World::new(1);
        let id = get(&mut world.clients[0], "/task").expect("permitted");
        world.pass(2 * DELAY);
        let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
        let mut exchange = exchange.expect("it was passed on");
        let begun = poll_once(exchange.outgoing.begin(Response::new(200)));
        assert_eq!(begun, Some(Ok(())));
        let mut sent = 0;
        while sent < len {
            let piece = vec![b'x'; (len - sent).min(10_000)];
            sent += piece.len();
            assert_eq!(
                poll_once(exchange.outgoing.data(piece.into())),
                Some(Ok(()))
            );
            if sent < len {
                world.pass(2 * DELAY);
            }
        }
        // In the same turn as the last piece.
        drop(exchange);
        world.pass(Duration::from_secs(1));
        let received = &world.clients[0].received[&id];
        let pieces = received.split(|byte| *byte != b'x');
        let count: usize = pieces.map(<[u8]>::len).sum();
        assert!(count >= len, "{len}: {count}");
        let code = VarInt::from(Code::INTERNAL_ERROR);
        assert!(
            world.clients[0]
                .events
                .contains(&StreamEvent::Reset { id, code }),
            "{len}"
        );
        assert_eq!((world.kept().records, world.kept().running), (0, 0));
        assert_eq!(logged(&world, false), 1);
        world.end();
    }
}

/// A client that does not acknowledge what came before, because it reads nothing.
#[test]
fn a_response_that_breaks_off_ends_although_its_client_reads_nothing() {
    let mut world = World::new(1);
    world.clients[0].reads = false;
    get(&mut world.clients[0], "/task").expect("permitted");
    world.pass(2 * DELAY);
    let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
    let mut exchange = exchange.expect("it was passed on");
    let _ = poll_once(exchange.outgoing.begin(Response::new(200)));
    while poll_once(exchange.outgoing.data(vec![b'x'; 10_000].into())) == Some(Ok(())) {
        world.pass(2 * DELAY);
    }
    drop(exchange);
    world.pass(Duration::from_secs(120));
    assert_eq!((world.kept().records, world.kept().running), (0, 0));
    assert_eq!(logged(&world, false), 1);
    world.end();
}

/// The number of a key in a line.
fn number(line: &str, key: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Of responses piece by piece: with and without an announced length, complete, cut off, and to HEAD.
#[test]
fn both_logs_have_the_bytes_of_a_body_that_were_sent() {
    for (method, announced, is_complete, bytes, content_length) in [
        ("GET", None, true, 5000, 5000),
        ("GET", Some("5000"), true, 5000, 5000),
        ("GET", None, false, 5000, 5000),
        ("GET", Some("9000"), false, 5000, 9000),
        ("HEAD", Some("5000"), true, 0, 0),
        ("HEAD", None, true, 0, 0),
    ] {
        let mut world = World::new(1);
        let id = world.clients[0].open(BIDI).expect("permitted");
        world.clients[0].write(id, &head(method, "/task", &[]), true);
        world.pass(2 * DELAY);
        let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
        let mut exchange = exchange.expect("it was passed on");
        let mut response = Response::new(200);
        if let Some(length) = announced {
            response = response.with("content-length", length);
        }
        assert_eq!(poll_once(exchange.outgoing.begin(response)), Some(Ok(())));
        let piece = vec![b'x'; 5000].into();
        assert_eq!(poll_once(exchange.outgoing.data(piece)), Some(Ok(())));
        world.pass(4 * DELAY);
        if is_complete {
            assert_eq!(poll_once(exchange.outgoing.end(None)), Some(Ok(())));
        } else {
            drop(exchange);
        }
        world.pass(10 * DELAY);
        world.end();
        let [line] = &world.logged[..] else {
            panic!("{:?}", world.logged);
        };
        let what = format!("{method} {announced:?} {line}");
        assert_eq!(logged(&world, is_complete), 1, "{what}");
        assert_eq!(number(line, "bytes"), Some(bytes), "{what}");
        let found = number(&world.connections[0], "content_length");
        assert_eq!(found, Some(content_length), "{what}");
    }
}

/// Of bodies with a source: one that fails with the read after 50 000 bytes, and one that the client stops.
#[test]
fn a_response_that_is_cut_off_is_logged_with_the_bytes_that_were_sent() {
    for path in ["/failing", "/large"] {
        let mut world = World::new(1);
        let id = get(&mut world.clients[0], path).expect("permitted");
        world.pass(2 * DELAY);
        if path == "/large" {
            // After its first flight.
            let now = world.now;
            world.clients[0].stop(now, id);
        }
        world.pass(20 * DELAY);
        world.end();
        assert_eq!(logged(&world, false), 1, "{path}");
        let bytes = number(&world.logged[0], "bytes").expect("a number");
        assert!((5000..52_000).contains(&bytes), "{path}: {bytes}");
        let announced = number(&world.connections[0], "content_length");
        assert_eq!(announced, Some(100_000), "{path}");
    }
}

/// What clients do counts as cancelled, once for a request; what the handler or a limit does counts as cut off.
#[test]
fn responses_cut_off_are_those_that_the_client_did_not_end() {
    let mut world = World::new(3);
    let counts = |world: &mut World| {
        let statistics = world.server.application().statistics();
        (statistics.resets, statistics.cut_off)
    };
    let post = |world: &mut World, body: &[u8]| {
        let id = world.clients[0].open(BIDI).expect("permitted");
        let client = &mut world.clients[0];
        client.write(
            id,
            &head("POST", "/task", &[("content-length", "1")]),
            false,
        );
        client.write(id, &frame(0, body), false);
        world.pass(2 * DELAY);
        id
    };
    // Reset, and then stopped.
    let id = post(&mut world, b"");
    let now = world.now;
    let quic = world.clients[0].quic().expect("it is open");
    let _ = quic.streams().reset(id, VarInt::from_u32(0x10c));
    world.clients[0].stop(now, id);
    world.pass(10 * DELAY);
    assert_eq!(counts(&mut world), (1, 0), "cancelled");
    // Longer than its length.
    post(&mut world, b"xx");
    world.pass(10 * DELAY);
    assert_eq!(counts(&mut world), (2, 0), "malformed");
    get(&mut world.clients[1], "/task");
    world.pass(2 * DELAY);
    let now = world.now;
    world.clients[1]
        .quic()
        .expect("it is open")
        .close(now, 0x100);
    world.pass(10 * DELAY);
    assert_eq!(counts(&mut world), (2, 0), "closed by the client");
    // It is given up in the middle.
    world.scripted.exchanges.lock().expect("no panic").clear();
    get(&mut world.clients[0], "/task");
    world.pass(2 * DELAY);
    let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
    let mut exchange = exchange.expect("it was passed on");
    let begun = poll_once(exchange.outgoing.begin(Response::new(200)));
    assert_eq!(begun, Some(Ok(())));
    drop(exchange);
    world.pass(10 * DELAY);
    assert_eq!(counts(&mut world), (2, 1), "given up by the handler");
    get(&mut world.clients[0], "/failing");
    world.pass(20 * DELAY);
    assert_eq!(counts(&mut world), (2, 2), "a body that cannot be read");
    world.end();
}

/// As of a WebSocket whose client leaves without a close, and of an upload that breaks off: the handler gives up a response that
/// its client does not wait for.
#[test]
fn a_response_whose_request_its_client_breaks_off_is_not_cut_off() {
    let websocket = (":protocol", "websocket");
    for (method, field) in [("CONNECT", websocket), ("POST", ("content-length", "9"))] {
        for is_begun in [false, true] {
            let mut world = World::new(1);
            let client = &mut world.clients[0];
            let id = client.open(BIDI).expect("permitted");
            client.write(id, &head(method, "/task", &[field]), false);
            client.write(id, &frame(0, b"a part"), false);
            world.pass(2 * DELAY);
            let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
            let mut exchange = exchange.expect("it was passed on");
            if is_begun {
                let begun = poll_once(exchange.outgoing.begin(Response::new(200)));
                assert_eq!(begun, Some(Ok(())));
            }
            world.pass(2 * DELAY);
            let quic = world.clients[0].quic().expect("it is open");
            let _ = quic.streams().reset(id, VarInt::from_u32(0x10c));
            world.pass(2 * DELAY);
            let part = poll_once(exchange.incoming.next());
            assert!(matches!(part, Some(Some(Piece::Data(_)))), "{part:?}");
            assert_eq!(poll_once(exchange.incoming.next()), Some(None));
            drop(exchange);
            world.pass(10 * DELAY);
            let statistics = world.server.application().statistics();
            let counts = (statistics.resets, statistics.cut_off);
            assert_eq!(counts, (1, 0), "{method} {is_begun}");
            world.end();
        }
    }
    // Nor at a shutdown.
    let mut world = World::new(1);
    for resets in [false, true] {
        let client = &mut world.clients[0];
        let id = client.open(BIDI).expect("permitted");
        client.write(id, &head("CONNECT", "/task", &[websocket]), false);
        world.pass(2 * DELAY);
        if resets {
            let quic = world.clients[0].quic().expect("it is open");
            let _ = quic.streams().reset(id, VarInt::from_u32(0x10c));
        }
    }
    world.pass(2 * DELAY);
    world.shut_down(Duration::ZERO);
    world.pass(10 * DELAY);
    assert_eq!(world.server.application().statistics().cut_off, 1);
}

/// A request that the client resets is answered; one that it resets and stops is not.
#[test]
fn requests_that_are_reset_end_with_their_response() {
    let mut world = World::new(1);
    for stops in [false, true] {
        for path in ["/", "/late", "/task"] {
            let id = world.clients[0].open(BIDI).expect("permitted");
            world.clients[0].write(id, &head("POST", path, &[("content-length", "100")]), false);
            world.clients[0].write(id, &frame(0, b"a part"), false);
            world.pass(2 * DELAY);
            let now = world.now;
            if let Some(quic) = world.clients[0].quic() {
                let _ = quic.streams().reset(id, VarInt::from_u32(0x10c));
                if stops {
                    let _ = quic
                        .streams()
                        .stop_sending(id, VarInt::from_u32(0x10c), now);
                }
            }
            world.pass(10 * DELAY);
            // The task learns that the request is incomplete, and ends.
            world.scripted.exchanges.lock().expect("no panic").clear();
            world.pass(10 * DELAY);
            let kept = world.kept();
            assert_eq!(
                (kept.records, kept.running, kept.delayed),
                (0, 0, 0),
                "{path}"
            );
        }
    }
    world.end();
}

/// A task responds before the request is complete, as a proxy does with an early error, and then the client resets the request.
#[test]
fn requests_that_are_reset_after_their_response_end() {
    let mut world = World::new(1);
    for count in 0..20 {
        let id = world.clients[0].open(BIDI).expect("permitted");
        world.clients[0].write(
            id,
            &head("POST", "/task", &[("content-length", "100")]),
            false,
        );
        world.pass(2 * DELAY);
        let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
        let mut exchange = exchange.expect("it was passed on");
        let response = Response::new(413).with("content-length", "0");
        assert_eq!(poll_once(exchange.outgoing.begin(response)), Some(Ok(())));
        let Exchange { incoming, outgoing } = exchange;
        assert_eq!(poll_once(outgoing.end(None)), Some(Ok(())));
        world.pass(10 * DELAY);
        assert_eq!(logged(&world, true), count + 1);
        if let Some(quic) = world.clients[0].quic() {
            let _ = quic.streams().reset(id, VarInt::from_u32(0x10c));
        }
        world.pass(4 * DELAY);
        assert_eq!(world.kept().running, 0, "{count}");
        drop(incoming);
    }
    world.end();
}

/// A task may cost a thread or a connection to another server.
#[test]
fn a_request_that_is_stopped_in_the_turn_of_its_arrival_starts_no_task() {
    let mut world = World::new(1);
    for stops_first in [false, true] {
        let now = world.now;
        let client = &mut world.clients[0];
        let id = client.open(BIDI).expect("permitted");
        if stops_first {
            client.stop(now, id);
        }
        client.write(id, &head("GET", "/task", &[]), true);
        client.stop(now, id);
    }
    world.pass(10 * DELAY);
    assert_eq!(world.requests(), 2);
    assert_eq!(world.scripted.exchanges.lock().expect("no panic").len(), 0);
    assert_eq!(logged(&world, false), 2);
    world.end();
}

/// The address may be forged until the client's handshake packets arrive, and what a task sends to other servers names it.
#[test]
fn rfc9000_8_1_a_task_starts_once_the_address_of_its_client_is_validated() {
    let mut world = World::new(0);
    world.add_good(vec!["/"], false);
    world.pass(20 * DELAY);
    world.add_good(vec!["/task"], true);
    let waiting = |world: &World| world.scripted.exchanges.lock().expect("no panic").len();
    // The first flight, with the request in 0-RTT.
    world.pass(2 * DELAY);
    assert_eq!(world.requests(), 2);
    assert_eq!(waiting(&world), 0);
    world.pass(4 * DELAY);
    assert_eq!(waiting(&world), 1);
    world.scripted.exchanges.lock().expect("no panic").clear();
    world.pass(Duration::from_secs(1));
    world.end();
}

/// The handler responds after it dropped the body: the rest of it takes no room.
#[test]
fn a_body_that_its_handler_dropped_is_received_to_its_end() {
    let mut world = World::new(1);
    let id = world.clients[0].open(BIDI).expect("permitted");
    world.clients[0].write(id, &head("POST", "/task", &[]), false);
    world.pass(2 * DELAY);
    let exchange = world.scripted.exchanges.lock().expect("no panic").pop();
    let Exchange { incoming, outgoing } = exchange.expect("it was passed on");
    drop(incoming);
    // More than the windows at the start.
    let body = frame(0, &[b'x'; 16_000]).repeat(500);
    let mut left = &body[..];
    for _ in 0..2000 {
        let quic = world.clients[0].quic().expect("it is open");
        let taken = quic.streams().write(id, left).expect("it is open");
        left = &left[taken..];
        if left.is_empty() {
            break;
        }
        world.pass(DELAY);
    }
    assert_eq!(left.len(), 0, "of {}", body.len());
    world.clients[0].write(id, &[], true);
    world.pass(10 * DELAY);
    let response = FullResponse::text(200, "late");
    assert_eq!(poll_once(outgoing.respond(response)), Some(Ok(())));
    world.pass(10 * DELAY);
    assert_eq!(logged(&world, true), 1);
    assert_eq!(world.kept().running, 0);
    world.end();
}

/// A response to HEAD has no body, whichever handler forgets that.
#[test]
fn rfc9110_9_3_2_responses_to_head_have_no_body() {
    let mut world = World::new(1);
    for path in ["/", "/large", "/late", "/hint"] {
        let id = world.clients[0].open(BIDI).expect("permitted");
        world.clients[0].write(id, &head("HEAD", path, &[]), true);
        world.pass(20 * DELAY);
        let received = world.clients[0].received.get(&id).map_or(0, Vec::len);
        assert!((1..1000).contains(&received), "{path}: {received}");
    }
    assert_eq!(logged(&world, true), 4);
    world.end();
}

/// Everything in flight ends with the connection: closed by the client, or gone without a word.
#[test]
fn requests_in_flight_end_with_their_connection() {
    for closes in [true, false] {
        let mut world = World::new(1);
        world.clients[0].reads = false;
        for path in ["/large", "/late", "/task", "/hint", "/failing"] {
            for _ in 0..10 {
                get(&mut world.clients[0], path);
            }
        }
        world.pass(2 * DELAY);
        assert_eq!(world.requests(), 50);
        if closes {
            world.end();
        } else {
            world.clients.clear();
            world.pass(Duration::from_secs(120));
            assert_eq!(world.kept(), lastbyte_origin::Kept::default());
            assert_eq!(world.logged.len(), 50);
        }
    }
}

/// A shutdown closes the connections in slices, and each client learns of it.
#[test]
fn rfc9114_5_2_every_client_receives_the_close_at_the_end_of_a_shutdown() {
    let mut world = World::new(250);
    for client in 0..250 {
        get(&mut world.clients[client], "/task");
    }
    world.pass(2 * DELAY);
    assert_eq!(world.requests(), 250);
    world.shut_down(Duration::ZERO);
    let mut turns = 0;
    while !world.has_ended() {
        world.turn();
        turns += 1;
        assert!(turns < 20);
    }
    assert!(turns > 2, "not all in one turn");
    world.pass(2 * DELAY);
    let code = Code::NO_ERROR.get();
    for client in &world.clients {
        let reason = Some(CloseReason::PeerApplication { code });
        assert_eq!(client.closed, reason);
    }
    assert_eq!(logged(&world, false), 250);
    assert_eq!(world.server.application().statistics().cut_off, 250);
    assert_eq!(world.kept().records, 0);
}

/// Nothing of a run depends on the clock or on threads.
#[test]
fn the_same_requests_lead_to_the_same_lines_of_both_logs() {
    let run = || {
        let mut world = World::new(3);
        for path in ["/", "/large", "/late", "/hint", "/invalid", "/failing"] {
            for client in 0..3 {
                get(&mut world.clients[client], path);
            }
            world.pass(3 * DELAY);
        }
        world.end();
        (world.logged, world.connections)
    };
    let first = run();
    assert_eq!(first, run());
    assert_eq!((first.0.len(), first.1.len()), (18, 3));
    for line in first.0.iter().chain(&first.1) {
        assert!(line.contains("1700000"), "{line}");
    }
}
