//! Shutting down, priorities and compression, against what a test writes.

use std::time::Duration;

use lastbyte_http3::{Code, Config, Event, Priority};
use lastbyte_quic::stream::StreamEvent;
use lastbyte_wire::{Side, StreamId};

use crate::{
    pair::DELAY,
    raw::{
        BIDI, CONTROL, GET, UNI, client, data, failure, frame, got_request, head, priority_update,
        reset_code, section, server, server_with,
    },
};

// ---- shutting down ------------------------------------------------------------------------------------------------

#[test]
fn rfc9114_5_2_a_request_after_goaway_is_rejected() {
    let mut pair = server();
    pair.client.open(UNI, &CONTROL, false);
    let now = pair.now;
    let (http3, quic) = pair.server.http3();
    http3.shut_down(quic, now);
    pair.pass(20 * DELAY);
    // The server waits for such a request, although it has none.
    assert!(!pair.server.events.contains(&Event::Drained));
    let id = pair.client.open(BIDI, &head(&GET), true);
    pair.pass(4 * DELAY);
    assert_eq!(reset_code(&pair, id), Some(Code::REQUEST_REJECTED));
    assert!(!got_request(&pair));
    pair.pass(Duration::from_secs(1));
    assert!(pair.server.events.contains(&Event::Drained));
}

#[test]
fn rfc9114_5_2_a_client_cancels_requests_above_the_goaway_id() {
    let (mut pair, id) = client();
    pair.server
        .open(UNI, &[&CONTROL[..], &[7, 1, 0]].concat(), false);
    pair.pass(4 * DELAY);
    let error = pair.client.events.iter().find_map(|event| match event {
        Event::Reset { stream, error, .. } if *stream == id => Some(*error),
        _ => None,
    });
    assert!(error.is_some_and(|error| error.is_safe_to_retry()));
    let stopped = StreamEvent::Stopped {
        id,
        code: Code::REQUEST_CANCELLED.into(),
    };
    assert!(pair.server.stream_events.contains(&stopped));
    assert!(pair.client.events.contains(&Event::Drained));
}

// ---- priorities ---------------------------------------------------------------------------------------------------

#[test]
fn rfc9218_7_an_early_priority_update_overrides_the_request_header() {
    let mut pair = server();
    let updates = [priority_update(0, "u=6"), priority_update(0, "u=1, i")].concat();
    pair.client
        .open(UNI, &[&CONTROL[..], &updates].concat(), false);
    pair.pass(2 * DELAY);
    let request = [&GET[..], &[("priority", "u=5")]].concat();
    let id = pair.client.open(BIDI, &head(&request), true);
    pair.pass(2 * DELAY);
    let expected = Event::Priority {
        stream: id,
        priority: Priority {
            urgency: 1,
            is_incremental: true,
        },
    };
    assert!(
        pair.server.events.contains(&expected),
        "{:?}",
        pair.server.events
    );
}

#[test]
fn rfc9218_7_an_update_replaces_all_and_invalid_values_are_the_default() {
    let mut pair = server();
    let control = pair.client.open(UNI, &CONTROL, false);
    let request = [&GET[..], &[("priority", "u=5, i")]].concat();
    pair.client.open(BIDI, &head(&request), true);
    pair.pass(2 * DELAY);
    for (text, urgency, is_incremental) in [("i", 3, true), ("u=2", 2, false), ("=", 3, false)] {
        pair.client.say(control, &priority_update(0, text), false);
        pair.pass(2 * DELAY);
        let last = pair
            .server
            .events
            .iter()
            .rev()
            .find_map(|event| match event {
                Event::Priority { priority, .. } => Some(*priority),
                _ => None,
            });
        assert_eq!(
            last,
            Some(Priority {
                urgency,
                is_incremental
            }),
            "{text}"
        );
    }
}

#[test]
fn rfc9218_7_updates_of_non_request_streams_are_id_errors() {
    for (id, code) in [
        (1, Code::ID_ERROR),
        (2, Code::ID_ERROR),
        (3, Code::ID_ERROR),
    ] {
        let mut pair = server();
        pair.client.open(
            UNI,
            &[&CONTROL[..], &priority_update(id, "u=1")].concat(),
            false,
        );
        assert_eq!(failure(&mut pair, Side::Server), Some(code));
    }
    // Of a push; without an identifier; far beyond any limit.
    for (bytes, code) in [
        (&[0x80, 0x0f, 0x07, 0x01, 1, 0][..], Code::ID_ERROR),
        (&[0x80, 0x0f, 0x07, 0x00, 0], Code::FRAME_ERROR),
        (
            &[0x80, 0x0f, 0x07, 0x00, 4, 0xbf, 0xff, 0xff, 0xfc],
            Code::ID_ERROR,
        ),
    ] {
        let mut pair = server();
        pair.client.open(UNI, &[&CONTROL, bytes].concat(), false);
        assert_eq!(failure(&mut pair, Side::Server), Some(code), "{bytes:?}");
    }
    // On another stream.
    let mut pair = server();
    pair.client.open(BIDI, &priority_update(0, "u=1"), false);
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::FRAME_UNEXPECTED)
    );
}

// ---- QPACK on a connection ----------------------------------------------------------------------------------------

#[test]
fn rfc9204_2_2_1_a_request_waits_for_insertions() {
    let mut pair = server();
    // Required insert count 1, base 1, entry 0; behind it the other pseudo-headers.
    let mut bytes = vec![2, 0, 0x80];
    bytes.extend(&section(&[GET[0], GET[1], GET[3]])[2..]);
    let id = pair
        .client
        .open(BIDI, &[frame(1, &bytes), data("body")].concat(), true);
    pair.pass(4 * DELAY);
    assert!(!got_request(&pair));
    // Capacity 220, and `:authority: www.example.com` (Appendix B.2).
    let mut instructions = vec![2, 0x3f, 0xbd, 0x01, 0xc0, 0x0f];
    instructions.extend(b"www.example.com");
    pair.client.open(UNI, &instructions, false);
    pair.pass(4 * DELAY);
    assert!(got_request(&pair));
    assert_eq!(pair.server.bodies[&id], b"body");
    assert!(pair.server.events.contains(&Event::Finished { stream: id }));
    // §4.4.1: and that it was decoded is acknowledged.
    let decoder = StreamId::new(Side::Server, UNI, 2).expect("a stream");
    assert_eq!(pair.client.bodies[&decoder], [3, 0x80]);
}

#[test]
fn rfc9204_2_2_2_2_a_cancelled_blocked_request_sends_stream_cancellation() {
    let mut pair = server();
    let id = pair.client.open(BIDI, &frame(1, &[2, 0, 0x80]), false);
    pair.pass(2 * DELAY);
    let streams = pair.client.quic.streams();
    streams
        .reset(id, Code::REQUEST_CANCELLED.into())
        .expect("open");
    pair.pass(4 * DELAY);
    let decoder = StreamId::new(Side::Server, UNI, 2).expect("a stream");
    assert_eq!(pair.client.bodies[&decoder], [3, 0x40]);
    assert_eq!(failure(&mut pair, Side::Server), None);
}

#[test]
fn rfc9204_2_1_2_blocked_streams_above_the_limit_close_the_connection() {
    let config = Config {
        qpack_blocked_streams: 2,
        ..Config::default()
    };
    for (count, code) in [(2, None), (3, Some(Code::QPACK_DECOMPRESSION_FAILED))] {
        let mut pair = server_with(&config);
        for _ in 0..count {
            pair.client.open(BIDI, &frame(1, &[2, 0, 0x80]), false);
        }
        assert_eq!(failure(&mut pair, Side::Server), code);
    }
}

#[test]
fn rfc9204_6_invalid_instructions_close_the_connection() {
    for (bytes, code) in [
        // The encoder stream: no such static entry; too large a capacity; no entry to duplicate.
        (&[2, 0xff, 0x3f, 0][..], Code::QPACK_ENCODER_STREAM_ERROR),
        (&[2, 0x3f, 0xff, 0x7f], Code::QPACK_ENCODER_STREAM_ERROR),
        (&[2, 0], Code::QPACK_ENCODER_STREAM_ERROR),
        // The decoder stream: nothing was sent; nothing was inserted.
        (&[3, 0x80], Code::QPACK_DECODER_STREAM_ERROR),
        (&[3, 1], Code::QPACK_DECODER_STREAM_ERROR),
        (&[3, 0], Code::QPACK_DECODER_STREAM_ERROR),
    ] {
        let mut pair = server();
        pair.client.open(UNI, bytes, false);
        assert_eq!(failure(&mut pair, Side::Server), Some(code), "{bytes:?}");
    }
    let mut pair = server();
    pair.client.open(BIDI, &frame(1, &[0, 0, 0xff, 0x40]), true);
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::QPACK_DECOMPRESSION_FAILED)
    );
}
