use lastbyte_wire::{
    Direction, Encode, VarInt, Writer,
    frame::{CloseCause, Frame, Frames},
};

use super::*;
use crate::crypto_stream::POST_HANDSHAKE_MAX;

/// Adds custom frames to the client's next packet.
fn inject(pair: &mut Pair, frames: &[&dyn Fn(&mut Writer<'_>)]) {
    let write = |writer: &mut Writer<'_>| frames.iter().for_each(|frame| frame(writer));
    let mut datagram = sealed(&mut pair.client, pair.now, Space::Application, &write);
    pair.deliver_to_server(&mut datagram);
}

fn ready() -> Pair {
    let mut pair = Pair::new(1, Faults::default());
    pair.shake_hands();
    pair
}

#[test]
fn rfc9000_21_9_a_flood_of_pings_closes_the_connection() {
    let mut pair = ready();
    for _ in 0..2000 {
        inject(
            &mut pair,
            &[&|writer| {
                lastbyte_wire::frame::Ping.encode(writer).expect("room");
            }],
        );
        if pair.server.is_closing() {
            break;
        }
    }
    let (code, reason) = violation(&pair.server);
    assert_eq!(code, TransportError::PROTOCOL_VIOLATION);
    assert!(reason.contains("control frames"), "{reason}");
}

/// One byte of a client's unidirectional stream.
fn stream_byte(offset: u32) -> impl Fn(&mut Writer<'_>) {
    move |writer| {
        writer.bytes(&[0x0e, 0x02]).expect("room");
        writer.varint(VarInt::from_u32(offset)).expect("room");
        writer.bytes(&[1, 7]).expect("room");
    }
}

fn path_challenge(writer: &mut Writer<'_>) {
    lastbyte_wire::frame::PathChallenge { data: [9; 8] }
        .encode(writer)
        .expect("room");
}

/// Writes a frame.
type Write = Box<dyn Fn(&mut Writer<'_>)>;

/// The number of packets with these frames that the server accepts before it closes; its own packets are dropped.
fn packets_until_closed(pair: &mut Pair, most: u32, frames: impl Fn(u32) -> Vec<Write>) -> u32 {
    let mut buffer = vec![0; 65_535];
    for number in 0..most {
        let frames = frames(number);
        let frames: Vec<&dyn Fn(&mut Writer<'_>)> = frames.iter().map(|frame| &**frame).collect();
        inject(pair, &frames);
        if pair.server.is_closing() {
            let (code, reason) = violation(&pair.server);
            assert_eq!(code, TransportError::PROTOCOL_VIOLATION);
            assert!(reason.contains("control frames"), "{reason}");
            return number;
        }
        while pair.server.poll_transmit(pair.now, &mut buffer).is_some() {}
    }
    most
}

#[test]
fn rfc9000_21_9_each_useful_frame_permits_two_useless_ones() {
    // The most packets with two frames each that the useful frames of the handshake pay for.
    const HANDSHAKE: u32 = 12;
    let burst = FloodGuard::BURST as u32;
    // Each packet has one new byte and a hundred challenges: frames count, not packets.
    let passed = packets_until_closed(&mut ready(), burst, |number| {
        let mut frames: Vec<Write> = vec![Box::new(stream_byte(number))];
        frames.extend((0..100).map(|_| Box::new(path_challenge) as _));
        frames
    });
    assert!((9..=11).contains(&passed), "{passed}");
    // An unsolicited response is useless, and so is a byte that was received before.
    let passed = packets_until_closed(&mut ready(), 2 * burst, |_| {
        vec![
            Box::new(path_challenge),
            Box::new(|writer| {
                lastbyte_wire::frame::PathResponse { data: [7; 8] }
                    .encode(writer)
                    .expect("room");
            }),
        ]
    });
    assert!(
        (burst / 2 - 1..=burst / 2 + HANDSHAKE).contains(&passed),
        "{passed}"
    );
    let passed = packets_until_closed(&mut ready(), 2 * burst, |_| vec![Box::new(stream_byte(0))]);
    assert!(
        (burst..=burst + 2 * HANDSHAKE).contains(&passed),
        "{passed}"
    );
    // Any number of new bytes may arrive, with two control frames each.
    let passed = packets_until_closed(&mut ready(), 3 * burst, |number| {
        vec![
            Box::new(stream_byte(number)),
            Box::new(path_challenge),
            Box::new(path_challenge),
        ]
    });
    assert_eq!(passed, 3 * burst);
}

#[test]
fn rfc9000_21_9_ack_frames_after_the_first_in_a_packet_count_as_useless() {
    let burst = FloodGuard::BURST as u32;
    // Of packet 0: type, largest, delay, ranges, first range.
    let ack = |writer: &mut Writer<'_>| writer.bytes(&[0x02, 0, 0, 0, 0]).expect("room");
    let acks = |count| (0..count).map(|_| Box::new(ack) as Write).collect();
    let passed = packets_until_closed(&mut ready(), burst, |_| acks(101));
    assert!((9..=11).contains(&passed), "{passed}");
    assert_eq!(
        packets_until_closed(&mut ready(), 2 * burst, |_| acks(1)),
        2 * burst
    );
}

#[test]
fn rfc9000_7_5_tickets_beyond_64_kib_are_discarded_until_the_flood_closes_the_connection() {
    /// A `NewSessionTicket` of 4 + 12 bytes.
    const TICKET: [u8; 16] = [4, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let send_tickets = |pair: &mut Pair, len: u64| {
        let crypto = pair.server.sources.crypto.get_mut(Space::Application);
        let tickets = TICKET.repeat(len as usize / TICKET.len());
        crypto.outgoing().extend(tickets);
    };
    let mut pair = ready();
    send_tickets(&mut pair, 8 * POST_HANDSHAKE_MAX);
    pair.run_until("tickets", |pair| {
        let crypto = pair.server.sources.crypto.get(Space::Application);
        !crypto.wants_to_send() && pair.server.recovery.in_flight() == 0
    });
    let read = u64::from(pair.client.session().tickets_received()) * TICKET.len() as u64;
    let range = POST_HANDSHAKE_MAX - 2000..=POST_HANDSHAKE_MAX;
    assert!(range.contains(&read), "{read}");
    pair.transfer(&body(1000, 1), &body(100_000, 2));

    send_tickets(&mut pair, 64 * POST_HANDSHAKE_MAX);
    while pair.client.close_reason().is_none() {
        assert!(pair.step(), "still open");
    }
    let (code, reason) = violation(&pair.client);
    assert_eq!(code, TransportError::PROTOCOL_VIOLATION);
    assert!(reason.contains("control frames"), "{reason}");
    assert_eq!(
        u64::from(pair.client.session().tickets_received()) * TICKET.len() as u64,
        read
    );
}

#[test]
fn rfc9000_8_2_2_path_responses_are_padded_once_per_rtt_and_congestion_controlled() {
    let mut pair = ready();
    let mut buffer = vec![0; 65_535];
    let mut sent = Vec::new();
    for _ in 0..200 {
        inject(&mut pair, &[&path_challenge]);
        while let Some(transmit) = pair.server.poll_transmit(pair.now, &mut buffer) {
            sent.push(transmit.len);
        }
    }
    let answers = pair
        .server
        .statistics()
        .frames_sent
        .of(FrameKind::PathResponse);
    assert_eq!(answers, 200);
    let padded = sent.iter().filter(|len| **len >= 1200).count();
    assert_eq!(padded, 1, "within one moment");
    let others = sent.iter().sum::<usize>() - 1200;
    assert!(others < 200 * 100, "{others} bytes");

    // While the window is full a response waits; it is sent once there is room.
    let mut pair = ready();
    let streams = pair.server.streams();
    let id = streams.open(Direction::Unidirectional).expect("a stream");
    let source = Box::new(body(1_000_000, 3));
    streams.send_source(id, source).expect("open");
    for _ in 0..100 {
        pair.now = pair.now + Duration::from_millis(1);
        while pair.server.poll_transmit(pair.now, &mut buffer).is_some() {}
    }
    let left = pair.server.recovery().window_left();
    assert!(left < 1200, "{left} bytes");
    inject(&mut pair, &[&path_challenge]);
    while pair.server.poll_transmit(pair.now, &mut buffer).is_some() {}
    let answered = |pair: &Pair| {
        pair.server
            .statistics()
            .frames_sent
            .of(FrameKind::PathResponse)
    };
    assert_eq!(answered(&pair), 0);
    // A probe may be sent, and the response with it.
    pair.run_until("an answer", |pair| answered(pair) == 1);
}

#[test]
fn rfc9000_19_16_retiring_an_unsent_id_closes_the_connection() {
    let retire = |sequence: u8| {
        move |writer: &mut Writer<'_>| writer.bytes(&[0x19, sequence]).expect("room")
    };
    let mut pair = ready();
    pair.pass(DELAY * 4);
    // All IDs sent may be retired, in one packet and again.
    for _ in 0..2 {
        inject(&mut pair, &[&retire(1), &retire(2), &retire(3)]);
    }
    assert!(!pair.server.is_closing());
    // Their replacements do not exist before they are sent.
    inject(&mut pair, &[&retire(4)]);
    let (code, reason) = violation(&pair.server);
    assert_eq!(code, TransportError::PROTOCOL_VIOLATION);
    assert!(reason.contains("never sent"), "{reason}");
}

#[test]
fn rfc9000_13_1_an_acknowledgment_of_an_unsent_packet_closes_the_connection() {
    let mut pair = ready();
    // ACK of packet number 5000: type, largest, delay, ranges, first range.
    inject(
        &mut pair,
        &[&|writer| {
            writer
                .bytes(&[0x02, 0x53, 0x88, 0x00, 0x00, 0x00])
                .expect("room");
        }],
    );
    assert_eq!(
        violation(&pair.server).0,
        TransportError::PROTOCOL_VIOLATION
    );
}

#[test]
fn rfc9000_21_4_an_acknowledgment_of_a_skipped_number_closes_the_connection() {
    let mut pair = ready();
    let id = pair.start_transfer(&body(10, 1));
    pair.finish_transfer(id, &body(10, 1), &body(2_000_000, 2));
    let skipped = pair.server.statistics().packets.skipped;
    assert!(skipped >= 2, "{skipped}");
    // The next number is skipped too; the client acknowledges it along with the packet after it.
    let sent = pair.server.recovery().sent(Space::Application);
    let skip_at = sent.next_number();
    pair.server.sender.skip_at = skip_at;
    let streams = pair.server.streams();
    let id = streams.open(Direction::Unidirectional).expect("a stream");
    streams.write(id, b"something").expect("open");
    let mut buffer = [0; 1500];
    let now = pair.now;
    assert!(pair.server.poll_transmit(now, &mut buffer).is_some());
    assert_eq!(pair.server.statistics().packets.skipped, skipped + 1);
    inject(
        &mut pair,
        &[&|writer| {
            // ACK: type, largest, delay, ranges, first range.
            writer.bytes(&[0x02]).expect("room");
            let largest = VarInt::saturating(skip_at + 1);
            writer.varint(largest).expect("room");
            writer.bytes(&[0, 0, 1]).expect("room");
        }],
    );
    assert_eq!(
        violation(&pair.server).0,
        TransportError::PROTOCOL_VIOLATION
    );
}

#[test]
fn rfc9000_12_4_an_unknown_frame_type_closes_the_connection() {
    let mut pair = ready();
    inject(
        &mut pair,
        &[&|writer| {
            writer.bytes(&[0x21]).expect("room");
        }],
    );
    assert_eq!(
        violation(&pair.server).0,
        TransportError::FRAME_ENCODING_ERROR
    );
}

#[test]
fn rfc9000_19_15_connection_ids_above_the_limit_close_the_connection() {
    let mut pair = ready();
    for sequence in 1..20 {
        inject(
            &mut pair,
            &[&|writer| {
                let frame = lastbyte_wire::frame::NewConnectionId::new(
                    VarInt::from_u32(100 + sequence),
                    VarInt::ZERO,
                    id(50_000 + u64::from(sequence)),
                    StatelessResetToken::new([sequence as u8; 16]),
                );
                frame.expect("a frame").encode(writer).expect("room");
            }],
        );
    }
    assert_eq!(
        violation(&pair.server).0,
        TransportError::CONNECTION_ID_LIMIT_ERROR
    );
}

#[test]
fn rfc9000_19_20_handshake_done_from_a_client_closes_the_connection() {
    let mut pair = ready();
    inject(
        &mut pair,
        &[&|writer| {
            writer.bytes(&[0x1e]).expect("room");
        }],
    );
    assert_eq!(
        violation(&pair.server).0,
        TransportError::PROTOCOL_VIOLATION
    );
}

#[test]
fn ack_frequency_4_less_than_min_ack_delay_closes_the_connection() {
    let mut pair = ready();
    inject(
        &mut pair,
        &[&|writer| {
            let zero = VarInt::ZERO;
            let frame = lastbyte_wire::frame::AckFrequency {
                sequence: zero,
                ack_eliciting_threshold: zero,
                max_ack_delay_us: zero,
                reordering_threshold: zero,
            };
            frame.encode(writer).expect("room");
        }],
    );
    assert_eq!(
        violation(&pair.server).0,
        TransportError::PROTOCOL_VIOLATION
    );
}

#[test]
fn ack_frequency_fewer_acknowledgments_after_the_first_loss_episode() {
    let acks = |ack_frequency| {
        let mut config = config();
        config.ack_frequency = ack_frequency;
        let faults = Faults {
            lose: 1500,
            ..Faults::default()
        };
        let mut pair = Pair::with_configs(1, faults, config.clone(), config);
        pair.shake_hands();
        pair.transfer(&body(10, 1), &body(4_000_000, 2));
        pair.faults = Faults::default();
        let acks = |pair: &Pair| pair.server.statistics().frames_received.of(FrameKind::Ack);
        let before = acks(&pair);
        pair.transfer(&body(10, 1), &body(4_000_000, 2));
        let asked = pair
            .server
            .statistics()
            .frames_sent
            .of(FrameKind::AckFrequency);
        assert_eq!(asked > 0, ack_frequency);
        acks(&pair) - before
    };
    let (with, without) = (acks(true), acks(false));
    assert!(with * 4 < without * 3, "{with} {without}");
}

#[test]
fn an_unsolicited_path_response_has_no_effect() {
    let mut pair = ready();
    inject(
        &mut pair,
        &[&|writer| {
            lastbyte_wire::frame::PathResponse { data: [7; 8] }
                .encode(writer)
                .expect("room");
        }],
    );
    assert!(!pair.server.is_closing());
    assert_eq!(pair.server.statistics().paths.validated, 0);
}

/// One more byte of a stream, at `index`.
fn one_more_byte(index: u64) -> impl Fn(&mut Writer<'_>) {
    move |writer| {
        writer.bytes(&[0x0e, 2]).expect("room"); // STREAM with offset and length, of stream 2
        writer.varint(VarInt::saturating(index)).expect("room");
        writer.bytes(&[1, 7]).expect("room");
    }
}

#[test]
fn rfc9000_13_2_4_sent_packets_without_acknowledgments_are_bounded() {
    let mut pair = ready();
    let mut buffer = [0; 1500];
    for index in 0..50_000 {
        inject(&mut pair, &[&one_more_byte(index)]);
        while pair.server.poll_transmit(pair.now, &mut buffer).is_some() {}
        let sent = pair.server.recovery().sent(Space::Application);
        assert!(sent.len() <= sent.in_flight() + crate::recovery::SentPackets::SURPLUS_MAX);
    }
    assert!(!pair.server.is_closing());
    let recovery = pair.server.recovery_statistics();
    assert!(recovery.packets_sent > 20_000, "{recovery:?}");
    // The bytes in flight equal the window.
    assert!(recovery.ring_max < 1500, "{recovery:?}");
    let pings = pair.server.statistics().frames_sent.of(FrameKind::Ping);
    assert!(pings > 100, "{pings:?}");
}

#[test]
fn rfc9000_13_2_4_every_24th_ack_only_packet_is_acknowledged() {
    let mut pair = ready();
    pair.transfer(&body(10, 1), &body(4_000_000, 2));
    pair.pass(DELAY * 8);
    let statistics = pair.client.statistics();
    let sent = pair.client.recovery_statistics().packets_sent;
    let pings = statistics.frames_sent.of(FrameKind::Ping);
    assert!(
        (sent / 30..=sent / 24 + 1).contains(&pings),
        "{pings} of {sent}"
    );
    let ring_max = pair.client.recovery_statistics().ring_max;
    assert!(ring_max < 600, "{ring_max} of {sent}");
    assert_eq!(pair.client.recovery().in_flight(), 0);
}

#[test]
fn implausibly_many_unacknowledged_packets_close_the_connection() {
    let mut pair = ready();
    let space = Space::Application;
    let outgoing = crate::recovery::Outgoing {
        space,
        bytes: 1,
        is_ack_eliciting: true,
        is_in_flight: true,
        is_mtu_probe: false,
        is_off_path: false,
    };
    let server = &mut pair.server;
    let send_up_to = |server: &mut Connection, count: usize| {
        while server.recovery.sent(space).len() < count {
            server.recovery.on_sent(START, &outgoing, []);
        }
    };
    assert!(server.recovery.window_left() > 0);
    send_up_to(server, crate::recovery::SentPackets::FULL);
    assert_eq!(server.recovery.window_left(), 0);
    send_up_to(server, crate::recovery::SentPackets::LIMIT);
    server.sender.request_probes(space, 1);
    let mut buffer = [0; 1500];
    assert!(server.poll_transmit(START, &mut buffer).is_none());
    assert_eq!(violation(server).0, TransportError::INTERNAL_ERROR);
    assert!(server.poll_transmit(START, &mut buffer).is_some());
}

/// The frame types in the `CONNECTION_CLOSE` frames that an endpoint receives.
struct Causes(std::sync::mpsc::Sender<u64>);

impl Trace for Causes {
    fn on_event(&mut self, _now: Time, event: &trace::Event<'_>) {
        let trace::Event::PacketReceived(packet) = event else {
            return;
        };
        let frames = Frames::new(packet.payload, packet.packet_type, Side::Server);
        for frame in frames.expect("not empty").flatten() {
            if let Frame::ConnectionClose(close) = frame
                && let CloseCause::Transport { frame_type, .. } = close.cause
            {
                self.0.send(frame_type.get()).expect("the test listens");
            }
        }
    }
}

/// The code and frame type with which the server closes the connection; `act` makes it do so.
fn cause_of_close(mut pair: Pair, act: impl FnOnce(&mut Pair)) -> (TransportError, u64) {
    let (sender, causes) = std::sync::mpsc::channel();
    pair.client.set_trace(Box::new(Causes(sender)));
    act(&mut pair);
    while pair.client.close_reason().is_none() {
        assert!(pair.step(), "no CONNECTION_CLOSE arrived");
    }
    let (code, _) = violation(&pair.server);
    (code, causes.try_recv().expect("a transport error"))
}

/// The same, after a client's packets with these bytes.
fn cause_of(bytes: &[u8], times: usize) -> (TransportError, u64) {
    cause_of_close(ready(), |pair| {
        for _ in 0..times {
            inject(
                pair,
                &[&|writer| {
                    writer.bytes(bytes).expect("room");
                }],
            );
        }
        assert!(pair.server.is_closing(), "accepted: {bytes:x?}");
    })
}

#[test]
fn rfc9000_19_19_connection_close_names_the_frame_that_caused_it() {
    const ENCODING: TransportError = TransportError::FRAME_ENCODING_ERROR;
    const STATE: TransportError = TransportError::STREAM_STATE_ERROR;
    const LIMIT: TransportError = TransportError::STREAM_LIMIT_ERROR;
    const VIOLATION: TransportError = TransportError::PROTOCOL_VIOLATION;
    const FAR: [u8; 8] = [0xff; 8];
    let far = |start: &[u8], end: &[u8]| [start, &FAR, end].concat();
    let cases: [(u64, TransportError, &[u8]); 23] = [
        // Not permitted from a client.
        (0x07, VIOLATION, &[0x07, 1, 9]),
        (0x1e, VIOLATION, &[0x1e]),
        // Malformed.
        (0x01, VIOLATION, &[0x40, 0x01]),
        (0x21, ENCODING, &[0x21]),
        (0x3fff, ENCODING, &[0x7f, 0xff]),
        (0x02, ENCODING, &[0x02, 1, 0, 0, 2]),
        (0x03, ENCODING, &[0x03, 1, 0, 0, 2]),
        (0x06, ENCODING, &far(&[0x06], &[1, 9])),
        (0x0a, ENCODING, &[0x0a, 2, 0x44, 0x00]),
        (0x12, ENCODING, &far(&[0x12], &[])),
        (0x17, ENCODING, &far(&[0x17], &[])),
        (0x18, ENCODING, &[0x18, 1, 2, 1, 9]),
        // Streams: states, limits, and a final size. The type has the flags of the frame.
        (0x0e, STATE, &[0x0e, 3, 0, 1, 9]),
        (0x0f, LIMIT, &[0x0f, 0x80, 0x10, 0, 2, 0, 1, 9]),
        (
            0x0e,
            TransportError::FLOW_CONTROL_ERROR,
            &far(&[0x0e, 2], &[0]),
        ),
        (0x04, STATE, &[0x04, 3, 0, 0]),
        (0x05, STATE, &[0x05, 2, 0]),
        (0x11, STATE, &[0x11, 2, 0]),
        (0x15, STATE, &[0x15, 3, 0]),
        (
            0x04,
            TransportError::FINAL_SIZE_ERROR,
            &[0x0b, 2, 1, 9, 0x04, 2, 0, 0],
        ),
        // Acknowledgments, connection IDs, handshake, extensions.
        (0x02, VIOLATION, &[0x02, 0x53, 0x88, 0, 0, 0]),
        (0x19, VIOLATION, &[0x19, 60]),
        (0xaf, VIOLATION, &[0x40, 0xaf, 0, 0, 0, 0]),
    ];
    for (frame_type, code, bytes) in cases {
        assert_eq!(cause_of(bytes, 1), (code, frame_type), "{bytes:x?}");
    }
    // A flood: of the frame that was too many.
    assert_eq!(cause_of(&[0x01], 2000), (VIOLATION, 0x01));
}

#[test]
fn rfc9000_19_19_a_tls_alert_names_the_crypto_frame() {
    let client: Arc<dyn ClientCrypto> = Arc::new(PlainClient::new(1, vec![b"h3".to_vec()]));
    let server = PlainServer::new(2, vec![b"bulk".to_vec()]);
    let pair = Pair::with(&client, &server, Version::V1, 1, Faults::default());
    let no_application_protocol = TransportError::from_tls_alert(120);
    assert_eq!(
        cause_of_close(pair, |_| {}),
        (no_application_protocol, 0x06)
    );
}

/// 200 Mb/s with round trips of 50, 200 and 600 ms: the windows of [`stream::Config`], against windows without a limit.
#[test]
fn rfc9000_4_2_windows_that_grow_do_not_limit_a_transfer_over_a_long_path() {
    for millis in [50, 200, 600] {
        let run = |initial, maximum| {
            let mut receiver = Config::new("cubic".parse().expect("a spec"));
            let size = stream::WindowSize { initial, maximum };
            receiver.streams.connection_window = size;
            receiver.streams.stream_window = size;
            receiver.streams.window_budget = Some(stream::WindowBudget::new(256 << 20));
            let sender = Config::new("slow-start".parse().expect("a spec"));
            let mut pair = Pair::with_configs(1, Faults::default(), receiver, sender);
            pair.rate = Some(200_000_000);
            pair.delay = Duration::from_millis(millis / 2);
            pair.shake_hands();
            let start = pair.now;
            pair.transfer(b"please", &body(40_000_000, 2));
            pair.now.since(start)
        };
        let free = run(1 << 30, 1 << 30);
        let grown = run(1 << 20, 16 << 20);
        assert!(grown <= free * 13 / 10, "{millis} ms: {grown:?}, {free:?}");
    }
}
