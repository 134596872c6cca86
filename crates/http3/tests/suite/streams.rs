//! Streams and frames that break a rule, or do not (RFC 9114 §6, §7).

use lastbyte_http3::{Code, Config, Connection, Event, Fields, Settings};
use lastbyte_quic::stream::StreamEvent;
use lastbyte_wire::{Side, StreamId};

use crate::{
    pair::{DELAY, Pair, transport_config},
    raw::{BIDI, CONTROL, GET, UNI, client, data, failure, frame, got_request, head, server},
};

// ---- streams ------------------------------------------------------------------------------------------------------

#[test]
fn rfc9114_6_2_1_there_is_one_control_stream_and_it_starts_with_settings() {
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
fn rfc9114_6_2_local_critical_streams_are_opened_at_once() {
    let pair = server();
    let stream = |index| StreamId::new(Side::Server, UNI, index).expect("a stream");
    let control = &pair.client.bodies[&stream(0)];
    assert_eq!(control[..2], [0, 4]);
    assert_eq!(pair.client.bodies[&stream(1)], [2]);
    assert_eq!(pair.client.bodies[&stream(2)], [3]);
}

#[test]
fn rfc9114_6_2_3_streams_of_unknown_types_are_only_stopped() {
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
fn rfc9114_6_2_2_push_streams_are_rejected_from_clients_and_servers() {
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

// ---- frames -------------------------------------------------------------------------------------------------------

#[test]
fn rfc9114_7_1_a_stream_that_ends_inside_a_frame_is_an_error() {
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
fn rfc9114_7_1_frames_are_parsed_from_fragments_of_any_size() {
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
fn rfc9114_7_2_frames_forbidden_on_a_request_stream_are_errors() {
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
fn rfc9114_7_2_4_2_settings_below_the_remembered_ones_are_an_error() {
    let remembered = Settings {
        qpack_max_table_capacity: 100,
        qpack_blocked_streams: 1,
        ..Settings::default()
    };
    let bytes = remembered.to_bytes();
    let remembered = Settings::from_bytes(&bytes).expect("as it was");
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
fn rfc9114_7_2_5_an_unsolicited_push_promise_is_an_error() {
    let (mut pair, id) = client();
    pair.server.say(id, &frame(5, &[0, 0, 0]), false);
    assert_eq!(failure(&mut pair, Side::Client), Some(Code::ID_ERROR));
}
