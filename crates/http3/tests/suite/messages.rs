//! Messages that are malformed, or not (RFC 9114 §4).

use lastbyte_http3::{
    Code, Config, Event, Fields, Request,
    qpack::{Decoded, Decoder, SectionLimits},
};
use lastbyte_quic::stream::{StreamEvent, WriteError};
use lastbyte_wire::Side;

use crate::{
    pair::DELAY,
    raw::{
        BIDI, GET, client, client_that, data, failure, frame, get_with, got_request, head,
        reset_code, server, server_with,
    },
};

#[test]
fn rfc9114_4_1_2_malformed_requests_are_stream_errors() {
    let bad: [Vec<(&str, &str)>; 44] = [
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
        get_with(&[(":path", "-sibling/secret")]),
        get_with(&[(":path", "http://internal.example/admin")]),
        get_with(&[(":path", "*")]),
        get_with(&[(":path", "/a#b")]),
        // §4.3.1: no server here answers for another scheme, whatever it asks for.
        get_with(&[(":scheme", "foo")]),
        get_with(&[
            (":scheme", "foo"),
            (":path", "http://internal.example/admin"),
        ]),
        get_with(&[(":scheme", "urn"), (":path", "x:y")]),
        get_with(&[(":scheme", "1")]),
        get_with(&[(":authority", "")]),
        get_with(&[(":authority", "user@example.com")]),
        get_with(&[(":authority", "a/b?c#d")]),
        get_with(&[(":authority", "example.com:port")]),
        get_with(&[(":authority", "example.com:65536")]),
        get_with(&[(":authority", "2001:db8::1")]),
        get_with(&[(":authority", "[::1%25eth0]")]),
        get_with(&[(":authority", "a\"b")]),
        [&GET[..2], &GET[3..], &[("host", "a/b")]].concat(),
        [&GET[..2], &GET[3..], &[("host", "")]].concat(),
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
fn rfc9114_4_3_1_well_formed_requests_are_accepted() {
    let good: [Vec<(&str, &str)>; 8] = [
        get_with(&[("te", "trailers")]),
        get_with(&[("host", "example.com")]),
        get_with(&[("content-length", "0")]),
        get_with(&[(":method", "OPTIONS"), (":path", "*")]),
        get_with(&[("x", "caf\u{e9}\t")]),
        [&GET[..2], &GET[3..], &[("host", "example.com")]].concat(),
        vec![(":method", "CONNECT"), (":authority", "example.com:443")],
        get_with(&[(":authority", "[2001:db8::1]:443")]),
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
fn rfc9114_4_1_2_a_body_of_another_length_than_content_length_is_malformed() {
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
            Event::Reset { stream, error, .. } if *stream == id => Some(error.code),
            _ => None,
        });
        assert_eq!(error, Some(Code::MESSAGE_ERROR), "{bytes:?}");
    }
}

#[test]
fn rfc9110_8_6_content_length_of_responses_without_a_body() {
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
