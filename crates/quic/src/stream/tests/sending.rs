//! What is sent, in which order, and the events of the application.

use lastbyte_wire::frame;

use super::*;

/// The stream and length of each STREAM frame of a packet.
fn data(payload: &[u8]) -> Vec<(u64, usize)> {
    let stream = |frame: Frame<'_>| match frame {
        Frame::Stream(frame) => Some((frame.header.id.get(), frame.data.len())),
        _ => None,
    };
    frames(payload).into_iter().filter_map(stream).collect()
}

fn open(streams: &mut Streams, len: usize, priority: Priority) -> StreamId {
    let id = streams.open(Direction::Bidirectional).expect("permitted");
    streams.set_priority(id, priority).expect("live");
    streams
        .send_source(id, Box::new(vec![7; len]))
        .expect("open");
    streams.finish(id).expect("open");
    id
}

fn roomy() -> Config {
    let size = WindowSize {
        initial: 1 << 20,
        maximum: 1 << 20,
    };
    Config {
        connection_window: size,
        stream_window: size,
        ..small()
    }
}

#[test]
fn rfc9000_12_4_a_frame_that_fills_the_packet_has_no_length() {
    let header = 4;
    for len in 1150..1250 {
        let mut client = client(&roomy());
        open(&mut client, len, Priority::default());
        let (payload, _) = packet(&mut client, 1200);
        let fits = 1200 - header + 2;
        assert_eq!(data(&payload), [(0, len.min(fits))]);
        if len >= fits - 1 {
            assert_eq!(payload.len(), 1200);
        }
        assert_eq!(client.wants_to_send(), len > fits);
    }
}

#[test]
fn frames_of_many_streams_share_a_packet() {
    let mut client = client(&roomy());
    for len in [100, 200, 2000] {
        open(&mut client, len, Priority::default());
    }
    let (payload, _) = packet(&mut client, 1200);
    assert_eq!(payload.len(), 1200);
    let written = data(&payload);
    assert_eq!(written[..2], [(0, 100), (4, 200)]);
    assert_eq!(written[2].0, 8);
}

#[test]
fn rfc9218_10_streams_share_packets_by_priority() {
    let mut client = client(&roomy());
    open(&mut client, 3000, Priority::new(5, false));
    open(&mut client, 3000, Priority::new(1, true));
    let last = open(&mut client, 3000, Priority::new(1, true));
    let mut order = Vec::new();
    for step in 0..8 {
        if step == 4 {
            client
                .set_priority(last, Priority::new(7, false))
                .expect("live");
        }
        let (payload, _) = packet(&mut client, 1200);
        order.extend(data(&payload).iter().map(|(id, _)| *id));
    }
    assert_eq!(order, [4, 8, 4, 8, 4, 0, 0, 0, 0, 8]);
}

#[test]
fn rfc9000_4_1_a_blocked_sender_sends_data_blocked_once() {
    let mut client = client(&small());
    for len in [5000, 5000, 5000] {
        open(&mut client, len, Priority::default());
    }
    let mut seen = Vec::new();
    let mut all = Vec::new();
    while client.wants_to_send() {
        let (payload, receipts) = packet(&mut client, 1200);
        seen.extend(
            frames(&payload)
                .into_iter()
                .filter_map(|frame| match frame {
                    Frame::DataBlocked(frame) => Some((u64::MAX, frame.limit.get())),
                    Frame::StreamDataBlocked(frame) => {
                        Some((frame.stream_id.get(), frame.limit.get()))
                    }
                    _ => None,
                }),
        );
        all.extend(receipts);
    }
    assert_eq!(seen, [(0, 4000), (4, 4000), (u64::MAX, 10_000)]);
    assert_eq!(client.statistics().data_sent, 10_000);
    // Lost ones are sent again while they apply.
    let maximum = varint(20_000);
    client.on_max_data(&frame::MaxData { maximum });
    lose(&mut client, &all);
    let (payload, _) = packet(&mut client, 1200);
    assert!(
        frames(&payload)
            .iter()
            .any(|frame| matches!(frame, Frame::StreamDataBlocked(_)))
    );
    assert!(
        !frames(&payload)
            .iter()
            .any(|frame| matches!(frame, Frame::DataBlocked(_)))
    );
    while client.wants_to_send() {
        packet(&mut client, 1200);
    }
    assert_eq!(client.statistics().data_resent, 10_000);
    assert_eq!(client.statistics().data_sent, 22_000);
}

#[test]
fn rfc9000_13_3_retransmissions_need_no_credit() {
    let mut client = client(&small());
    open(&mut client, 4000, Priority::default());
    open(&mut client, 4000, Priority::default());
    open(&mut client, 4000, Priority::default());
    let mut receipts = Vec::new();
    while client.wants_to_send() {
        receipts.extend(packet(&mut client, 1200).1);
    }
    assert_eq!(client.credit().available(), 0);
    assert!(!client.wants_to_send_data());
    client.lost(&receipts[0]);
    assert!(client.wants_to_send_data());
    let (payload, _) = packet(&mut client, 1300);
    assert_eq!(data(&payload).len(), 1);
    assert!(!client.wants_to_send());
}

#[test]
fn rfc9000_4_6_streams_blocked_is_sent_and_more_streams_become_available() {
    let mut client = client(&small());
    while client.open(Direction::Unidirectional).is_some() {}
    assert_eq!(client.live(), 3);
    let (payload, receipts) = packet(&mut client, 1200);
    let [Frame::StreamsBlocked(blocked)] = frames(&payload)[..] else {
        panic!("{:?}", frames(&payload));
    };
    assert_eq!(blocked.limit.get(), 3);
    assert_eq!(client.open(Direction::Unidirectional), None);
    assert!(!client.wants_to_send());
    lose(&mut client, &receipts);
    assert_eq!(packet(&mut client, 1200).0, payload);
    client.on_max_streams(&frame::MaxStreams {
        direction: Direction::Unidirectional,
        maximum: lastbyte_wire::StreamCount::new(4).expect("small"),
    });
    let available = StreamEvent::Available(Direction::Unidirectional);
    assert_eq!(events(&mut client), [available]);
    assert_eq!(client.open(Direction::Unidirectional), Some(id(14)));
}

#[test]
fn room_is_what_a_write_accepts_and_an_increase_is_an_event() {
    let mut client = client(&roomy());
    let id = client.open(Direction::Unidirectional).expect("permitted");
    assert_eq!(client.room(id, 6000), Ok(5000));
    assert_eq!(client.write(id, &[1; 4000]), Ok(4000));
    assert_eq!(client.room(id, 1000), Ok(1000), "and no event for that");
    while client.wants_to_send() {
        let (_, receipts) = packet(&mut client, 600);
        acknowledge(&mut client, &receipts);
    }
    assert_eq!(events(&mut client), []);
    assert_eq!(client.write(id, &[1; 4000]), Ok(4000));
    assert_eq!(client.room(id, 1001), Ok(1000));
    while client.wants_to_send() {
        let (_, receipts) = packet(&mut client, 600);
        acknowledge(&mut client, &receipts);
    }
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
    // A source takes a part of its own, and so do bytes written before it.
    for _ in 0..62 {
        client.send_source(id, Box::new(vec![1])).expect("open");
    }
    assert_eq!(client.room(id, 1), Ok(0));
    client.finish(id).expect("open");
    assert_eq!(client.room(id, 1), Err(WriteError::Finished));
}

#[test]
fn writes_are_bounded_and_room_is_reported() {
    let mut client = client(&roomy());
    let id = client.open(Direction::Unidirectional).expect("permitted");
    assert_eq!(client.write(id, &[1; 4000]), Ok(4000));
    assert_eq!(client.write(id, &[1; 4000]), Ok(1000));
    assert_eq!(client.write(id, &[1; 4000]), Ok(0));
    assert_eq!(client.buffered(), 5000);
    let mut heard = Vec::new();
    while client.wants_to_send() {
        let (_, receipts) = packet(&mut client, 600);
        acknowledge(&mut client, &receipts);
        heard.push((client.buffered(), events(&mut client)));
    }
    assert!(heard[0].1.is_empty());
    let told: Vec<_> = heard
        .iter()
        .filter(|(_, events)| !events.is_empty())
        .collect();
    assert_eq!(told.len(), 1, "once, when a quarter of the buffer is free");
    assert!((3000..=3750).contains(&told[0].0));
    assert_eq!(told[0].1, [StreamEvent::Writable(id)]);
    assert_eq!(client.buffered(), 0);
    client.finish(id).expect("open");
    assert_eq!(client.write(id, b"x"), Err(WriteError::Finished));
    let (_, receipts) = packet(&mut client, 600);
    acknowledge(&mut client, &receipts);
    assert_eq!(events(&mut client), [StreamEvent::Finished(id)]);
    assert_eq!(client.live(), 0);
    assert_eq!(client.write(id, b"x"), Err(WriteError::UnknownStream));
}

struct Broken;

impl Source for Broken {
    fn len(&self) -> u64 {
        5000
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        buffer.fill(0);
        match offset {
            0 => Ok(()),
            _ => Err(SourceError { code: varint(77) }),
        }
    }
}

#[test]
fn a_source_that_fails_resets_its_stream() {
    let mut client = client(&roomy());
    let id = client.open(Direction::Unidirectional).expect("permitted");
    client.send_source(id, Box::new(Broken)).expect("open");
    packet(&mut client, 1200);
    assert_eq!(packet(&mut client, 1200).0, b"");
    let code = varint(77);
    assert_eq!(
        events(&mut client),
        [StreamEvent::SourceFailed { id, code }]
    );
    let (payload, _) = packet(&mut client, 1200);
    assert!(
        matches!(frames(&payload)[..], [Frame::ResetStream(frame)] if frame.error_code == code)
    );
}

#[test]
fn rfc9000_4_1_data_is_blocked_if_no_stream_may_send() {
    // Streams may send 1000 bytes each, the connection more.
    let mut less = roomy();
    less.stream_window.initial = 1000;
    let mut client = client(&less);
    assert!(!client.is_blocked(), "no data");
    let first = open(&mut client, 1500, Priority::default());
    assert!(!client.is_blocked(), "it may send");
    let mut receipts = Vec::new();
    while client.wants_to_send() {
        receipts.extend(packet(&mut client, 1200).1);
    }
    assert!(client.is_blocked(), "its limit is reached");
    // Beside a stream that may send, a blocked one is not the limit.
    open(&mut client, 500, Priority::default());
    assert!(!client.is_blocked());
    while client.wants_to_send() {
        receipts.extend(packet(&mut client, 1200).1);
    }
    assert!(client.is_blocked());
    // Lost data needs no credit.
    client.lost(&receipts[0]);
    assert!(!client.is_blocked());
    while client.wants_to_send() {
        receipts.extend(packet(&mut client, 1200).1);
    }
    assert!(client.is_blocked());
    client
        .on_max_stream_data(&frame::MaxStreamData {
            stream_id: first,
            maximum: varint(2000),
        })
        .expect("live");
    assert!(!client.is_blocked());
    while client.wants_to_send() {
        receipts.extend(packet(&mut client, 1200).1);
    }
    assert!(!client.is_blocked(), "all was sent");
    // A stream that is reset has no data.
    let last = open(&mut client, 1500, Priority::default());
    while client.wants_to_send() {
        packet(&mut client, 1200);
    }
    assert!(client.is_blocked());
    client.reset(last, varint(5)).expect("live");
    assert!(!client.is_blocked());
}

#[test]
fn rfc9000_4_1_data_is_blocked_without_credit_of_the_connection() {
    let mut less = roomy();
    less.connection_window.initial = 1000;
    let mut client = client(&less);
    open(&mut client, 1500, Priority::default());
    while client.wants_to_send() {
        packet(&mut client, 1200);
    }
    assert!(client.is_blocked());
    client.on_max_data(&frame::MaxData {
        maximum: varint(2000),
    });
    assert!(!client.is_blocked());
}

#[test]
fn rfc9001_4_6_2_rejected_0rtt_is_retransmitted_within_the_new_limits() {
    let mut client = client(&small());
    let mut ids = Vec::new();
    while let Some(id) = client.open(Direction::Bidirectional) {
        client.write(id, &[id.get() as u8; 1000]).expect("open");
        client.finish(id).expect("open");
        ids.push(id);
    }
    client.reset(ids[3], varint(5)).expect("live");
    while client.wants_to_send() {
        packet(&mut client, 1200);
    }
    client.on_zero_rtt_rejected();
    assert!(!client.wants_to_send_data());
    let mut less = small();
    less.bidirectional_streams = 2;
    less.connection_window.initial = 1500;
    client.on_peer_parameters(&parameters(&less));
    let (payload, receipts) = packet(&mut client, 3000);
    assert_eq!(data(&payload), [(0, 1000), (4, 500)]);
    acknowledge(&mut client, &receipts);
    client.on_max_data(&frame::MaxData {
        maximum: varint(10_000),
    });
    let (payload, _) = packet(&mut client, 3000);
    assert_eq!(data(&payload), [(4, 500)]);
    client.on_max_streams(&frame::MaxStreams {
        direction: Direction::Bidirectional,
        maximum: lastbyte_wire::StreamCount::new(4).expect("small"),
    });
    let (payload, _) = packet(&mut client, 3000);
    assert_eq!(data(&payload), [(8, 1000)]);
    assert!(
        frames(&payload)
            .iter()
            .any(|frame| matches!(frame, Frame::ResetStream(frame) if frame.final_size.get() == 0))
    );
}

/// Whatever became of its packets: lost ones are not retransmitted twice, and control frames are repeated too.
#[test]
fn rfc9001_4_6_2_everything_of_rejected_0rtt_is_sent_once_more() {
    let code = varint(5);
    for has_lost in [false, true] {
        let mut client = client(&small());
        let [whole, stopped, reset] = [1000, 10, 20].map(|len| {
            let id = client.open(Direction::Bidirectional).expect("permitted");
            client.write(id, &vec![7; len]).expect("open");
            id
        });
        client.finish(whole).expect("open");
        client.stop_sending(stopped, code, NOW).expect("live");
        let (_, receipts) = packet(&mut client, 1200);
        client.reset(reset, code).expect("live");
        while client.wants_to_send() {
            packet(&mut client, 1200);
        }
        if has_lost {
            lose(&mut client, &receipts);
        }
        client.on_zero_rtt_rejected();
        client.on_peer_parameters(&parameters(&small()));
        let (payload, receipts) = packet(&mut client, 3000);
        assert_eq!(data(&payload), [(0, 1000), (4, 10)], "{has_lost}");
        let sent = frames(&payload);
        let has = |wanted: &dyn Fn(&Frame<'_>) -> bool| sent.iter().filter(|it| wanted(it)).count();
        assert_eq!(
            has(&|it| matches!(it, Frame::Stream(it) if it.header.fin && it.header.id == whole)),
            1
        );
        assert_eq!(
            has(&|it| matches!(it, Frame::StopSending(it) if it.stream_id == stopped)),
            1
        );
        assert_eq!(
            has(&|it| matches!(it, Frame::ResetStream(it) if it.stream_id == reset)),
            1
        );
        assert!(!client.wants_to_send(), "nothing is sent twice");
        acknowledge(&mut client, &receipts);
        assert!(!client.wants_to_send());
    }
}

#[test]
fn limits_remembered_for_0rtt_only_increase() {
    let mut client = client(&small());
    let id = client.open(Direction::Bidirectional).expect("permitted");
    client
        .send_source(id, Box::new(vec![1; 9000]))
        .expect("open");
    let mut more = small();
    more.stream_window.initial = 6000;
    client.on_peer_parameters(&parameters(&more));
    client.on_peer_parameters(&parameters(&small()));
    while client.wants_to_send() {
        packet(&mut client, 1200);
    }
    assert_eq!(client.credit().used, 6000);
}
