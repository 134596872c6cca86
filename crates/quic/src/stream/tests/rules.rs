//! What a peer must not do, and how violations are reported.

use lastbyte_wire::{TransportError, frame};

use super::*;

/// A server with the small configuration, which receives a client's frames.
fn server() -> Streams {
    let mut streams = Streams::new(Side::Server, small());
    streams.on_peer_parameters(&parameters(&small()));
    streams
}

fn stream(number: u64, offset: u64, data: &[u8], fin: bool) -> Frame<'_> {
    let header = frame::StreamHeader {
        id: id(number),
        offset: varint(offset),
        fin,
    };
    Frame::Stream(frame::Stream { header, data })
}

fn reset(number: u64, final_size: u64) -> Frame<'static> {
    Frame::ResetStream(frame::ResetStream {
        stream_id: id(number),
        error_code: varint(9),
        final_size: varint(final_size),
    })
}

fn stop(number: u64) -> Frame<'static> {
    Frame::StopSending(frame::StopSending {
        stream_id: id(number),
        error_code: varint(5),
    })
}

fn max_stream_data(number: u64) -> Frame<'static> {
    Frame::MaxStreamData(frame::MaxStreamData {
        stream_id: id(number),
        maximum: varint(1 << 20),
    })
}

fn stream_data_blocked(number: u64) -> Frame<'static> {
    Frame::StreamDataBlocked(frame::StreamDataBlocked {
        stream_id: id(number),
        limit: varint(0),
    })
}

fn code(streams: &mut Streams, frame: &Frame<'_>) -> Result<(), TransportError> {
    dispatch(streams, frame, &mut KeepAll).map_err(|error| {
        assert!(!error.reason.is_empty());
        error.code
    })
}

const STATE: Result<(), TransportError> = Err(TransportError::STREAM_STATE_ERROR);
const LIMIT: Result<(), TransportError> = Err(TransportError::STREAM_LIMIT_ERROR);
const FLOW: Result<(), TransportError> = Err(TransportError::FLOW_CONTROL_ERROR);
const SIZE: Result<(), TransportError> = Err(TransportError::FINAL_SIZE_ERROR);

#[test]
fn rfc9000_19_8_frames_in_the_wrong_direction_are_state_errors() {
    // 3 is the server's own unidirectional stream, 2 the client's.
    for frame in [
        stream(3, 0, b"x", false),
        reset(3, 0),
        stream_data_blocked(3),
    ] {
        let mut server = server();
        server.open(Direction::Unidirectional).expect("permitted");
        assert_eq!(code(&mut server, &frame), STATE, "{frame:?}");
    }
    for frame in [stop(2), max_stream_data(2)] {
        assert_eq!(code(&mut server(), &frame), STATE, "{frame:?}");
    }
}

#[test]
fn rfc9000_19_frames_for_local_streams_that_are_not_open_are_state_errors() {
    let frames = [
        stream(1, 0, b"x", false),
        reset(1, 0),
        stream_data_blocked(1),
        stop(1),
        max_stream_data(1),
        stop(3),
        max_stream_data(3),
    ];
    for frame in frames {
        let mut server = server();
        assert_eq!(code(&mut server, &frame), STATE, "{frame:?}");
        server.open(Direction::Bidirectional).expect("permitted");
        server.open(Direction::Unidirectional).expect("permitted");
        assert_eq!(code(&mut server, &frame), Ok(()), "{frame:?}");
    }
}

#[test]
fn rfc9000_4_6_streams_beyond_the_limit_are_limit_errors() {
    // 4 bidirectional ones: 0, 4, 8, 12. 3 unidirectional ones: 2, 6, 10.
    for (last, beyond) in [(12, 16), (10, 14)] {
        assert_eq!(code(&mut server(), &stream(last, 0, b"x", false)), Ok(()));
        assert_eq!(code(&mut server(), &stream(beyond, 0, b"x", false)), LIMIT);
        assert_eq!(code(&mut server(), &reset(beyond, 0)), LIMIT);
        assert_eq!(code(&mut server(), &stream_data_blocked(beyond)), LIMIT);
    }
    assert_eq!(code(&mut server(), &max_stream_data(16)), LIMIT);
    assert_eq!(code(&mut server(), &stop(16)), LIMIT);
}

#[test]
fn rfc9000_4_1_data_beyond_a_stream_limit_is_a_flow_control_error() {
    let mut server = server();
    assert_eq!(code(&mut server, &stream(0, 3999, b"x", false)), Ok(()));
    assert_eq!(code(&mut server, &stream(0, 4000, b"", true)), Ok(()));
    assert_eq!(code(&mut server, &stream(4, 3999, b"xy", false)), FLOW);
    assert_eq!(code(&mut server, &reset(8, 4001)), FLOW);
}

#[test]
fn rfc9000_4_1_data_beyond_the_connection_limit_is_a_flow_control_error() {
    for last in [stream(8, 1999, b"xy", false), reset(8, 2001)] {
        let mut server = server();
        for number in [0, 4] {
            assert_eq!(
                code(&mut server, &stream(number, 3999, b"x", false)),
                Ok(())
            );
        }
        assert_eq!(code(&mut server, &last), FLOW);
        // The application, which does not know yet, resets the stream: nothing is released that was not charged.
        assert!(server.stop_sending(id(8), varint(1), NOW).is_ok());
    }
}

#[test]
fn rfc9000_4_5_final_size_must_not_change() {
    let cases = [
        // FIN at 10, then:
        (stream(0, 5, b"", true), stream(0, 9, b"xy", false)),
        (stream(0, 5, b"", true), stream(0, 3, b"", true)),
        (stream(0, 5, b"", true), reset(0, 6)),
        (stream(0, 5, b"", true), reset(0, 4)),
        // Data up to 6, then an end below.
        (stream(0, 5, b"x", false), stream(0, 3, b"", true)),
        (stream(0, 5, b"x", false), reset(0, 5)),
        // A reset, then:
        (reset(0, 5), reset(0, 6)),
        (reset(0, 5), stream(0, 5, b"x", false)),
        (reset(0, 5), stream(0, 4, b"", true)),
    ];
    for (first, second) in cases {
        let mut server = server();
        assert_eq!(code(&mut server, &first), Ok(()));
        assert_eq!(
            code(&mut server, &second),
            SIZE,
            "{first:?} then {second:?}"
        );
    }
}

#[test]
fn rfc9000_3_2_a_reset_after_fin_discards_incomplete_data() {
    let mut server = server();
    assert_eq!(code(&mut server, &stream(2, 5, b"end", true)), Ok(()));
    assert_eq!(code(&mut server, &reset(2, 8)), Ok(()));
    assert_eq!(code(&mut server, &reset(2, 8)), Ok(()), "a duplicate");
    assert_eq!(server.buffered(), 0);
    assert_eq!(
        events(&mut server),
        [
            StreamEvent::Opened(Direction::Unidirectional),
            StreamEvent::Reset {
                id: id(2),
                code: varint(9)
            }
        ]
    );
    assert_eq!(server.live(), 0);

    assert_eq!(code(&mut server, &stream(6, 0, b"all", true)), Ok(()));
    assert_eq!(code(&mut server, &reset(6, 3)), Ok(()));
    let part = server.live[&id(6)].receive.as_deref().expect("live");
    assert_eq!(part.state(), ReceiveState::DataRecvd);
    let mut read = Vec::new();
    let outcome = server.read(id(6), NOW, &mut |bytes| {
        read.extend_from_slice(bytes);
        bytes.len()
    });
    assert_eq!(
        outcome,
        Ok(Read {
            bytes: 3,
            end: true
        })
    );
    assert_eq!(read, b"all");
}

#[test]
fn rfc9000_4_5_a_reset_returns_its_credit() {
    let mut server = server();
    for number in [2, 6, 10] {
        assert_eq!(code(&mut server, &reset(number, 3000)), Ok(()));
    }
    assert_eq!(server.window.consumed, 9000);
    let (payload, _) = packet(&mut server, 1200);
    assert!(matches!(frames(&payload)[0], Frame::MaxData(frame) if frame.maximum.get() >= 19_000));
}

#[test]
fn frames_for_finished_streams_are_ignored() {
    let mut server = server();
    assert_eq!(code(&mut server, &stream(6, 0, b"", true)), Ok(()));
    events(&mut server);
    server.read(id(6), NOW, &mut |_| 0).expect("its end");
    assert_eq!(server.live(), 1, "2 was opened along, 6 is over");
    for frame in [
        stream(6, 0, b"late", true),
        reset(6, 0),
        stream_data_blocked(6),
    ] {
        assert_eq!(code(&mut server, &frame), Ok(()));
    }
    assert_eq!(server.live(), 1);
    let unknown = ReadError::UnknownStream;
    assert_eq!(server.read(id(6), NOW, &mut |_| 0), Err(unknown));
    assert_eq!(server.accept(Direction::Unidirectional), Some(id(2)));
    assert_eq!(server.accept(Direction::Unidirectional), None);
}

#[test]
fn rfc9000_3_2_any_frame_for_a_part_opens_the_stream_and_those_below() {
    let cases = [
        (stream(8, 0, b"x", false), 3),
        (reset(8, 0), 3),
        (stream_data_blocked(8), 3),
        (stop(8), 3),
        (max_stream_data(8), 3),
        (stream(10, 0, b"x", false), 3),
    ];
    for (frame, live) in cases {
        let mut server = server();
        assert_eq!(code(&mut server, &frame), Ok(()));
        assert_eq!(server.live(), live, "{frame:?}");
    }
}

#[test]
fn rfc9000_3_5_stop_sending_is_answered_with_a_reset() {
    let mut client = client(&small());
    let number = client.open(Direction::Bidirectional).expect("permitted");
    client.write(number, b"hello").expect("open");
    let (_, receipts) = packet(&mut client, 1200);
    assert_eq!(code(&mut client, &stop(0)), Ok(()));
    assert_eq!(code(&mut client, &stop(0)), Ok(()), "a duplicate");
    let stopped = StreamEvent::Stopped {
        id: number,
        code: varint(5),
    };
    assert_eq!(events(&mut client), [stopped]);
    assert_eq!(
        client.write(number, b"x"),
        Err(WriteError::Stopped(varint(5)))
    );
    let (payload, resets) = packet(&mut client, 1200);
    let expected = frame::ResetStream {
        stream_id: number,
        error_code: varint(5),
        final_size: varint(5),
    };
    assert_eq!(frames(&payload), [Frame::ResetStream(expected)]);
    // The data does not matter any more; the reset is repeated until it is acknowledged.
    lose(&mut client, &receipts);
    assert!(!client.wants_to_send());
    lose(&mut client, &resets);
    assert_eq!(packet(&mut client, 1200).0, payload);
    acknowledge(&mut client, &resets);
    let part = client.live[&number].send.as_deref();
    let part = part.expect("the peer may still send");
    assert_eq!(part.state(), SendState::ResetRecvd);
}

#[test]
fn rfc9000_3_5_stop_sending_when_all_was_sent_resets_only_on_loss() {
    for is_lost in [false, true] {
        let mut client = client(&small());
        let number = client.open(Direction::Unidirectional).expect("permitted");
        client.write(number, b"hello").expect("open");
        client.finish(number).expect("open");
        let (_, receipts) = packet(&mut client, 1200);
        assert_eq!(code(&mut client, &stop(2)), Ok(()));
        assert!(!client.wants_to_send());
        events(&mut client);
        if is_lost {
            lose(&mut client, &receipts);
            let (payload, resets) = packet(&mut client, 1200);
            assert!(matches!(frames(&payload)[..], [Frame::ResetStream(_)]));
            acknowledge(&mut client, &resets);
        } else {
            acknowledge(&mut client, &receipts);
            assert_eq!(events(&mut client), [StreamEvent::Finished(number)]);
        }
        assert_eq!(client.live(), 0);
    }
}

#[test]
fn rfc9000_3_5_stop_sending_is_repeated_while_data_is_missing() {
    let mut server = server();
    assert_eq!(code(&mut server, &stream(2, 0, b"hello", false)), Ok(()));
    server.stop_sending(id(2), varint(7), NOW).expect("live");
    assert_eq!(server.buffered(), 0);
    assert_eq!(server.read(id(2), NOW, &mut |_| 0), Err(ReadError::Stopped));
    let (payload, receipts) = packet(&mut server, 1200);
    assert!(matches!(frames(&payload)[..], [Frame::StopSending(_)]));
    lose(&mut server, &receipts);
    assert_eq!(packet(&mut server, 1200).0, payload);
    // Data still counts, and is returned at once.
    assert_eq!(code(&mut server, &stream(2, 7, b"end", true)), Ok(()));
    assert_eq!(server.window.consumed, 10);
    assert_eq!(code(&mut server, &stream(2, 5, b"..", false)), Ok(()));
    events(&mut server);
    assert_eq!(server.live(), 0);
    lose(&mut server, &receipts);
    let (payload, _) = packet(&mut server, 1200);
    assert!(matches!(frames(&payload)[..], [Frame::MaxStreams(_)]));
}

#[test]
fn rfc9000_21_7_too_many_gaps_close_the_connection() {
    let config = Config {
        gaps_max: 10,
        ..Config::default()
    };
    let mut server = Streams::new(Side::Server, config);
    let mut last = Ok(());
    for index in 0..20 {
        assert_eq!(last, Ok(()));
        last = code(&mut server, &stream(0, 2 * index + 1, b"x", false));
        if index == 10 {
            break;
        }
    }
    assert_eq!(last, Err(TransportError::INTERNAL_ERROR));
}

/// Accepts nothing at first, then everything.
struct Hesitant(bool);

impl StreamSink for Hesitant {
    fn data(&mut self, _: StreamId, _: u64, data: &[u8], _: bool) -> usize {
        if std::mem::replace(&mut self.0, true) {
            data.len()
        } else {
            0
        }
    }
}

#[test]
fn no_readable_event_if_the_sink_consumed_the_rest() {
    let mut server = server();
    let mut sink = Hesitant(false);
    dispatch(&mut server, &stream(2, 0, b"hel", false), &mut sink).expect("legal");
    assert_eq!(server.buffered(), 256);
    dispatch(&mut server, &stream(2, 3, b"lo", true), &mut sink).expect("legal");
    assert_eq!(server.buffered(), 0);
    let opened = StreamEvent::Opened(Direction::Unidirectional);
    assert_eq!(events(&mut server), [opened]);
    assert_eq!(server.live(), 0);
}

/// RFC 9000 §3.2: a stream that was read to its end is finished, even if a `MAX_STREAM_DATA` for it is pending, which
/// congestion control may delay.
#[test]
fn a_finished_stream_does_not_wait_for_obsolete_frames() {
    let mut server = server();
    code(&mut server, &stream(0, 0, &[], false)).expect("permitted");
    assert_eq!(server.accept(Direction::Bidirectional), Some(id(0)));
    server.finish(id(0)).expect("open");
    let (_, receipts) = packet(&mut server, 1000);
    acknowledge(&mut server, &receipts);
    events(&mut server);

    code(&mut server, &stream(0, 0, &[1; 3900], false)).expect("within the limit");
    let read = server.read(id(0), NOW, &mut |data| data.len());
    assert_eq!(read.expect("open").bytes, 3900);
    assert!(server.wants_to_send(), "the window is to be raised");
    code(&mut server, &stream(0, 3900, &[1], true)).expect("within the limit");
    let read = server.read(id(0), NOW, &mut |data| data.len());
    assert!(read.expect("open").end);
    events(&mut server);
    assert_eq!(server.live(), 0);

    let (payload, _) = packet(&mut server, 1000);
    let is_about_stream = |frame: &Frame<'_>| matches!(frame, Frame::MaxStreamData(_));
    assert!(!frames(&payload).iter().any(is_about_stream));
    assert!(!server.wants_to_send());
}
