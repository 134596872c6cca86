//! One end against what a test writes: a test for each rule.

use std::time::Duration;

use lastbyte_http3::{
    Body, Code, Config, Connection, Event, FieldLine, Fields, Limits, Priority, Request, Response,
    qpack::{Decoded, Decoder, EncodeOptions, Encoder, SectionLimits},
};
use lastbyte_quic::{
    close::CloseReason,
    stream::{StreamEvent, WriteError},
};
use lastbyte_wire::{Direction, Side, StreamId};

use crate::pair::{DELAY, Pair, transport_config};

const UNI: Direction = Direction::Unidirectional;
const BIDI: Direction = Direction::Bidirectional;
/// A control stream with SETTINGS of nothing.
const CONTROL: [u8; 3] = [0, 4, 0];

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "example.com"),
    (":path", "/"),
];

/// A server of ours, and a client that a test speaks for.
fn server_with(config: &Config) -> Pair {
    let mut pair = Pair::of(
        None,
        Some(Connection::server(config)),
        &transport_config(),
        1,
    );
    pair.shake_hands();
    pair
}

fn server() -> Pair {
    server_with(&Config::default())
}

/// A client of ours that has asked, and a server that a test speaks for.
fn client() -> (Pair, StreamId) {
    client_that(&Request::new("GET", "https", "example.com", "/"))
}

fn client_that(request: &Request) -> (Pair, StreamId) {
    let http3 = Connection::client(&Config::default());
    let mut pair = Pair::of(Some(http3), None, &transport_config(), 1);
    pair.shake_hands();
    let (http3, quic) = pair.client.http3();
    let id = http3
        .request(quic, request, Body::Empty)
        .expect("a request");
    pair.pass(2 * DELAY);
    (pair, id)
}

/// What our end failed with; the other end is told the same.
fn failure(pair: &mut Pair, side: Side) -> Option<Code> {
    pair.pass(4 * DELAY);
    let code = pair.end(side).events.iter().find_map(|event| match event {
        Event::Failed(error) => Some(error.code),
        _ => None,
    })?;
    let reason = pair.end(side.peer()).quic.close_reason();
    assert_eq!(
        reason,
        Some(CloseReason::PeerApplication { code: code.get() })
    );
    Some(code)
}

fn section(lines: &[(&str, &str)]) -> Vec<u8> {
    let lines = lines.iter().map(|(name, value)| FieldLine {
        name,
        value: value.as_bytes(),
        is_sensitive: false,
    });
    let options = EncodeOptions {
        instructions_max: 0,
        may_block: false,
    };
    let mut section = Vec::new();
    Encoder::new(0, 0).encode(0, lines, options, &mut section);
    section
}

/// A frame whose type is one byte, and whose length is two.
fn frame(frame_type: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16 | 0x4000;
    [&[frame_type][..], &len.to_be_bytes(), payload].concat()
}

fn head(lines: &[(&str, &str)]) -> Vec<u8> {
    frame(1, &section(lines))
}

fn data(payload: &str) -> Vec<u8> {
    frame(0, payload.as_bytes())
}

/// The GET, with other lines instead of those of the same name, and further ones.
fn get_with(lines: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let mut all = GET.to_vec();
    for (name, value) in lines {
        match all.iter_mut().find(|(known, _)| known == name) {
            Some(line) => line.1 = value,
            None => all.push((name, value)),
        }
    }
    all
}

fn reset_code(pair: &Pair, id: StreamId) -> Option<Code> {
    pair.client
        .stream_events
        .iter()
        .find_map(|event| match event {
            StreamEvent::Reset { id: of, code } if *of == id => Some(Code::from(*code)),
            _ => None,
        })
}

fn got_request(pair: &Pair) -> bool {
    let is_request = |event: &Event| matches!(event, Event::Request { .. });
    pair.server.events.iter().any(is_request)
}

// ---- streams (RFC 9114 §6) ---------------------------------------------------------------------------------------------

#[test]
fn rfc9114_6_2_1_a_control_stream_begins_with_settings_and_there_is_one() {
    for (bytes, code) in [
        (&[0, 7, 1, 0][..], Code::MISSING_SETTINGS),
        (&[0, 0x21, 0], Code::MISSING_SETTINGS),
        (&[0, 4, 0, 4, 0], Code::FRAME_UNEXPECTED),
        (&[0, 4, 0, 0, 0], Code::FRAME_UNEXPECTED),
        (&[0, 4, 0, 1, 0], Code::FRAME_UNEXPECTED),
        (&[0, 4, 0, 5, 1, 0], Code::FRAME_UNEXPECTED),
        (&[0, 4, 0, 2, 0], Code::FRAME_UNEXPECTED),
        (&[0, 4, 0, 6, 0], Code::FRAME_UNEXPECTED),
        (&[0, 4, 0, 8, 0], Code::FRAME_UNEXPECTED),
        (&[0, 4, 0, 9, 0], Code::FRAME_UNEXPECTED),
    ] {
        let mut pair = server();
        pair.client.open(UNI, bytes, false);
        assert_eq!(failure(&mut pair, Side::Server), Some(code), "{bytes:?}");
    }
}

#[test]
fn rfc9114_6_2_1_and_rfc9204_4_2_a_second_stream_of_a_kind_is_an_error() {
    for stream_type in [0, 2, 3] {
        let mut pair = server();
        let bytes: &[u8] = if stream_type == 0 {
            &CONTROL
        } else {
            &[stream_type]
        };
        pair.client.open(UNI, bytes, false);
        pair.client.open(UNI, bytes, false);
        assert_eq!(
            failure(&mut pair, Side::Server),
            Some(Code::STREAM_CREATION_ERROR)
        );
    }
}

#[test]
fn rfc9114_6_2_1_and_rfc9204_4_2_critical_streams_stay_open() {
    for stream_type in [0, 2, 3] {
        for resets in [false, true] {
            let mut pair = server();
            let bytes: &[u8] = if stream_type == 0 {
                &CONTROL
            } else {
                &[stream_type]
            };
            let id = pair.client.open(UNI, bytes, !resets);
            if resets {
                pair.pass(2 * DELAY);
                let streams = pair.client.quic.streams();
                streams.reset(id, Code::NO_ERROR.into()).expect("open");
            }
            assert_eq!(
                failure(&mut pair, Side::Server),
                Some(Code::CLOSED_CRITICAL_STREAM)
            );
        }
    }
    // Ours are not to be stopped either.
    let mut pair = server();
    let now = pair.now;
    let id = StreamId::new(Side::Server, UNI, 0).expect("the control stream");
    let streams = pair.client.quic.streams();
    streams
        .stop_sending(id, Code::NO_ERROR.into(), now)
        .expect("open");
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::CLOSED_CRITICAL_STREAM)
    );
}

#[test]
fn rfc9114_6_2_our_own_critical_streams_are_there_at_once() {
    let pair = server();
    let stream = |index| StreamId::new(Side::Server, UNI, index).expect("a stream");
    let control = &pair.client.bodies[&stream(0)];
    assert_eq!(control[..2], [0, 4]);
    assert_eq!(pair.client.bodies[&stream(1)], [2]);
    assert_eq!(pair.client.bodies[&stream(2)], [3]);
}

#[test]
fn rfc9114_6_2_3_streams_of_unknown_types_are_stopped_and_nothing_else() {
    let mut pair = server();
    pair.client.open(UNI, &CONTROL, false);
    let unknown = pair.client.open(UNI, &[0x40, 0x54, 1, 2, 3], false);
    // Without a whole type, with just one, and reset before it.
    pair.client.open(UNI, &[0x80], true);
    pair.client.open(UNI, &[0x21], true);
    let gone = pair.client.open(UNI, &[0xc0], false);
    pair.pass(2 * DELAY);
    let streams = pair.client.quic.streams();
    streams.reset(gone, Code::NO_ERROR.into()).expect("open");
    assert_eq!(failure(&mut pair, Side::Server), None);
    let stopped = StreamEvent::Stopped {
        id: unknown,
        code: Code::STREAM_CREATION_ERROR.into(),
    };
    assert!(pair.client.stream_events.contains(&stopped));
    pair.client.open(BIDI, &head(&GET), true);
    pair.pass(2 * DELAY);
    assert!(got_request(&pair));
}

#[test]
fn rfc9114_6_2_2_pushes_are_refused_whoever_sends_them() {
    let mut pair = server();
    pair.client.open(UNI, &[1, 0], false);
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::STREAM_CREATION_ERROR)
    );
    let (mut pair, _) = client();
    pair.server.open(UNI, &[1, 0], false);
    assert_eq!(failure(&mut pair, Side::Client), Some(Code::ID_ERROR));
}

#[test]
fn rfc9114_6_1_a_server_opens_no_bidirectional_stream() {
    let (mut pair, _) = client();
    pair.server.open(BIDI, &[0], false);
    assert_eq!(
        failure(&mut pair, Side::Client),
        Some(Code::STREAM_CREATION_ERROR)
    );
}

// ---- frames (RFC 9114 §7) ----------------------------------------------------------------------------------------------

#[test]
fn rfc9114_7_1_a_stream_does_not_end_inside_of_a_frame() {
    let whole = [head(&GET), data("body")].concat();
    for cut in [1, 2, 5, whole.len() - 6, whole.len() - 1] {
        let mut pair = server();
        pair.client.open(BIDI, &whole[..cut], true);
        assert_eq!(
            failure(&mut pair, Side::Server),
            Some(Code::FRAME_ERROR),
            "{cut}"
        );
    }
}

#[test]
fn rfc9114_7_1_frames_come_in_any_pieces() {
    let mut pair = server();
    let whole = [head(&GET), data("body"), head(&[("x-sum", "1")])].concat();
    let id = pair.client.open(BIDI, &[], false);
    for byte in &whole {
        pair.client.say(id, &[*byte], false);
        pair.pass(DELAY / 10);
    }
    pair.client.quic.streams().finish(id).expect("open");
    pair.pass(4 * DELAY);
    assert_eq!(pair.server.bodies[&id], b"body");
    let trailers = Event::Trailers {
        stream: id,
        fields: Fields::new().with("x-sum", "1"),
    };
    assert!(pair.server.events.contains(&trailers));
    assert!(pair.server.events.contains(&Event::Finished { stream: id }));
}

#[test]
fn rfc9114_7_2_frames_that_may_not_be_on_a_request_stream() {
    for frame_type in [2, 3, 4, 5, 6, 7, 8, 9, 13] {
        let mut pair = server();
        pair.client.open(BIDI, &frame(frame_type, &[0]), false);
        let code = failure(&mut pair, Side::Server);
        assert_eq!(code, Some(Code::FRAME_UNEXPECTED), "{frame_type}");
    }
}

#[test]
fn rfc9114_4_1_frames_out_of_order() {
    let trailers = head(&[("x", "y")]);
    for bytes in [
        data("early"),
        [head(&GET), trailers.clone(), data("late")].concat(),
        [head(&GET), trailers.clone(), trailers.clone()].concat(),
    ] {
        let mut pair = server();
        pair.client.open(BIDI, &bytes, false);
        assert_eq!(
            failure(&mut pair, Side::Server),
            Some(Code::FRAME_UNEXPECTED)
        );
    }
}

#[test]
fn rfc9114_7_2_8_and_9_unknown_frames_are_ignored_anywhere() {
    let mut pair = server();
    let mut control = CONTROL.to_vec();
    control.extend(frame(0x21, b"what?"));
    control.extend([0x40, 0x40, 0]);
    pair.client.open(UNI, &control, false);
    let grease = frame(0x21, &[7; 3000]);
    let bytes = [
        &grease,
        &head(&GET),
        &grease,
        &data("x"),
        &grease,
        &frame(0x3f, &[]),
    ];
    let id = pair
        .client
        .open(BIDI, &bytes.map(Vec::as_slice).concat(), true);
    assert_eq!(failure(&mut pair, Side::Server), None);
    assert!(pair.server.events.contains(&Event::Finished { stream: id }));
}

#[test]
fn rfc9114_7_2_3_7_2_6_7_2_7_control_frames_of_one_integer() {
    for (payload, code) in [
        // GOAWAY: empty, with a byte too many, growing.
        (&[7, 0][..], Some(Code::FRAME_ERROR)),
        (&[7, 2, 0, 0], Some(Code::FRAME_ERROR)),
        (&[7, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some(Code::FRAME_ERROR)),
        (&[7, 1, 4, 7, 1, 4], None),
        (&[7, 1, 4, 7, 1, 8], Some(Code::ID_ERROR)),
        // MAX_PUSH_ID: falling.
        (&[13, 1, 4, 13, 1, 4], None),
        (&[13, 1, 4, 13, 1, 3], Some(Code::ID_ERROR)),
        // CANCEL_PUSH of what was not promised.
        (&[3, 1, 0], Some(Code::ID_ERROR)),
    ] {
        let mut pair = server();
        pair.client.open(UNI, &[&CONTROL, payload].concat(), false);
        assert_eq!(failure(&mut pair, Side::Server), code, "{payload:?}");
    }
    for (payload, code) in [
        // To a client: GOAWAY names a request; MAX_PUSH_ID and PRIORITY_UPDATE are for servers.
        (&[7, 1, 8][..], None),
        (&[7, 1, 9], Some(Code::ID_ERROR)),
        (&[7, 1, 8, 7, 1, 12], Some(Code::ID_ERROR)),
        (&[13, 1, 0], Some(Code::FRAME_UNEXPECTED)),
        (&[3, 1, 0], Some(Code::ID_ERROR)),
        (
            &[0x80, 0x0f, 0x07, 0x00, 1, 0],
            Some(Code::FRAME_UNEXPECTED),
        ),
    ] {
        let (mut pair, _) = client();
        pair.server.open(UNI, &[&CONTROL, payload].concat(), false);
        assert_eq!(failure(&mut pair, Side::Client), code, "{payload:?}");
    }
}

#[test]
fn rfc9114_7_2_4_settings() {
    for (payload, code) in [
        (&[][..], None),
        (&[0x21, 0, 0x40, 0x40, 0], None),
        (&[0x21, 0, 0x21, 0], Some(Code::SETTINGS_ERROR)),
        (&[6, 1], None),
        (&[6, 1, 6, 1], Some(Code::SETTINGS_ERROR)),
        (&[0, 0], Some(Code::SETTINGS_ERROR)),
        (&[2, 0], Some(Code::SETTINGS_ERROR)),
        (&[3, 0], Some(Code::SETTINGS_ERROR)),
        (&[4, 0], Some(Code::SETTINGS_ERROR)),
        (&[5, 0], Some(Code::SETTINGS_ERROR)),
        (&[8, 2], Some(Code::SETTINGS_ERROR)),
        (&[0x33, 2], Some(Code::SETTINGS_ERROR)),
        (&[6], Some(Code::FRAME_ERROR)),
        (&[6, 0x40], Some(Code::FRAME_ERROR)),
    ] {
        let mut pair = server();
        pair.client
            .open(UNI, &[&[0][..], &frame(4, payload)].concat(), false);
        assert_eq!(failure(&mut pair, Side::Server), code, "{payload:?}");
    }
}

#[test]
fn rfc9114_7_2_4_2_settings_do_not_fall_below_what_was_remembered() {
    let mut remembered = lastbyte_http3::Settings::default();
    remembered.qpack_max_table_capacity = 100;
    remembered.qpack_blocked_streams = 1;
    let bytes = remembered.to_bytes();
    let remembered = lastbyte_http3::Settings::from_bytes(&bytes).expect("as it was");
    for (payload, code) in [
        (&[1, 0x40, 100, 7, 1][..], None),
        (&[1, 0x40, 100, 7, 2], None),
        (&[1, 0x40, 101, 7, 1], Some(Code::SETTINGS_ERROR)),
        (&[1, 0x40, 100], Some(Code::SETTINGS_ERROR)),
        (&[7, 1], Some(Code::SETTINGS_ERROR)),
        (&[1, 0x40, 100, 7, 1, 6, 5], Some(Code::SETTINGS_ERROR)),
    ] {
        let http3 = Connection::client(&Config::default()).with_remembered(remembered);
        let mut pair = Pair::of(Some(http3), None, &transport_config(), 1);
        pair.shake_hands();
        pair.server
            .open(UNI, &[&[0][..], &frame(4, payload)].concat(), false);
        assert_eq!(failure(&mut pair, Side::Client), code, "{payload:?}");
    }
}

#[test]
fn rfc9114_7_2_5_a_push_promise_was_not_permitted() {
    let (mut pair, id) = client();
    pair.server.say(id, &frame(5, &[0, 0, 0]), false);
    assert_eq!(failure(&mut pair, Side::Client), Some(Code::ID_ERROR));
}

// ---- messages (RFC 9114 §4) --------------------------------------------------------------------------------------------

#[test]
fn rfc9114_4_1_2_malformed_requests_are_stream_errors() {
    let bad: [Vec<(&str, &str)>; 28] = [
        get_with(&[("Accept", "*/*")]),
        get_with(&[("", "x")]),
        get_with(&[("a b", "x")]),
        get_with(&[("x", "a\nb")]),
        get_with(&[("x", "a\rb")]),
        get_with(&[("x", "a\0b")]),
        get_with(&[("connection", "close")]),
        get_with(&[("keep-alive", "1")]),
        get_with(&[("proxy-connection", "x")]),
        get_with(&[("transfer-encoding", "chunked")]),
        get_with(&[("upgrade", "h2c")]),
        get_with(&[("te", "gzip")]),
        get_with(&[("x", "y"), (":protocol", "websocket")]),
        get_with(&[(":status", "200")]),
        get_with(&[(":unknown", "200")]),
        get_with(&[(":path", "")]),
        get_with(&[(":path", "no-slash")]),
        get_with(&[(":authority", "")]),
        get_with(&[(":authority", "user@example.com")]),
        get_with(&[("host", "other.example")]),
        get_with(&[("content-length", "x")]),
        get_with(&[("content-length", "-1")]),
        GET[1..].to_vec(),
        [&GET[..1], &GET[2..]].concat(),
        [&GET[..2], &GET[3..]].concat(),
        GET[..3].to_vec(),
        [&GET[..], &GET[..1]].concat(),
        [&GET[..2], &[("x", "y")], &GET[2..]].concat(),
    ];
    for lines in bad {
        let mut pair = server();
        let id = pair.client.open(BIDI, &head(&lines), true);
        pair.pass(4 * DELAY);
        assert_eq!(
            reset_code(&pair, id),
            Some(Code::MESSAGE_ERROR),
            "{lines:?}"
        );
        assert!(!got_request(&pair), "{lines:?}");
        // Others are served.
        pair.client.open(BIDI, &head(&GET), true);
        pair.pass(4 * DELAY);
        assert!(got_request(&pair));
        assert_eq!(failure(&mut pair, Side::Server), None);
    }
}

#[test]
fn rfc9114_4_3_1_requests_that_are_well_formed() {
    let good: [Vec<(&str, &str)>; 8] = [
        get_with(&[("te", "trailers")]),
        get_with(&[("host", "example.com")]),
        get_with(&[("content-length", "0")]),
        get_with(&[(":method", "OPTIONS"), (":path", "*")]),
        get_with(&[("x", "caf\u{e9}\t")]),
        [&GET[..2], &GET[3..], &[("host", "example.com")]].concat(),
        vec![(":method", "CONNECT"), (":authority", "example.com:443")],
        vec![(":method", "GET"), (":scheme", "urn"), (":path", "x:y")],
    ];
    for lines in good {
        let mut pair = server();
        pair.client.open(BIDI, &head(&lines), false);
        pair.pass(2 * DELAY);
        assert!(got_request(&pair), "{lines:?}");
    }
}

#[test]
fn rfc9114_4_4_connect_has_an_authority_with_a_port_and_nothing_else() {
    for lines in [
        vec![(":method", "CONNECT")],
        vec![(":method", "CONNECT"), (":authority", "example.com")],
        vec![(":method", "CONNECT"), (":authority", ":443")],
        vec![
            (":method", "CONNECT"),
            (":authority", "a:443"),
            (":scheme", "https"),
        ],
        vec![
            (":method", "CONNECT"),
            (":authority", "a:443"),
            (":path", "/"),
        ],
        // RFC 9220 §3: not unless our settings say so.
        [
            &GET[1..],
            &[(":method", "CONNECT"), (":protocol", "websocket")],
        ]
        .concat(),
    ] {
        let mut pair = server();
        let id = pair.client.open(BIDI, &head(&lines), false);
        pair.pass(4 * DELAY);
        assert_eq!(
            reset_code(&pair, id),
            Some(Code::MESSAGE_ERROR),
            "{lines:?}"
        );
    }
}

#[test]
fn rfc9114_4_4_a_tunnel_has_only_data() {
    let mut pair = server();
    let connect = head(&[(":method", "CONNECT"), (":authority", "example.com:443")]);
    let bytes = [connect, data("x"), head(&[("x", "y")])].concat();
    pair.client.open(BIDI, &bytes, false);
    assert_eq!(
        failure(&mut pair, Side::Server),
        Some(Code::FRAME_UNEXPECTED)
    );
}

#[test]
fn rfc9114_4_1_2_a_body_is_as_long_as_content_length_says() {
    for (length, bodies, is_right) in [
        ("4", &["body"][..], true),
        ("4", &["bo", "", "dy"], true),
        ("0", &[], true),
        ("4", &["bod"], false),
        ("4", &["bod", "ies"], false),
        ("4", &[], false),
    ] {
        let mut pair = server();
        let mut bytes = head(&[&GET[..], &[("content-length", length)]].concat());
        bytes.extend(bodies.iter().flat_map(|body| data(body)));
        let id = pair.client.open(BIDI, &bytes, true);
        pair.pass(4 * DELAY);
        let code = reset_code(&pair, id);
        assert_eq!(
            code,
            (!is_right).then_some(Code::MESSAGE_ERROR),
            "{length} {bodies:?}"
        );
        let is_finished = pair.server.events.contains(&Event::Finished { stream: id });
        assert_eq!(is_finished, is_right);
        let is_reset = |event: &Event| matches!(event, Event::Reset { .. });
        assert_eq!(pair.server.events.iter().any(is_reset), !is_right);
    }
}

#[test]
fn rfc9114_4_3_no_pseudo_headers_in_trailers() {
    let mut pair = server();
    let bytes = [head(&GET), head(&[(":path", "/")])].concat();
    let id = pair.client.open(BIDI, &bytes, true);
    pair.pass(4 * DELAY);
    assert_eq!(reset_code(&pair, id), Some(Code::MESSAGE_ERROR));
}

#[test]
fn rfc9114_4_1_1_a_request_that_ends_early_is_incomplete() {
    let mut pair = server();
    let id = pair.client.open(BIDI, &frame(0x21, &[]), true);
    pair.pass(4 * DELAY);
    assert_eq!(reset_code(&pair, id), Some(Code::REQUEST_INCOMPLETE));
}

#[test]
fn rfc9114_4_1_2_and_4_3_2_malformed_responses_are_stream_errors() {
    for bytes in [
        head(&[("x", "y")]),
        head(&[(":status", "20")]),
        head(&[(":status", "2000")]),
        head(&[(":status", "2x0")]),
        head(&[(":status", "099")]),
        head(&[(":status", "101")]),
        head(&[(":status", "200"), (":status", "200")]),
        head(&[(":status", "200"), (":path", "/")]),
        head(&[("x", "y"), (":status", "200")]),
        [
            head(&[(":status", "200"), ("content-length", "1")]),
            data("ab"),
        ]
        .concat(),
        // No final response.
        head(&[(":status", "103")]),
        vec![],
    ] {
        let (mut pair, id) = client();
        pair.server.say(id, &bytes, true);
        assert_eq!(failure(&mut pair, Side::Client), None);
        let error = pair.client.events.iter().find_map(|event| match event {
            Event::Reset { stream, error } if *stream == id => Some(error.code),
            _ => None,
        });
        assert_eq!(error, Some(Code::MESSAGE_ERROR), "{bytes:?}");
    }
}

#[test]
fn rfc9110_8_6_content_length_of_what_has_no_body() {
    let head_request = Request::new("HEAD", "https", "example.com", "/");
    let get_request = Request::new("GET", "https", "example.com", "/");
    for (request, status, body, is_right) in [
        (&head_request, "200", "", true),
        (&head_request, "200", "12345", false),
        (&get_request, "304", "", true),
        (&get_request, "200", "", false),
        (&get_request, "200", "12345", true),
    ] {
        let (mut pair, id) = client_that(request);
        let mut bytes = head(&[(":status", status), ("content-length", "5")]);
        if !body.is_empty() {
            bytes.extend(data(body));
        }
        pair.server.say(id, &bytes, true);
        pair.pass(4 * DELAY);
        let is_finished = pair.client.events.contains(&Event::Finished { stream: id });
        assert_eq!(is_finished, is_right, "{status} {body}");
    }
}

#[test]
fn rfc9114_4_2_2_a_head_that_is_too_large_is_answered_with_431() {
    let limits = |size, count| Config {
        field_section_size_max: size,
        fields_max: count,
        ..Config::default()
    };
    let long = "y".repeat(300);
    for config in [limits(300, 256), limits(500, 256), limits(10_000, 4)] {
        let mut pair = server_with(&config);
        let lines = [&GET[..], &[("x-long", long.as_str())]].concat();
        let id = pair.client.open(BIDI, &head(&lines), false);
        pair.pass(4 * DELAY);
        assert!(!got_request(&pair));
        let answer = &pair.client.bodies[&id];
        let mut fields = Fields::new();
        let limits = SectionLimits {
            size: 1000,
            fields: 10,
        };
        let decoded = Decoder::new(0, 0).decode(0, &answer[2..], limits, &mut fields);
        assert_eq!(decoded, Ok(Decoded::Done));
        assert!(format!("{fields:?}").contains("431"), "{fields:?}");
        let stopped = StreamEvent::Stopped {
            id,
            code: Code::NO_ERROR.into(),
        };
        assert!(pair.client.stream_events.contains(&stopped));
        assert_eq!(
            pair.client.quic.streams().write(id, b"x"),
            Err(WriteError::Stopped(Code::NO_ERROR.into()))
        );
        pair.pass(10 * DELAY);
        assert_eq!(pair.server.quic.streams().live(), 3);
        assert_eq!(failure(&mut pair, Side::Server), None);
    }
}

// ---- shutting down (RFC 9114 §5.2) -------------------------------------------------------------------------------------

#[test]
fn rfc9114_5_2_a_request_behind_the_last_is_refused() {
    let mut pair = server();
    pair.client.open(UNI, &CONTROL, false);
    let now = pair.now;
    let (http3, quic) = pair.server.http3();
    http3.shut_down(quic, now);
    pair.pass(20 * DELAY);
    let id = pair.client.open(BIDI, &head(&GET), true);
    pair.pass(4 * DELAY);
    assert_eq!(reset_code(&pair, id), Some(Code::REQUEST_REJECTED));
    assert!(!got_request(&pair));
}

#[test]
fn rfc9114_5_2_a_client_gives_up_what_the_server_will_not_process() {
    let (mut pair, id) = client();
    pair.server
        .open(UNI, &[&CONTROL[..], &[7, 1, 0]].concat(), false);
    pair.pass(4 * DELAY);
    let error = pair.client.events.iter().find_map(|event| match event {
        Event::Reset { stream, error } if *stream == id => Some(*error),
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

// ---- priorities (RFC 9218) ---------------------------------------------------------------------------------------------

fn priority_update(id: u8, text: &str) -> Vec<u8> {
    let mut bytes = vec![0x80, 0x0f, 0x07, 0x00, text.len() as u8 + 1, id];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

#[test]
fn rfc9218_7_an_update_may_come_before_its_request_and_counts_more() {
    let mut pair = server();
    let updates = [priority_update(0, "u=6"), priority_update(0, "u=1, i")].concat();
    pair.client
        .open(UNI, &[&CONTROL[..], &updates].concat(), false);
    pair.pass(2 * DELAY);
    let request = [&GET[..], &[("priority", "u=5")]].concat();
    let id = pair.client.open(BIDI, &head(&request), true);
    pair.pass(2 * DELAY);
    let told = Event::Priority {
        stream: id,
        priority: Priority {
            urgency: 1,
            is_incremental: true,
        },
    };
    assert!(
        pair.server.events.contains(&told),
        "{:?}",
        pair.server.events
    );
}

#[test]
fn rfc9218_7_an_update_replaces_all_and_what_cannot_be_read_is_the_default() {
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
fn rfc9218_7_updates_of_what_is_no_request() {
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

// ---- QPACK on a connection (RFC 9204) ----------------------------------------------------------------------------------

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
fn rfc9204_2_2_2_2_a_request_that_is_given_up_while_it_waits_is_told() {
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
fn rfc9204_2_1_2_no_more_streams_wait_than_was_permitted() {
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
fn rfc9204_6_what_cannot_be_followed_closes_the_connection() {
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

// ---- HTTP datagrams (RFC 9297) -----------------------------------------------------------------------------------------

#[test]
fn rfc9297_2_1_datagrams_name_a_request() {
    let config = Config {
        datagrams: true,
        ..Config::default()
    };
    for (bytes, code) in [
        (&[][..], Some(Code::DATAGRAM_ERROR)),
        (&[0x40], Some(Code::DATAGRAM_ERROR)),
        (&[0xff; 8], Some(Code::DATAGRAM_ERROR)),
        // A request that has not come.
        (&[9, 1], None),
    ] {
        let mut pair = server_with(&config);
        pair.client
            .quic
            .send_datagram(bytes.to_vec())
            .expect("sent");
        assert_eq!(failure(&mut pair, Side::Server), code, "{bytes:?}");
    }
}

#[test]
fn rfc9297_2_1_1_http_datagrams_need_those_of_the_transport() {
    let mut transport = transport_config();
    transport.max_datagram_frame_size = 0;
    let http3 = Connection::server(&Config::default());
    let mut pair = Pair::of(None, Some(http3), &transport, 1);
    pair.shake_hands();
    pair.client.open(UNI, &[0, 4, 2, 0x33, 1], false);
    assert_eq!(failure(&mut pair, Side::Server), Some(Code::SETTINGS_ERROR));
}

// ---- abuse (RFC 9114 §10.5) --------------------------------------------------------------------------------------------

#[test]
fn rfc9114_10_5_rapid_resets_are_cut_off() {
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

#[test]
fn rfc9114_10_5_floods_are_cut_off() {
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
fn rfc9114_10_5_insertions_without_end_are_cut_off() {
    let config = Config {
        limits: Limits {
            encoder_bytes: lastbyte_http3::Rate::new(1000, 10),
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
fn rfc9114_10_5_a_head_that_does_not_come_is_not_waited_for() {
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
fn rfc9114_10_5_interim_responses_have_an_end() {
    let (mut pair, id) = client();
    pair.server
        .say(id, &head(&[(":status", "103")]).repeat(40), false);
    pair.pass(4 * DELAY);
    let is_interim = |event: &&Event| matches!(event, Event::Informational { .. });
    assert_eq!(pair.client.events.iter().filter(is_interim).count(), 32);
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
        let id = (index * 4 | 0x4000).to_be_bytes();
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
