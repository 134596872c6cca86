//! What a peer may make us do for nothing (RFC 9114 §10.5).

use std::time::Duration;

use lastbyte_http3::{Body, Code, Config, Event, Limits, Rate, Response};
use lastbyte_wire::{Side, StreamId};

use crate::{
    pair::{DELAY, Pair, transport_config},
    raw::{
        BIDI, CONTROL, GET, UNI, client, data, failure, frame, get_with, head, priority_update,
        reset_code, server, server_over, server_with,
    },
};

#[test]
fn rfc9114_10_5_rapid_resets_close_the_connection() {
    let mut pair = server();
    let mut given_up = 0;
    pair.run_until("the end", |pair| {
        for _ in 0..20 {
            if let Some(id) = pair.client.quic.streams().open(BIDI) {
                pair.client.say(id, &head(&GET), false);
                let streams = pair.client.quic.streams();
                streams
                    .reset(id, Code::REQUEST_CANCELLED.into())
                    .expect("open");
                given_up += 1;
            }
        }
        pair.pass(DELAY);
        let now = pair.now;
        for id in (0..given_up).filter_map(|index| StreamId::new(Side::Client, BIDI, index)) {
            let streams = pair.client.quic.streams();
            let _ = streams.stop_sending(id, Code::REQUEST_CANCELLED.into(), now);
        }
        pair.client.quic.close_reason().is_some()
    });
    assert_eq!(failure(&mut pair, Side::Server), Some(Code::EXCESSIVE_LOAD));
    assert!((200..500).contains(&given_up), "{given_up}");
}

/// `NO_ERROR` is for servers (RFC 9114 §4.1.1), and a response that is stopped with it was just as much work.
#[test]
fn rfc9114_10_5_rapid_stop_sending_of_any_code_closes_the_connection() {
    for code in [Code::NO_ERROR, Code::REQUEST_CANCELLED] {
        let mut pair = server();
        let mut given_up = 0;
        pair.run_until("the end", |pair| {
            for _ in 0..20 {
                if let Some(id) = pair.client.quic.streams().open(BIDI) {
                    pair.client.say(id, &head(&GET), true);
                    let now = pair.now;
                    let streams = pair.client.quic.streams();
                    streams.stop_sending(id, code.into(), now).expect("open");
                    given_up += 1;
                }
            }
            pair.pass(DELAY);
            pair.client.quic.close_reason().is_some() || given_up > 2000
        });
        assert_eq!(failure(&mut pair, Side::Server), Some(Code::EXCESSIVE_LOAD));
        assert!((200..500).contains(&given_up), "{code}: {given_up}");
    }
}

/// Responds to each request in the turn in which it arrives, as a file server does, for as long as the client sends requests
/// and gives them up at once. Returns how many requests it was before the connection was closed, and how many were answered.
fn answered_at_once(pair: &mut Pair, mut ask: impl FnMut(&mut Pair, StreamId)) -> (u64, usize) {
    let (mut given_up, mut answered) = (0, 0);
    pair.server.answers = true;
    pair.run_until("the end", |pair| {
        for _ in 0..20 {
            if let Some(id) = pair.client.quic.streams().open(BIDI) {
                ask(pair, id);
                given_up += 1;
            }
        }
        pair.pass(DELAY);
        answered = pair.server.answered;
        pair.client.quic.close_reason().is_some() || given_up > 2000
    });
    (given_up, answered)
}

/// The response is written before the transport reports that the client does not want it.
#[test]
fn rfc9114_10_5_rapid_stop_sending_closes_the_connection_of_a_server_that_answers_at_once() {
    for stops_first in [false, true] {
        for code in [Code::NO_ERROR, Code::REQUEST_CANCELLED] {
            let mut pair = server();
            let (given_up, _) = answered_at_once(&mut pair, |pair, id| {
                let now = pair.now;
                let client = &mut pair.client;
                let stop = |quic: &mut lastbyte_quic::Connection| {
                    quic.streams()
                        .stop_sending(id, code.into(), now)
                        .expect("open");
                };
                if stops_first {
                    stop(&mut client.quic);
                    client.say(id, &head(&GET), true);
                } else {
                    client.say(id, &head(&GET), true);
                    stop(&mut client.quic);
                }
            });
            assert!((200..500).contains(&given_up), "{code}: {given_up}");
            assert_eq!(failure(&mut pair, Side::Server), Some(Code::EXCESSIVE_LOAD));
            check_ends(&pair);
        }
    }
}

/// `STOP_SENDING` may come in a packet before the head of its request.
#[test]
fn rfc9114_10_5_requests_stopped_before_their_head_close_the_connection() {
    let mut pair = server();
    let (given_up, _) = answered_at_once(&mut pair, |pair, id| {
        let now = pair.now;
        let streams = pair.client.quic.streams();
        let stopped = streams.stop_sending(id, Code::REQUEST_CANCELLED.into(), now);
        stopped.expect("open");
        pair.pass(DELAY / 10);
        pair.client.say(id, &head(&GET), true);
    });
    assert!((200..500).contains(&given_up), "{given_up}");
    assert_eq!(failure(&mut pair, Side::Server), Some(Code::EXCESSIVE_LOAD));
    check_ends(&pair);
}

/// A client that accepts no field section receives no response, and each was work.
#[test]
fn rfc9114_4_2_2_requests_whose_responses_the_client_refuses_by_size_close_the_connection() {
    let mut pair = server();
    // SETTINGS_MAX_FIELD_SECTION_SIZE = 1
    pair.client.open(UNI, &[0, 4, 2, 6, 1], false);
    pair.pass(2 * DELAY);
    let (given_up, answered) = answered_at_once(&mut pair, |pair, id| {
        pair.client.say(id, &head(&GET), true);
    });
    assert_eq!(answered, 0);
    assert!((200..500).contains(&given_up), "{given_up}");
    assert_eq!(failure(&mut pair, Side::Server), Some(Code::EXCESSIVE_LOAD));
    check_ends(&pair);
}

/// Each response ended once, or with the connection.
fn check_ends(pair: &Pair) {
    let mut ended = std::collections::BTreeSet::new();
    for event in &pair.server.events {
        match event {
            Event::Sent { stream }
            | Event::Stopped { stream, .. }
            | Event::SourceFailed { stream, .. }
            | Event::Reset {
                stream,
                cancels_ours: true,
                ..
            } => assert!(ended.insert(*stream), "{stream:?} ended twice"),
            _ => {}
        }
    }
}

/// Answers the requests that came.
fn answer_all(pair: &mut Pair) -> usize {
    let events = std::mem::take(&mut pair.server.events);
    let (http3, quic) = pair.server.http3();
    let mut count = 0;
    for event in events {
        match event {
            Event::Request { stream, .. } => {
                let response = Response::new(200).with("content-length", "0");
                http3
                    .respond(quic, stream, &response, Body::Empty)
                    .expect("a response");
                count += 1;
            }
            Event::Failed(error) => panic!("{error} after {count} requests"),
            _ => {}
        }
    }
    count
}

/// A server that answers a request whose body was reset, for instance with 400, has done the work nevertheless.
#[test]
fn rfc9114_10_5_rapid_resets_of_uploads_close_the_connection_even_if_they_are_answered() {
    let mut pair = server();
    let upload = [head(&get_with(&[(":method", "POST")])), data("a part")].concat();
    let (mut given_up, mut answered) = (0, 0);
    pair.run_until("the end", |pair| {
        let opened: Vec<_> = std::iter::from_fn(|| pair.client.quic.streams().open(BIDI))
            .take(20)
            .collect();
        for id in &opened {
            pair.client.say(*id, &upload, false);
        }
        pair.pass(4 * DELAY);
        for id in &opened {
            let streams = pair.client.quic.streams();
            let _ = streams.reset(*id, Code::REQUEST_CANCELLED.into());
            given_up += 1;
        }
        pair.pass(4 * DELAY);
        if pair.client.quic.close_reason().is_none() {
            answered += answer_all(pair);
        }
        pair.client.quic.close_reason().is_some() || given_up > 2000
    });
    assert!(answered > 100, "{answered}");
    assert!((200..500).contains(&given_up), "{given_up}");
    assert_eq!(failure(&mut pair, Side::Server), Some(Code::EXCESSIVE_LOAD));
}

/// RFC 9114 §9: an implementation MUST ignore unknown frames; a peer may send one with each request (§7.2.8).
#[test]
fn rfc9114_7_2_8_extras_with_each_of_2000_requests_per_second_are_no_flood() {
    let mut transport = transport_config();
    // With up to 100 requests at a time.
    transport.max_ack_delay = Duration::from_millis(5);
    let mut pair = server_over(&transport, &Config::default());
    // 400 bytes each: with 2000 requests a second, 800 kB a second of insertions.
    let value = [b'v'; 400];
    let mut insertion = vec![0x41, b'x', 0x7f, 0x91, 0x02];
    insertion.extend(value);
    let capacity = [2, 0x3f, 0xe1, 0x1f];
    let encoder = pair.client.open(UNI, &capacity, false);
    let request = [
        vec![0x21, 3, 1, 2, 3],
        head(&get_with(&[(":method", "POST")])),
        data("ten bytes."),
    ]
    .concat();
    let (mut asked, mut answered) = (0, 0);
    let began = pair.now;
    while asked < 5900 {
        while let Some(id) = pair.client.quic.streams().open(BIDI) {
            pair.client.say(encoder, &insertion, false);
            pair.client.say(id, &request, true);
            asked += 1;
        }
        pair.pass(Duration::from_millis(1));
        answered += answer_all(&mut pair);
    }
    let took = pair.now.since(began);
    assert!(asked as u128 >= took.as_millis() * 2, "{asked} in {took:?}");
    pair.pass(4 * DELAY);
    answered += answer_all(&mut pair);
    assert_eq!(answered, asked);
}

/// What is given back is for requests that are answered: the same frames without them are a flood.
#[test]
fn rfc9114_10_5_many_reserved_frames_and_few_requests_close_the_connection() {
    let mut pair = server();
    let control = pair.client.open(UNI, &CONTROL, false);
    let mut rounds = 0;
    pair.run_until("the end", |pair| {
        pair.client.open(BIDI, &head(&GET), true);
        pair.client.say(control, &[0x21, 0].repeat(10), false);
        pair.pass(4 * DELAY);
        if pair.client.quic.close_reason().is_none() {
            let _ = answer_all(pair);
        }
        rounds += 1;
        pair.client.quic.close_reason().is_some() || rounds > 1000
    });
    // Ten each 40 ms are 250 a second: 2 of each are forgiven, 0.8 regained.
    assert!((20..60).contains(&rounds), "{rounds}");
}

#[test]
fn rfc9114_10_5_floods_close_the_connection() {
    let floods: [(&str, Vec<u8>); 5] = [
        (
            "priorities",
            (0..600).flat_map(|_| priority_update(0, "u=1")).collect(),
        ),
        ("unknown frames", [0x21, 0].repeat(300)),
        ("unknown bytes", frame(0x21, &[0; 16_000]).repeat(20)),
        ("goaway", [7, 1, 4].repeat(300)),
        ("a long frame", vec![0x80, 0x0f, 0x07, 0x00, 0x44, 0]),
    ];
    for (what, flood) in floods {
        let mut pair = server();
        let control = pair.client.open(UNI, &CONTROL, false);
        for piece in flood.chunks(20_000) {
            pair.client.say(control, piece, false);
            pair.pass(4 * DELAY);
        }
        assert_eq!(
            failure(&mut pair, Side::Server),
            Some(Code::EXCESSIVE_LOAD),
            "{what}"
        );
    }
    let mut pair = server();
    let settings = [0x40, 0x40, 0].repeat(600);
    pair.client
        .open(UNI, &[&[0][..], &frame(4, &settings)].concat(), false);
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::EXCESSIVE_LOAD),
        "settings"
    );
    let mut pair = server();
    let settings = [0x40, 0x40, 0].repeat(300);
    pair.client
        .open(UNI, &[&[0][..], &frame(4, &settings)].concat(), false);
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::EXCESSIVE_LOAD),
        "settings"
    );
    let mut pair = server();
    let tiny = [head(&GET), [0, 0].repeat(20_000)].concat();
    pair.client.open(BIDI, &tiny, false);
    pair.pass(20 * DELAY);
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::EXCESSIVE_LOAD),
        "empty DATA"
    );
}

#[test]
fn rfc9114_10_5_endless_insertions_close_the_connection() {
    let config = Config {
        limits: Limits {
            encoder_bytes: Rate::new(1000, 10),
            ..Limits::default()
        },
        ..Config::default()
    };
    let mut pair = server_with(&config);
    let mut bytes = vec![2, 0x3f, 0xbd, 0x01];
    for _ in 0..400 {
        bytes.extend([0x41, b'x', 0x01, b'y']);
    }
    pair.client.open(UNI, &bytes, false);
    assert_eq!(failure(&mut pair, Side::Server), Some(Code::EXCESSIVE_LOAD));
}

#[test]
fn rfc9114_10_5_a_header_section_that_does_not_arrive_times_out() {
    let mut pair = server();
    let id = pair.client.open(BIDI, &head(&GET)[..8], false);
    pair.pass(Duration::from_secs(9));
    assert_eq!(reset_code(&pair, id), None);
    pair.pass(Duration::from_secs(2));
    assert_eq!(reset_code(&pair, id), Some(Code::REQUEST_INCOMPLETE));
    pair.pass(10 * DELAY);
    assert_eq!(pair.server.quic.streams().live(), 3);
}

#[test]
fn rfc9114_10_5_too_many_interim_responses_reset_the_stream() {
    let (mut pair, id) = client();
    pair.server
        .say(id, &head(&[(":status", "103")]).repeat(110), false);
    pair.pass(4 * DELAY);
    let is_interim = |event: &&Event| matches!(event, Event::Informational { .. });
    assert_eq!(pair.client.events.iter().filter(is_interim).count(), 100);
    let error = pair.client.events.iter().find_map(|event| match event {
        Event::Reset { error, .. } => Some(error.code),
        _ => None,
    });
    assert_eq!(error, Some(Code::EXCESSIVE_LOAD));
}

#[test]
fn rfc9114_10_5_early_priorities_are_bounded() {
    let mut pair = server();
    let control = pair.client.open(UNI, &CONTROL, false);
    for index in 0..300u16 {
        let id = ((index * 4) | 0x4000).to_be_bytes();
        let mut bytes = vec![0x80, 0x0f, 0x07, 0x00, 5, id[0], id[1]];
        bytes.extend(b"u=1");
        pair.client.say(control, &bytes, false);
    }
    assert_eq!(failure(&mut pair, Side::Server), None);
    let response = Response::new(200);
    for _ in 0..90 {
        let id = pair.client.open(BIDI, &head(&GET), true);
        pair.pass(2 * DELAY);
        let (http3, quic) = pair.server.http3();
        http3
            .respond(quic, id, &response, Body::Empty)
            .expect("a response");
    }
    let is_told = |event: &&Event| matches!(event, Event::Priority { .. });
    assert_eq!(pair.server.events.iter().filter(is_told).count(), 90);
}

#[test]
fn rfc9218_7_1_priority_updates_with_each_of_many_requests_are_accepted() {
    let mut pair = server();
    let control = pair.client.open(UNI, &CONTROL, false);
    let updates = |count| priority_update(0, "u=1").repeat(count);
    pair.client.say(control, &updates(480), false);
    pair.pass(4 * DELAY);
    // As many again would be too many; with requests they are not.
    for _ in 0..90 {
        pair.client.open(BIDI, &head(&GET), true);
        pair.client.say(control, &updates(2), false);
        pair.pass(DELAY / 50);
    }
    pair.pass(4 * DELAY);
    assert_eq!(failure(&mut pair, Side::Server), None);
}
