//! Clients that neither take a response nor send a request's body.

use std::time::Duration;

use lastbyte_http3::{Body, Code, Config, Event, Limits, Response, StallLimit};
use lastbyte_quic::stream::WindowSize;
use lastbyte_wire::StreamId;

use crate::{
    pair::{DELAY, Pair, transport_config},
    raw::{BIDI, GET, UNI, data, get_with, head, reset_code, server, server_over},
};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A body of this many bytes, as a source.
fn respond(pair: &mut Pair, id: StreamId, len: usize) {
    let (http3, quic) = pair.server.http3();
    let response = Response::new(200).with("content-length", len.to_string());
    let body = Body::Source(Box::new(vec![7; len]));
    http3
        .respond(quic, id, &response, body)
        .expect("a response");
}

fn given_up(pair: &Pair) -> Vec<StreamId> {
    let events = pair.server.events.iter();
    events
        .filter_map(|event| match event {
            Event::Reset { stream, .. } => Some(*stream),
            _ => None,
        })
        .collect()
}

/// More than all windows.
const LARGE: usize = 3 << 20;

/// A server of ours, and a client that reads nothing by itself, keeps the connection open by PINGs, and has such windows.
fn server_for(stream_window: u64, connection_window: u64, config: &Config) -> Pair {
    let mut transport = transport_config();
    let fixed = |size| WindowSize {
        initial: size,
        maximum: size,
    };
    transport.streams.stream_window = fixed(stream_window);
    transport.streams.connection_window = fixed(connection_window);
    let mut pair = server_over(&transport, config);
    pair.client.listens = false;
    pair.client.quic.set_awaiting(true);
    pair
}

/// The client reads this many bytes, of the first streams that have any.
fn read_some(pair: &mut Pair, ids: &[StreamId], count: usize) {
    let mut left = count;
    for id in ids {
        let streams = pair.client.quic.streams();
        let _ = streams.read(*id, pair.now, &mut |bytes| {
            let taken = bytes.len().min(left);
            left -= taken;
            taken
        });
    }
}

/// What comes from the client is read at once.
fn post_server() -> Pair {
    let mut pair = server();
    pair.client.quic.set_awaiting(true);
    pair
}

/// Such a deadline would keep the server's worker awake until the connection is closed.
#[test]
fn a_connection_that_failed_has_no_deadline_in_the_past() {
    let mut pair = server();
    pair.client.open(BIDI, &head(&get_with(&[])), false);
    pair.pass(4 * DELAY);
    let (http3, _) = pair.server.http3();
    assert!(http3.deadline().is_some(), "a request is open");
    let control = [&[0, 4, 0][..], &[0x21, 0].repeat(300)].concat();
    pair.client.open(UNI, &control, false);
    pair.pass(4 * DELAY);
    let (http3, _) = pair.server.http3();
    assert_eq!(http3.deadline(), None);
}

#[test]
fn rfc9114_10_5_a_response_that_a_pinging_client_does_not_read_is_aborted() {
    let mut pair = server_for(10_000, 1 << 20, &Config::default());
    let id = pair.client.open(BIDI, &head(&GET), true);
    pair.pass(4 * DELAY);
    respond(&mut pair, id, LARGE);
    pair.pass(TIMEOUT);
    assert_eq!(given_up(&pair), []);
    pair.pass(TIMEOUT / 2);
    assert_eq!(given_up(&pair), [id]);
    assert_eq!(pair.server.quic.streams().buffered(), 0);
    let (http3, _) = pair.server.http3();
    assert_eq!(http3.statistics().stalled, 1);
    assert_eq!(reset_code(&pair, id), Some(Code::REQUEST_CANCELLED));
    assert!(pair.client.quic.close_reason().is_none());
}

/// 100 bytes a second are the least.
#[test]
fn rfc9114_10_5_a_response_read_one_byte_at_a_time_is_aborted() {
    for (each_second, is_given_up) in [(50, true), (150, false)] {
        let mut pair = server_for(200, 1 << 20, &Config::default());
        let id = pair.client.open(BIDI, &head(&GET), true);
        pair.pass(4 * DELAY);
        respond(&mut pair, id, LARGE);
        for _ in 0..90 {
            read_some(&mut pair, &[id], each_second);
            pair.pass(Duration::from_secs(1));
        }
        assert_eq!(given_up(&pair) == [id], is_given_up, "{each_second}");
    }
}

/// Responses are sent one after the other, unless clients ask otherwise (RFC 9218 §4.2): the last waits, and not for its
/// client.
#[test]
fn a_response_that_waits_for_its_turn_is_not_aborted() {
    let mut pair = server_for(1 << 20, 100_000, &Config::default());
    let ids: Vec<_> = (0..4)
        .map(|_| pair.client.open(BIDI, &head(&GET), true))
        .collect();
    pair.pass(4 * DELAY);
    for id in &ids {
        respond(&mut pair, *id, LARGE);
    }
    for _ in 0..120 {
        read_some(&mut pair, &ids, 20_000);
        pair.pass(Duration::from_secs(1));
    }
    assert_eq!(given_up(&pair), []);
}

#[test]
fn rfc9114_10_5_a_request_whose_body_does_not_arrive_is_aborted() {
    for (each_second, is_given_up) in [(0, true), (10, true), (150, false)] {
        let mut pair = post_server();
        let id = pair
            .client
            .open(BIDI, &head(&get_with(&[(":method", "POST")])), false);
        for _ in 0..60 {
            if each_second > 0 && given_up(&pair).is_empty() {
                pair.client.say(id, &data(&"x".repeat(each_second)), false);
            }
            pair.pass(Duration::from_secs(1));
        }
        let expected = is_given_up.then_some(Code::REQUEST_CANCELLED);
        assert_eq!(reset_code(&pair, id), expected, "{each_second}");
    }
}

/// It is the application that waits, and not the client.
#[test]
fn a_request_that_the_application_does_not_read_is_not_aborted() {
    let mut pair = post_server();
    pair.server.reads = false;
    let request = [head(&get_with(&[(":method", "POST")])), data("body")].concat();
    let id = pair.client.open(BIDI, &request, false);
    pair.pass(3 * TIMEOUT);
    assert_eq!(reset_code(&pair, id), None);
    // Nor is one that is complete, and whose answer takes long.
    let id = pair.client.open(BIDI, &head(&GET), true);
    pair.pass(3 * TIMEOUT);
    assert_eq!(reset_code(&pair, id), None);
    respond(&mut pair, id, 10);
    pair.pass(4 * DELAY);
    assert_eq!(given_up(&pair), []);
}

/// Events that are sent now and then: each is taken at once, and the time between them is the server's.
#[test]
fn an_intermittent_response_of_few_bytes_is_not_aborted() {
    let mut pair = post_server();
    let id = pair.client.open(BIDI, &head(&GET), true);
    pair.pass(4 * DELAY);
    let (http3, quic) = pair.server.http3();
    http3
        .respond(quic, id, &Response::new(200), Body::Follows)
        .expect("a response");
    for _ in 0..60 {
        let (http3, quic) = pair.server.http3();
        assert_eq!(http3.write(quic, id, b"data: 1\n\n"), Ok(9));
        pair.pass(Duration::from_secs(5));
    }
    assert_eq!(given_up(&pair), []);
}

/// A turn lasts until nothing is due: a check that is due again at once would end none.
#[test]
fn the_next_check_is_later_however_short_the_limit() {
    let config = Config {
        limits: Limits {
            stall: Some(StallLimit {
                timeout: Duration::ZERO,
                ..StallLimit::default()
            }),
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut pair = server_for(10_000, 1 << 20, &config);
    pair.client.open(BIDI, &head(&GET), true);
    pair.pass(4 * DELAY);
    let now = pair.now;
    let (http3, quic) = pair.server.http3();
    while http3.poll(quic, now).is_some() {}
    assert!(http3.deadline().is_none_or(|due| due > now));
}

#[test]
fn without_a_stall_limit_no_response_is_aborted() {
    let config = Config {
        limits: Limits {
            stall: None,
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut pair = server_for(10_000, 1 << 20, &config);
    let id = pair.client.open(BIDI, &head(&GET), true);
    pair.pass(4 * DELAY);
    respond(&mut pair, id, LARGE);
    pair.pass(4 * TIMEOUT);
    assert_eq!(given_up(&pair), []);
    assert_eq!(StallLimit::default().timeout, TIMEOUT);
}
