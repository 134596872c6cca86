//! Requests and responses between our own two ends, over good paths and bad ones.

use std::{sync::Arc, time::Duration};

use lastbyte_http3::{
    Body, Code, Config, Event, Fields, Origin, ReadError, Request, RequestError, Response,
    SendError, Transport,
};
use lastbyte_quic::close::CloseReason;
use lastbyte_wire::{Direction, Side, StreamId};

use crate::{
    pair::{BAD_PATH, DELAY, End, Faults, Pair},
    raw::priority_update,
};

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(31).wrapping_add(seed * 7) % 251) as u8)
        .collect()
}

fn get(path: &str) -> Request {
    Request::new("GET", "https", "example.com", path)
        .with("user-agent", "lastbyte/0.1 (test)")
        .with("accept", "*/*")
}

fn ask(pair: &mut Pair, request: &Request, body: Body) -> StreamId {
    let (http3, quic) = pair.client.http3();
    http3.request(quic, request, body).expect("a request")
}

fn respond(pair: &mut Pair, id: StreamId, response: &Response, body: Body) {
    let (http3, quic) = pair.server.http3();
    http3.respond(quic, id, response, body).expect("a response");
}

fn requests(pair: &Pair) -> Vec<(StreamId, Request)> {
    let request = |event: &Event| match event {
        Event::Request { stream, request } => Some((*stream, request.clone())),
        _ => None,
    };
    pair.server.events.iter().filter_map(request).collect()
}

fn count(events: &[Event], is_it: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|event| is_it(event)).count()
}

fn is_finished(events: &[Event], id: StreamId) -> bool {
    events.contains(&Event::Finished { stream: id })
}

/// Answers each request as it comes, with as many bytes as its path says.
fn serve(pair: &mut Pair, answered: &mut usize) {
    let all = requests(pair);
    for (id, request) in all.iter().skip(*answered) {
        let path = request.path().expect("a path");
        let len: usize = path.trim_start_matches('/').parse().expect("a number");
        let response = Response::new(200)
            .with("content-type", "application/octet-stream")
            .with("content-length", len.to_string())
            .with("server", "lastbyte")
            .with("x-seed", id.index().to_string());
        let body: Arc<[u8]> = pattern(len, id.index()).into();
        respond(pair, *id, &response, Body::Source(Box::new(body)));
    }
    *answered = all.len();
}

fn many(seed: u64, faults: Faults, config: &Config, uses_sink: bool) -> Pair {
    let mut pair = Pair::new(config, config, seed, faults);
    pair.client.uses_sink = uses_sink;
    let lengths = [0usize, 1, 100, 1200, 5000, 70_000, 300_000];
    let mut asked = Vec::new();
    let mut answered = 0;
    pair.run_until("all responses", |pair| {
        while asked.len() < 60 {
            let len = lengths[asked.len() % lengths.len()];
            let (http3, quic) = pair.client.http3();
            match http3.request(quic, &get(&format!("/{len}")), Body::Empty) {
                Ok(id) => asked.push((id, len)),
                Err(error) => {
                    assert_eq!(error, RequestError::Blocked);
                    break;
                }
            }
        }
        serve(pair, &mut answered);
        let finished = count(&pair.client.events, |event| {
            matches!(event, Event::Finished { .. })
        });
        asked.len() == 60 && finished == 60
    });
    for (id, len) in asked {
        let body = pair.client.bodies.get(&id).cloned().unwrap_or_default();
        assert!(body == pattern(len, id.index()), "{id}, seed {seed}");
    }
    let http3 = pair.client.http3.as_ref().expect("an end");
    assert_eq!(http3.statistics().responses, 60);
    assert_eq!(http3.error(), None);
    pair
}

#[test]
fn requests_are_answered() {
    let mut pair = many(1, Faults::default(), &Config::default(), false);
    let (_, first) = requests(&pair).remove(0);
    assert_eq!((first.method(), first.scheme()), ("GET", Some("https")));
    assert_eq!(first.authority(), Some("example.com"));
    assert_eq!(
        first.fields().get("user-agent"),
        Some(&b"lastbyte/0.1 (test)"[..])
    );
    // By now most of each head is in the table.
    let sent = |pair: &Pair| {
        let http3 = pair.client.http3.as_ref().expect("an end");
        http3.statistics().sections_sent
    };
    let before = sent(&pair);
    ask(&mut pair, &get("/1234"), Body::Empty);
    assert!(sent(&pair) - before < 16, "{}", sent(&pair) - before);
}

#[test]
fn all_responses_arrive_over_a_lossy_path() {
    for seed in 0..12 {
        for uses_sink in [false, true] {
            many(seed, BAD_PATH, &Config::default(), uses_sink);
        }
    }
}

#[test]
fn any_table_capacity_and_blocked_streams_limit_works() {
    for (seed, capacity, blocked) in [(1, 0, 0), (2, 64, 1), (3, 220, 100), (4, 4096, 0)] {
        let config = Config {
            qpack_table_capacity: capacity,
            qpack_blocked_streams: blocked,
            qpack_encoder_capacity: 4096,
            qpack_encoder_blocked_streams: 100,
            ..Config::default()
        };
        many(seed, BAD_PATH, &config, seed & 1 == 0);
    }
}

#[test]
fn same_seed_same_events() {
    let once = many(7, BAD_PATH, &Config::default(), true);
    let again = many(7, BAD_PATH, &Config::default(), true);
    assert_eq!(once.client.events, again.client.events);
    assert_eq!(once.server.events, again.server.events);
    assert_eq!(once.now, again.now);
}

#[test]
fn rfc9114_4_1_a_message_has_interim_heads_a_head_a_body_and_trailers() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let post = Request::new("POST", "https", "example.com", "/upload").with("te", "trailers");
    let id = ask(&mut pair, &post, Body::Follows);
    let (http3, quic) = pair.client.http3();
    assert_eq!(http3.write(quic, id, b"one "), Ok(4));
    assert_eq!(http3.write(quic, id, b"two"), Ok(3));
    let trailers = Fields::new().with("x-sum", "7");
    http3.trailers(quic, id, &trailers).expect("trailers");
    assert_eq!(http3.write(quic, id, b"x"), Err(SendError::OutOfOrder));
    pair.pass(4 * DELAY);
    assert_eq!(pair.server.bodies[&id], b"one two");
    assert!(pair.server.events.contains(&Event::Trailers {
        stream: id,
        fields: trailers
    }));
    assert!(is_finished(&pair.server.events, id));

    let hints = Response::new(103).with("link", "</style.css>; rel=preload");
    let (http3, quic) = pair.server.http3();
    http3.inform(quic, id, &hints).expect("hints");
    pair.pass(4 * DELAY);
    let (http3, quic) = pair.server.http3();
    let switching = Response::new(101);
    assert_eq!(
        http3.inform(quic, id, &switching),
        Err(SendError::OutOfOrder)
    );
    let answer = Response::new(200).with("content-length", "5");
    http3
        .respond(quic, id, &answer, Body::Follows)
        .expect("a head");
    assert_eq!(http3.inform(quic, id, &hints), Err(SendError::OutOfOrder));
    assert_eq!(
        http3.write(quic, id, b"123456"),
        Err(SendError::ContentLength)
    );
    assert_eq!(http3.write(quic, id, b"12345"), Ok(5));
    http3.finish(quic, id).expect("an end");
    pair.pass(10 * DELAY);
    let of_stream: Vec<_> = pair
        .client
        .events
        .iter()
        .filter(|event| !matches!(event, Event::Settings | Event::RequestsAvailable))
        .collect();
    assert_eq!(
        of_stream,
        [
            &Event::Sent { stream: id },
            &Event::Informational {
                stream: id,
                response: hints
            },
            &Event::Response {
                stream: id,
                response: answer
            },
            &Event::Data { stream: id },
            &Event::Finished { stream: id },
        ]
    );
    assert!(pair.server.events.contains(&Event::Sent { stream: id }));
}

#[test]
fn invalid_messages_are_rejected_and_nothing_is_sent() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let (http3, quic) = pair.client.http3();
    let bad = [
        get("/").with("Upper", "1"),
        get("/").with("x", "a\r\nb"),
        get("/").with("connection", "close"),
        get("/").with("te", "gzip"),
        get("/").with(":path", "/other"),
        get("/with space"),
    ];
    for request in bad {
        let refused = http3.request(quic, &request, Body::Empty);
        assert_eq!(refused, Err(SendError::InvalidField.into()), "{request:?}");
    }
    let wrong = get("/").with("content-length", "4");
    let refused = http3.request(quic, &wrong, Body::Source(Box::new(&b"abc"[..])));
    assert_eq!(refused, Err(SendError::ContentLength.into()));
    let extended = Request::extended_connect("websocket", "https", "example.com", "/");
    let refused = http3.request(quic, &extended, Body::Follows);
    assert_eq!(refused, Err(RequestError::ExtendedConnect));
    pair.pass(4 * DELAY);
    assert!(requests(&pair).is_empty());
    let (http3, quic) = pair.server.http3();
    let refused = http3.request(quic, &get("/"), Body::Empty);
    assert_eq!(refused, Err(RequestError::NotClient));
}

#[test]
fn rfc9114_4_2_2_headers_above_the_peers_limit_are_not_sent() {
    let small = Config {
        field_section_size_max: 300,
        ..Config::default()
    };
    let mut pair = Pair::new(&Config::default(), &small, 1, Faults::default());
    pair.shake_hands();
    let (http3, quic) = pair.client.http3();
    let long = get("/").with("x-long", "y".repeat(300));
    let refused = http3.request(quic, &long, Body::Empty);
    assert_eq!(refused, Err(SendError::FieldSectionTooLarge.into()));
}

#[test]
fn partial_writes_continue_when_the_stream_is_writable() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let body = pattern(2_000_000, 3);
    let request = Request::new("PUT", "https", "example.com", "/big");
    let id = ask(&mut pair, &request, Body::Follows);
    let mut at = 0;
    let mut writable_seen = 0;
    pair.run_until("the upload", |pair| {
        let writable = count(&pair.client.events, |event| {
            matches!(event, Event::Writable { .. })
        });
        if at < body.len() && (at == 0 || writable > writable_seen) {
            writable_seen = writable;
            let (http3, quic) = pair.client.http3();
            at += http3.write(quic, id, &body[at..]).expect("open");
            if at == body.len() {
                http3.finish(quic, id).expect("open");
            }
        }
        is_finished(&pair.server.events, id)
    });
    assert!(writable_seen > 0);
    assert!(pair.server.bodies[&id] == body);
}

#[test]
fn an_unread_body_is_kept_and_reported_once() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    pair.client.reads = false;
    let mut answered = 0;
    let id = ask(&mut pair, &get("/50000"), Body::Empty);
    pair.pass(3 * DELAY);
    serve(&mut pair, &mut answered);
    pair.pass(10 * DELAY);
    let is_data = |event: &Event| matches!(event, Event::Data { .. });
    assert_eq!(count(&pair.client.events, is_data), 1);
    assert!(!is_finished(&pair.client.events, id));
    let now = pair.now;
    let (http3, quic) = pair.client.http3();
    let mut got = Vec::new();
    let read = http3.read(quic, now, id, &mut |bytes| {
        let taken = bytes.len().min(1000 - got.len());
        got.extend_from_slice(&bytes[..taken]);
        taken
    });
    assert_eq!(read, Ok(1000));
    let read = http3.read(quic, now, id, &mut |bytes| {
        got.extend_from_slice(bytes);
        bytes.len()
    });
    assert_eq!(read, Ok(49_000));
    assert!(got == pattern(50_000, 0));
    pair.transmit_all();
    assert!(is_finished(&pair.client.events, id));
    let (http3, quic) = pair.client.http3();
    let read = http3.read(quic, now, id, &mut |bytes| bytes.len());
    assert_eq!(read, Err(ReadError::UnknownStream));
}

#[test]
fn rfc9114_4_1_1_a_client_cancels_a_request() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let id = ask(&mut pair, &get("/900000"), Body::Empty);
    pair.pass(2 * DELAY);
    serve(&mut pair, &mut 0);
    pair.pass(3 * DELAY);
    let now = pair.now;
    let (http3, quic) = pair.client.http3();
    http3.cancel(quic, now, id, Code::REQUEST_CANCELLED);
    pair.pass(10 * DELAY);
    let stopped = Event::Stopped {
        stream: id,
        code: Code::REQUEST_CANCELLED,
    };
    assert!(
        pair.server.events.contains(&stopped),
        "{:?}",
        pair.server.events
    );
    assert_eq!(pair.client.quic.streams().live(), 6);
    assert_eq!(pair.server.quic.streams().live(), 6);
}

#[test]
fn rfc9114_4_1_a_server_answers_early_and_stops_the_rest_without_error() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let request = Request::new("POST", "https", "example.com", "/");
    let body: Arc<[u8]> = pattern(900_000, 1).into();
    let id = ask(&mut pair, &request, Body::Source(Box::new(body)));
    pair.pass(2 * DELAY);
    respond(&mut pair, id, &Response::new(413), Body::Empty);
    let now = pair.now;
    let (http3, quic) = pair.server.http3();
    http3.stop(quic, now, id, Code::NO_ERROR);
    pair.pass(10 * DELAY);
    let stopped = Event::Stopped {
        stream: id,
        code: Code::NO_ERROR,
    };
    assert!(pair.client.events.contains(&stopped));
    assert!(is_finished(&pair.client.events, id), "the response counts");
    assert_eq!(pair.client.quic.streams().live(), 6);
}

#[test]
fn rfc9114_5_2_a_server_shuts_down_gracefully() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let first = ask(&mut pair, &get("/100"), Body::Empty);
    pair.pass(2 * DELAY);
    let now = pair.now;
    let (http3, quic) = pair.server.http3();
    http3.shut_down(quic, now);
    // Under way when the server says so: served.
    let second = ask(&mut pair, &get("/100"), Body::Empty);
    let mut answered = 0;
    pair.pass(2 * DELAY);
    serve(&mut pair, &mut answered);
    assert_eq!(answered, 2);
    let (http3, quic) = pair.client.http3();
    let refused = http3.request(quic, &get("/1"), Body::Empty);
    assert_eq!(refused, Err(RequestError::GoingAway));
    pair.pass(20 * DELAY);
    assert!(is_finished(&pair.client.events, first) && is_finished(&pair.client.events, second));
    let goaways: Vec<u64> = pair
        .client
        .events
        .iter()
        .filter_map(|event| match event {
            Event::GoAway { id } => Some(*id),
            _ => None,
        })
        .collect();
    assert_eq!(goaways, [(1 << 62) - 4, 8]);
    let drained = |end: &End| count(&end.events, |event| *event == Event::Drained);
    // The server gives the client a second to read what it has acknowledged, and to close the connection itself.
    assert_eq!((drained(&pair.client), drained(&pair.server)), (1, 0));
    pair.pass(Duration::from_secs(1));
    assert_eq!((drained(&pair.client), drained(&pair.server)), (1, 1));
}

#[test]
fn rfc9114_5_2_requests_above_the_goaway_id_are_rejected_and_safe_to_retry() {
    // The client does not hear of the shutdown: one datagram of many is late enough.
    let limited = Config {
        limits: lastbyte_http3::Limits {
            requests: 2,
            ..Config::default().limits
        },
        ..Config::default()
    };
    let mut pair = Pair::new(&Config::default(), &limited, 1, Faults::default());
    pair.shake_hands();
    let ids: Vec<_> = (0..2)
        .map(|_| ask(&mut pair, &get("/1"), Body::Empty))
        .collect();
    pair.pass(2 * DELAY);
    serve(&mut pair, &mut 0);
    pair.pass(20 * DELAY);
    assert!(ids.iter().all(|id| is_finished(&pair.client.events, *id)));
    pair.pass(Duration::from_secs(1));
    assert!(pair.server.events.contains(&Event::Drained));
    // A client that does not listen.
    let id = pair.client.quic.streams().open(Direction::Bidirectional);
    pair.client
        .say(id.expect("permitted"), &[1, 2, 0, 0], false);
    pair.pass(4 * DELAY);
    assert_eq!(requests(&pair).len(), 2);
}

#[test]
fn rfc9114_5_2_a_client_shuts_down_too() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let id = ask(&mut pair, &get("/100"), Body::Empty);
    let now = pair.now;
    let (http3, quic) = pair.client.http3();
    http3.shut_down(quic, now);
    pair.pass(2 * DELAY);
    serve(&mut pair, &mut 0);
    pair.pass(10 * DELAY);
    assert!(is_finished(&pair.client.events, id));
    assert!(pair.client.events.contains(&Event::Drained));
    assert!(pair.server.events.contains(&Event::GoAway { id: 0 }));
    // The server has nothing to do until the client closes the connection, also a second later.
    pair.pass(Duration::from_secs(2));
    let now = pair.now;
    let (http3, _) = pair.server.http3();
    assert!(http3.deadline().is_none_or(|at| at > now));
}

#[test]
fn rfc9114_8_a_reset_by_the_application_is_reported_to_the_peer() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let id = ask(&mut pair, &get("/1"), Body::Empty);
    pair.pass(2 * DELAY);
    let now = pair.now;
    let (http3, quic) = pair.server.http3();
    http3.cancel(quic, now, id, Code::REQUEST_REJECTED);
    pair.pass(4 * DELAY);
    let error = pair.client.events.iter().find_map(|event| match event {
        Event::Reset { stream, error, .. } if *stream == id => Some(*error),
        _ => None,
    });
    let error = error.expect("a reset");
    assert_eq!(
        (error.code, error.origin),
        (Code::REQUEST_REJECTED, Origin::Peer)
    );
    assert!(error.is_safe_to_retry());
    assert_eq!(pair.client.quic.streams().live(), 6);
}

#[test]
fn rfc9218_10_urgent_responses_come_first_and_reprioritised_ones_too() {
    for reprioritises in [false, true] {
        let mut pair = Pair::plain();
        pair.shake_hands();
        let late = ask(
            &mut pair,
            &get("/400000").with("priority", "u=5"),
            Body::Empty,
        );
        let soon = ask(
            &mut pair,
            &get("/400000").with("priority", "u=4"),
            Body::Empty,
        );
        let (first, last) = if reprioritises {
            let (_, quic) = pair.client.http3();
            let control =
                StreamId::new(Side::Client, Direction::Unidirectional, 0).expect("the first");
            let update = priority_update(late.get() as u8, "u=0");
            Transport::write(quic, control, &update).expect("open");
            (late, soon)
        } else {
            (soon, late)
        };
        let mut answered = 0;
        pair.run_until("both", |pair| {
            serve(pair, &mut answered);
            is_finished(&pair.client.events, soon) && is_finished(&pair.client.events, late)
        });
        let finished = |id| {
            let done = Event::Finished { stream: id };
            pair.client.events.iter().position(|event| *event == done)
        };
        assert!(finished(first) < finished(last), "{reprioritises}");
        let updates = count(&pair.server.events, |event| {
            matches!(event, Event::Priority { .. })
        });
        assert_eq!(updates, usize::from(reprioritises));
    }
}

#[test]
fn rfc9220_extended_connect_is_a_stream_of_bytes_both_ways() {
    let config = Config {
        extended_connect: true,
        ..Config::default()
    };
    let mut pair = Pair::new(&config, &config, 1, Faults::default());
    pair.shake_hands();
    let request = Request::extended_connect("websocket", "https", "example.com", "/chat");
    let id = ask(&mut pair, &request, Body::Follows);
    pair.pass(2 * DELAY);
    let (_, got) = requests(&pair).remove(0);
    assert_eq!(
        (got.protocol(), got.path()),
        (Some("websocket"), Some("/chat"))
    );
    respond(&mut pair, id, &Response::new(200), Body::Follows);
    for side in [Side::Client, Side::Server] {
        let (http3, quic) = pair.end(side).http3();
        assert_eq!(http3.write(quic, id, b"hello"), Ok(5));
    }
    pair.pass(4 * DELAY);
    assert_eq!(pair.client.bodies[&id], b"hello");
    assert_eq!(pair.server.bodies[&id], b"hello");
}

#[test]
fn rfc9114_5_1_a_connection_is_kept_alive_only_while_a_response_is_pending() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let id = ask(&mut pair, &get("/slow"), Body::Empty);
    let asked = pair.now;
    while pair.now < asked + Duration::from_secs(100) {
        assert!(pair.step(), "nothing will ever happen");
        assert!(!pair.client.quic.is_over(), "no patience with an answer");
        assert!(!pair.server.quic.is_over(), "the client was silent");
    }
    assert_eq!(requests(&pair).len(), 1);
    respond(&mut pair, id, &Response::new(204), Body::Empty);
    while !is_finished(&pair.client.events, id) {
        assert!(pair.step(), "the answer never came");
    }
    let answered = pair.now;
    while pair.step() && !pair.client.quic.is_over() {}
    assert_eq!(
        pair.client.quic.close_reason(),
        Some(CloseReason::IdleTimeout)
    );
    let idle = pair.now.since(answered);
    assert!(idle < Duration::from_secs(31), "kept alive for {idle:?}");
}

/// Asks for an object, answers, and returns the bytes of the response's field section.
fn section_of_response(pair: &mut Pair, answered: &mut usize) -> u64 {
    let sent = |pair: &Pair| {
        let http3 = pair.server.http3.as_ref().expect("an end");
        http3.statistics().sections_sent
    };
    let before = sent(pair);
    let (http3, quic) = pair.client.http3();
    http3
        .request(quic, &get("/100"), Body::Empty)
        .expect("a request");
    let all = *answered + 1;
    pair.run_until("the response", |pair| {
        serve(pair, answered);
        let is_end = |event: &Event| matches!(event, Event::Finished { .. });
        *answered == all && count(&pair.client.events, is_end) == all
    });
    sent(pair) - before
}

/// If the response referred to the dynamic table, the client would acknowledge its section, and the server would acknowledge
/// that packet with one of its own, 25 ms later.
#[test]
fn a_response_without_another_around_it_takes_one_packet_of_the_server() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let mut answered = 0;
    for _ in 0..3 {
        section_of_response(&mut pair, &mut answered);
        pair.pass(Duration::from_secs(1));
    }
    let packets = |pair: &Pair| {
        let sent = |end: &End| end.quic.recovery_statistics().packets_sent;
        (sent(&pair.client), sent(&pair.server))
    };
    let before = packets(&pair);
    for _ in 0..10 {
        section_of_response(&mut pair, &mut answered);
        pair.pass(Duration::from_secs(1));
    }
    let after = packets(&pair);
    // The client sends a request and an ACK.
    assert_eq!((after.0 - before.0, after.1 - before.1), (20, 10));
}

#[test]
fn responses_in_quick_succession_refer_to_the_dynamic_table() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let mut answered = 0;
    let mut next = |pair: &mut Pair| section_of_response(pair, &mut answered);
    let together: Vec<u64> = (0..10).map(|_| next(&mut pair)).collect();
    // After a pause, the first takes some bytes more, and those after it do not.
    pair.pass(Duration::from_secs(1));
    let after: Vec<u64> = (0..3).map(|_| next(&mut pair)).collect();
    let size = |section: &u64| *section < 20;
    assert!(together.iter().all(size), "{together:?}");
    assert!(!size(&after[0]) && after[1..].iter().all(size), "{after:?}");
}

#[test]
fn responses_at_the_same_time_refer_to_the_dynamic_table() {
    let mut pair = Pair::plain();
    pair.shake_hands();
    let mut answered = 0;
    section_of_response(&mut pair, &mut answered);
    for _ in 0..5 {
        pair.pass(Duration::from_secs(1));
        let http3 = |pair: &Pair| pair.server.http3.as_ref().expect("an end").statistics();
        let before = http3(&pair).sections_sent;
        ask(&mut pair, &get("/100"), Body::Empty);
        ask(&mut pair, &get("/100"), Body::Empty);
        let all = answered + 2;
        pair.run_until("both responses", |pair| {
            serve(pair, &mut answered);
            answered == all
        });
        let sections = http3(&pair).sections_sent - before;
        assert!(sections < 40, "{sections}");
    }
}
