use std::collections::{BTreeMap, BTreeSet};

use lastbyte_wire::{
    Reader, StreamId, VarInt, Writer,
    frame::{AckReport, Frame},
    packet::PacketNumber,
};
use proptest::{collection::vec, prelude::*};

use super::*;

const LOST: LossDecision = LossDecision::LostByPackets;
const LATER: LossDecision = LossDecision::Until(Time::from_nanos(u64::MAX));

fn packet(sent_at: u64) -> SentPacket {
    SentPacket {
        sent_at: Time::from_nanos(sent_at),
        bytes: 1200,
        is_ack_eliciting: true,
        is_in_flight: true,
        is_mtu_probe: false,
        is_off_path: false,
        ecn: Ecn::NotEct,
        controller: SendReceipt::default(),
    }
}

/// A receipt that names the packet it belongs to.
const fn mark(number: u64, index: u16) -> Receipt {
    Receipt::Crypto {
        offset: number,
        len: index,
    }
}

/// Sends a packet with as many receipts as its number modulo four.
fn send(sent: &mut SentPackets) {
    let number = sent.next_number();
    sent.push(
        packet(number),
        (0..(number % 4) as u16).map(|index| mark(number, index)),
    );
}

/// Acknowledges `first..=last`; returns the numbers, and asserts that the receipts are those of these packets.
fn acked(sent: &mut SentPackets, first: u64, last: u64) -> Result<Vec<u64>, AckedUnsent> {
    let (mut numbers, mut receipts) = (Vec::new(), Vec::new());
    let note = &mut |acked: &NewlyAcked| numbers.push(acked.number);
    sent.acknowledge(first, last, note, &mut |receipt| receipts.push(receipt))?;
    let of = |number: u64| (0..(number % 4) as u16).map(move |index| mark(number, index));
    let expected: Vec<Receipt> = numbers.iter().flat_map(|number| of(*number)).collect();
    assert_eq!(receipts, expected, "packets {numbers:?}");
    Ok(numbers)
}

fn with(count: u64) -> SentPackets {
    let mut sent = SentPackets::new();
    (0..count).for_each(|_| send(&mut sent));
    sent
}

impl SentPackets {
    /// Room for this many packets, skipped numbers and receipts is allocated.
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity()
            + self.skipped.capacity()
            + self.ranges.capacity()
            + self.rest.capacity()
            + self.receipts.capacity()
    }
}

#[test]
fn each_packet_is_acknowledged_once() {
    let mut sent = with(10);
    assert_eq!(acked(&mut sent, 0, 3), Ok(vec![0, 1, 2, 3]));
    assert_eq!(acked(&mut sent, 0, 5), Ok(vec![4, 5]));
    assert_eq!(acked(&mut sent, 8, 8), Ok(vec![8]));
    assert_eq!(acked(&mut sent, 0, 9), Ok(vec![9, 6, 7]));
    assert!(sent.is_empty() && !sent.has_ack_eliciting());
}

fn data(offset: u64, len: u32) -> Receipt {
    Receipt::Stream {
        id: StreamId::from(VarInt::ZERO),
        offset,
        len,
        fin: false,
    }
}

#[test]
fn consecutive_data_of_a_run_is_acknowledged_as_one_range() {
    let mut sent = SentPackets::new();
    for number in 0..10 {
        // Packet 6 repeats the data of packet 2; packet 7 continues after packet 5.
        let offset = match number {
            6 => 2000,
            7.. => (number - 1) * 1000,
            _ => number * 1000,
        };
        let ack = (number == 4).then_some(Receipt::Ack { largest: 9 });
        sent.push(packet(number), ack.into_iter().chain([data(offset, 1000)]));
    }
    let mut receipts = Vec::new();
    let mut acknowledge = |sent: &mut SentPackets, first, last| {
        sent.acknowledge(first, last, &mut |_| {}, &mut |receipt| {
            receipts.push(receipt);
        })
        .expect("sent");
        core::mem::take(&mut receipts)
    };
    assert_eq!(acknowledge(&mut sent, 1, 1), [data(1000, 1000)]);
    assert_eq!(
        acknowledge(&mut sent, 0, 9),
        [
            data(2000, 2000),
            Receipt::Ack { largest: 9 },
            data(4000, 2000),
            data(2000, 1000),
            data(6000, 3000),
            data(0, 1000),
        ]
    );
    assert!(sent.is_empty() && sent.receipts.is_empty());
}

#[test]
fn rfc9000_13_1_acknowledging_an_unsent_packet_is_an_error() {
    let mut sent = with(3);
    assert_eq!(acked(&mut sent, 1, 3), Err(AckedUnsent { number: 3 }));
    assert_eq!(
        acked(&mut SentPackets::new(), 0, 0),
        Err(AckedUnsent { number: 0 })
    );
}

#[test]
fn rfc9000_21_4_acknowledging_a_skipped_number_is_an_error() {
    let mut sent = with(3);
    sent.skip(Time::ZERO);
    send(&mut sent);
    send(&mut sent);
    assert_eq!(
        acked(&mut sent.clone(), 0, 4),
        Err(AckedUnsent { number: 3 })
    );
    assert_eq!(
        acked(&mut sent.clone(), 3, 3),
        Err(AckedUnsent { number: 3 })
    );
    // A peer that first acknowledges packets before or after the gap is still detected.
    assert_eq!(acked(&mut sent, 0, 2), Ok(vec![0, 1, 2]));
    assert_eq!(
        acked(&mut sent.clone(), 0, 4),
        Err(AckedUnsent { number: 3 })
    );
    assert_eq!(acked(&mut sent, 4, 5), Ok(vec![4, 5]));
    assert!(sent.is_empty());
    assert_eq!(acked(&mut sent, 0, 2), Ok(vec![]));
}

/// In whatever order ranges come.
#[test]
fn rfc9000_21_4_each_range_with_a_skipped_number_is_an_error() {
    let mut sent = SentPackets::new();
    let is_skipped = |number: u64| number % 7 == 3 || number == 50;
    for number in 0..100 {
        if is_skipped(number) {
            sent.skip(Time::ZERO);
        } else {
            send(&mut sent);
        }
    }
    for step in [1, 37, 99] {
        for index in 0..100 * 100 {
            let (first, last) = ((index * step) % 100, index / 100);
            if first <= last {
                let result = sent.acknowledge(first, last, &mut |_| {}, &mut |_| {});
                let expected = (first..=last).find(|number| is_skipped(*number));
                assert_eq!(result.err().map(|error| error.number), expected);
            }
        }
    }
}

/// A peer that acknowledges pairs in swapped order, N + 1 before N, acknowledges the successor of a skipped number first.
#[test]
fn rfc9000_21_4_a_skipped_number_is_kept_after_its_successor_is_acknowledged() {
    let mut sent = with(3);
    sent.skip(Time::from_nanos(3));
    (0..4).for_each(|_| send(&mut sent));
    assert_eq!(acked(&mut sent, 0, 2), Ok(vec![0, 1, 2]));
    assert_eq!(acked(&mut sent, 4, 4), Ok(vec![4]));
    sent.expire(Time::from_nanos(3));
    assert_eq!(
        acked(&mut sent.clone(), 3, 3),
        Err(AckedUnsent { number: 3 })
    );
    // The memory of skipped numbers is limited.
    sent.expire(Time::from_nanos(4));
    assert_eq!(acked(&mut sent, 3, 3), Ok(vec![]));
}

/// Such a number used to keep everything sent after it.
#[test]
fn a_skipped_number_whose_successor_is_lost_keeps_no_state() {
    let mut sent = with(10);
    sent.skip(Time::from_nanos(10));
    (0..100_000).for_each(|_| send(&mut sent));
    let newest = sent.next_number() - 1;
    assert_eq!(acked(&mut sent, 0, 9).map(|numbers| numbers.len()), Ok(10));
    assert_eq!(
        acked(&mut sent, 12, newest).map(|numbers| numbers.len()),
        Ok(99_999)
    );
    let mut lost = Vec::new();
    sent.declare_lost(|_, _| LOST, &mut |number, _, _, _| lost.push(number));
    assert_eq!(lost, [11]);
    sent.expire(Time::from_nanos(newest));
    assert_eq!((sent.len(), sent.skipped.len()), (0, 0));
}

#[test]
fn rfc9000_13_2_4_a_million_non_ack_eliciting_packets_keep_no_state() {
    let silent = |number: u64| SentPacket {
        is_ack_eliciting: false,
        is_in_flight: false,
        ..packet(number)
    };
    // The packet in flight at the front stays, whatever follows.
    let mut sent = with(1);
    let mut forgotten = 0;
    for number in 1..2000 {
        forgotten += sent.push(silent(number), [Receipt::Ack { largest: number }]);
    }
    let (slots, receipts) = (sent.slots.capacity(), sent.receipts.capacity());
    for number in 2000..1_000_000 {
        forgotten += sent.push(silent(number), [Receipt::Ack { largest: number }]);
        assert!(sent.len() <= 1 + SentPackets::SURPLUS_MAX);
    }
    assert_eq!(
        (sent.slots.capacity(), sent.receipts.capacity()),
        (slots, receipts)
    );
    assert_eq!(forgotten + sent.len() as u64, 1_000_000);
    // All of them arrived: those still kept have their receipts, the others are no error.
    let mut largest = Vec::new();
    let mut receipts = Vec::new();
    let note = &mut |acked: &NewlyAcked| {
        largest.push(Receipt::Ack {
            largest: acked.number,
        });
    };
    sent.acknowledge(0, 999_999, note, &mut |receipt| receipts.push(receipt))
        .expect("all were sent");
    assert!(largest.len() >= SentPackets::SURPLUS_KEPT);
    // The first packet has no receipt.
    assert_eq!(receipts, largest[1..]);
    assert!(sent.is_empty() && sent.receipts.is_empty());
}

#[test]
fn receipts_stay_with_their_packets_when_others_are_dropped() {
    let mut sent = SentPackets::new();
    let marks = |number: u64| (0..(number % 4) as u16).map(move |index| mark(number, index));
    let mut forgotten = 0;
    for number in 0..4 * SentPackets::SURPLUS_MAX as u64 {
        let is_in_flight = number % 10 == 0;
        let packet = SentPacket {
            is_in_flight,
            ..packet(number)
        };
        forgotten += sent.push(packet, marks(number));
        if number % 700 == 699 {
            let acknowledged = number - 300..=number - 290;
            sent.acknowledge(
                *acknowledged.start(),
                *acknowledged.end(),
                &mut |_| {},
                &mut |_| {},
            )
            .expect("they were sent");
        }
    }
    let kept: Vec<u64> = sent
        .slots
        .iter()
        .filter(|slot| slot.fate == Fate::Outstanding)
        .map(|slot| slot.number)
        .collect();
    assert!(forgotten > 2 * SentPackets::SURPLUS_MAX as u64);
    assert!(kept.contains(&0) && kept.len() <= sent.in_flight() + SentPackets::SURPLUS_MAX);
    let (mut numbers, mut receipts) = (Vec::new(), Vec::new());
    sent.acknowledge(
        0,
        sent.next_number() - 1,
        &mut |acked| numbers.push(acked.number),
        &mut |receipt| receipts.push(receipt),
    )
    .expect("they were sent");
    numbers.sort_unstable();
    assert_eq!(numbers, kept);
    receipts.sort_unstable_by_key(|receipt| format!("{receipt:?}"));
    let mut expected: Vec<Receipt> = kept.into_iter().flat_map(marks).collect();
    expected.sort_unstable_by_key(|receipt| format!("{receipt:?}"));
    assert_eq!(receipts, expected);
}

/// Each acknowledgment used to visit everything between the oldest packet in flight and the largest acknowledged.
#[test]
fn an_undecided_packet_adds_no_work_for_others() {
    let mut sent = with(100_001);
    let mut steps = 0_u64;
    for number in 1..100_000 {
        acked(&mut sent, number, number).expect("sent");
        sent.declare_lost(
            |_, _| {
                steps += 1;
                LATER
            },
            &mut |_, _, _, _| {},
        );
        sent.expire(Time::ZERO);
        assert!(sent.len() <= sent.in_flight() + SentPackets::SURPLUS_MAX);
    }
    assert_eq!(steps, 99_999, "one packet a time");
}

/// A peer that acknowledges each second packet, and then always all of them.
#[test]
fn a_repeated_range_joins_the_runs_that_it_contains() {
    let mut sent = with(1001);
    for number in (1..1000).rev().step_by(2) {
        acked(&mut sent, number, number).expect("sent");
    }
    let runs = |sent: &SentPackets, last: u64| {
        let mut end = sent.index_from(last + 1);
        let mut runs = 0;
        while let Some(run_start) = end.checked_sub(1).and_then(|last| sent.run_start(last)) {
            end = sent.index_from(run_start);
            runs += 1;
        }
        runs
    };
    assert_eq!(acked(&mut sent, 2, 998).map(|new| new.len()), Ok(499));
    assert_eq!(runs(&sent, 999), 500);
    let mut steps = 0;
    for last in (501..=999).rev() {
        steps += runs(&sent, last);
        assert_eq!(acked(&mut sent, 1, last), Ok(vec![]));
    }
    assert!(steps < 5000, "{steps} for 499 ranges, and not 187 000");
    // The first and the last packet are outstanding.
    assert_eq!(acked(&mut sent, 0, 1000), Ok(vec![1000, 0]));
    assert!(sent.is_empty());
}

#[test]
fn rfc9000_14_4_lost_mtu_probes_do_not_count_in_a_run_of_losses() {
    let mut sent = SentPackets::new();
    for number in 1..=5 {
        let probe = SentPacket {
            is_mtu_probe: number == 1 || number == 5,
            ..packet(number)
        };
        sent.push(probe, []);
    }
    sent.push(packet(6), []);
    sent.acknowledge(5, 5, &mut |_| {}, &mut |_| {})
        .expect("sent");
    sent.declare_lost(|_, _| LOST, &mut |_, _, _, _| {});
    let span = Some((Time::from_nanos(2), Time::from_nanos(4)));
    assert_eq!(sent.lost_run(4, Time::ZERO), span);
}

#[test]
fn rfc9002_7_6_2_an_acknowledged_packet_ends_a_run_of_losses_after_it_was_dropped() {
    let count = 4 * SentPackets::SURPLUS_MAX as u64;
    let mut sent = with(count);
    // Dropped because many completed packets surround it, between two that are lost.
    acked(&mut sent, count / 2, count - 3).expect("sent");
    assert_eq!(sent.len() as u64, count);
    sent.expire(Time::ZERO);
    assert_eq!(sent.len() as u64, count / 2 + 2);
    acked(&mut sent, count - 1, count - 1).expect("sent");
    sent.declare_lost(|_, _| LOST, &mut |_, _, _, _| {});
    let span = Some((Time::from_nanos(count - 2), Time::from_nanos(count - 2)));
    assert_eq!(sent.lost_run(count - 2, Time::ZERO), span);
    let time = Time::from_nanos;
    assert!(sent.has_acked_between(time(count / 2 - 1), time(count - 1)));
}

#[test]
fn rfc9000_9_4_repeated_migration_accumulates_no_packets() {
    let mut sent = SentPackets::new();
    let mut given_up = Vec::new();
    for _ in 0..100 {
        (0..10).for_each(|_| send(&mut sent));
        sent.leave_path(&mut |packet, receipts| {
            given_up.push((packet.sent_at.as_nanos(), receipts.count()));
        });
        sent.expire(Time::ZERO);
        assert_eq!(sent.in_flight(), 10);
        assert!(sent.len() <= sent.in_flight() + SentPackets::SURPLUS_MAX);
    }
    let expected: Vec<(u64, usize)> = (0..990)
        .map(|number| (number, number as usize % 4))
        .collect();
    assert_eq!(
        given_up, expected,
        "all but those of the last path, with their frames"
    );
}

#[test]
fn a_repeated_range_of_any_length_adds_no_work() {
    // A gap at 0 keeps everything in the ring.
    let mut sent = with(100_001);
    assert_eq!(
        acked(&mut sent, 1, 100_000).map(|numbers| numbers.len()),
        Ok(100_000)
    );
    // 10⁵ frames that repeat it and acknowledge one packet each: 10¹⁰ steps if each packet were visited.
    for number in 100_001..200_001 {
        send(&mut sent);
        assert_eq!(acked(&mut sent, 1, number), Ok(vec![number]));
    }
}

#[test]
fn lost_packets_are_recognized_when_acknowledged_late() {
    let mut sent = with(10);
    assert_eq!(acked(&mut sent, 5, 5), Ok(vec![5]));
    let mut lost = Vec::new();
    let next = sent.declare_lost(
        |number, _| if number <= 2 { LOST } else { LATER },
        &mut |number, _, decision, receipts| {
            assert_eq!(decision, LOST);
            lost.push((number, receipts.count()));
        },
    );
    assert_eq!(next, Some(Time::from_nanos(u64::MAX)));
    assert_eq!(lost, [(0, 0), (1, 1), (2, 2)]);
    let mut late = Vec::new();
    let note = &mut |acked: &NewlyAcked| late.push((acked.number, acked.was_lost));
    sent.acknowledge(1, 4, note, &mut |_| {})
        .expect("all were sent");
    assert_eq!(late, [(1, true), (2, true), (3, false), (4, false)]);
    assert!(sent.has_ack_eliciting());
    sent.expire(Time::from_nanos(1));
    assert_eq!(
        sent.len(),
        4,
        "6 to 9 are outstanding; 0 was given up, and with it all that is done"
    );
}

#[test]
fn a_run_of_losses_ends_at_an_acknowledged_packet() {
    let mut sent = with(10);
    acked(&mut sent, 3, 3).expect("sent");
    acked(&mut sent, 9, 9).expect("sent");
    sent.declare_lost(|_, _| LOST, &mut |_, _, _, _| {});
    let span = |from: u64, upto: u64| Some((Time::from_nanos(from), Time::from_nanos(upto)));
    assert_eq!(sent.lost_run(8, Time::ZERO), span(4, 8));
    assert_eq!(sent.lost_run(2, Time::ZERO), span(1, 2)); // 0 was not sent after the first sample
    assert_eq!(sent.lost_run(8, Time::from_nanos(6)), span(7, 8));
    assert!(sent.has_acked_between(Time::from_nanos(2), Time::from_nanos(4)));
    assert!(!sent.has_acked_between(Time::from_nanos(3), Time::from_nanos(9)));
}

/// The highest ranges of these numbers, descending.
fn ranges(numbers: &BTreeSet<u64>, count: usize) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers.iter().rev() {
        match ranges.last_mut() {
            Some((first, _)) if *first == number + 1 => *first = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    ranges.truncate(count);
    ranges
}

/// Acknowledges the ranges of one frame; returns the numbers that are new.
fn frame(sent: &mut SentPackets, ranges: &[(u64, u64)]) -> Vec<u64> {
    let mut numbers = Vec::new();
    sent.start_frame();
    for (first, last) in ranges {
        let note = &mut |acked: &NewlyAcked| numbers.push(acked.number);
        sent.acknowledge_next(*first, *last, note, &mut |_| {})
            .expect("all were sent");
    }
    numbers
}

#[test]
fn ranges_of_the_frame_before_are_skipped() {
    let mut sent = with(100);
    assert_eq!(
        frame(&mut sent, &[(90, 95), (80, 85), (10, 20)]).len(),
        6 + 6 + 11
    );
    assert_eq!(sent.ranges, [(90, 95), (80, 85), (10, 20)]);
    // One grows, one is new, one is a part of one before, and one joins two.
    assert_eq!(
        frame(&mut sent, &[(90, 96), (87, 88), (82, 83), (10, 20)]),
        [96, 87, 88]
    );
    assert_eq!(frame(&mut sent, &[(80, 96)]), [89, 86]);
    assert!(frame(&mut sent, &[(81, 90), (10, 19)]).is_empty());
    // A frame that arrives late.
    assert_eq!(frame(&mut sent, &[(70, 70), (9, 20)]), [70, 9]);
    assert!(frame(&mut sent, &[(80, 96), (9, 20)]).is_empty());
    // An unsent packet is an error, whatever was acknowledged.
    sent.start_frame();
    assert_eq!(
        sent.acknowledge_next(80, 100, &mut |_| {}, &mut |_| {}),
        Err(AckedUnsent { number: 100 })
    );
}

/// Acknowledges the ranges of one frame, as it is encoded. Returns the numbers that are new, and how many ranges were passed on.
fn encoded_frame(
    sent: &mut SentPackets,
    ranges: &[(u64, u64)],
    uses_rest: bool,
) -> (Vec<u64>, usize) {
    let number = |number| PacketNumber::new(number).expect("small");
    let report = AckReport {
        ranges: ranges
            .iter()
            .map(|(first, last)| number(*first)..=number(*last)),
        delay: VarInt::ZERO,
        ecn: None,
    };
    let mut buffer = [0; 1500];
    let mut writer = Writer::new(&mut buffer);
    report.encode(&mut writer, 1500, usize::MAX).expect("fits");
    let Ok(Frame::Ack(ack)) = Frame::decode(&mut Reader::new(writer.written())) else {
        panic!("an ACK frame");
    };
    let (mut numbers, mut passed) = (Vec::new(), 0);
    sent.start_frame();
    let mut ranges = ack.ranges();
    while let Some(range) = ranges.next() {
        let (first, last) = (range.start().get(), range.end().get());
        let note = &mut |acked: &NewlyAcked| numbers.push(acked.number);
        sent.acknowledge_next(first, last, note, &mut |_| {})
            .expect("all were sent");
        passed += 1;
        if uses_rest && sent.is_rest_known(first, ranges.encoded()) {
            break;
        }
    }
    sent.end_frame(ack.ranges());
    (numbers, passed)
}

#[test]
fn of_a_frame_only_the_ranges_that_have_changed_are_read() {
    let mut sent = with(100);
    let mut frame = |ranges: &[(u64, u64)]| encoded_frame(&mut sent, ranges, true);
    let (_, passed) = frame(&[(60, 65), (40, 45), (20, 25)]);
    assert_eq!(passed, 3);
    // The first grows.
    assert_eq!(frame(&[(60, 66), (40, 45), (20, 25)]), (vec![66], 1));
    // One is new, the last is left out.
    assert_eq!(frame(&[(68, 68), (60, 66), (40, 45)]), (vec![68], 2));
    // It is in the frame again, so that the rest is not known.
    assert_eq!(
        frame(&[(68, 69), (60, 66), (40, 45), (20, 25)]),
        (vec![69], 4)
    );
    // The first joins the second.
    assert_eq!(frame(&[(60, 70), (40, 45), (20, 25)]), (vec![70, 67], 3));
    // One behind the first grows.
    assert_eq!(frame(&[(60, 70), (39, 45), (20, 25)]), (vec![39], 3));
    assert_eq!(frame(&[(60, 71), (39, 45)]), (vec![71], 1));
    assert_eq!(sent.ranges, [(60, 71), (39, 45), (20, 25)]);
}

#[test]
fn a_frame_of_many_ranges_is_remembered_in_part() {
    let mut sent = with(10_001);
    let many: Vec<(u64, u64)> = (0..5000)
        .rev()
        .map(|index| (2 * index, 2 * index))
        .collect();
    for _ in 0..3 {
        frame(&mut sent, &many);
        assert!(sent.ranges.len() <= 2 * SentPackets::RANGES_MAX);
    }
    frame(&mut sent, &[(9998, 9998)]);
    frame(&mut sent, &[(9998, 9998)]);
    assert_eq!(sent.ranges, [(9998, 9998); 2], "of two frames");
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Send(u8),
    Skip,
    SendSilent(u16),
    Ack(u64, u64),
    /// A frame with this many ranges of all that the peer has received: before, and these packets.
    Frame(u64, u64, u8),
    Lose(u64),
    Expire(u64),
    Leave,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (1_u8..8).prop_map(Action::Send),
        1 => (1_u16..600).prop_map(Action::SendSilent),
        1 => Just(Action::Leave),
        1 => Just(Action::Skip),
        3 => (0_u64..60, 0_u64..20).prop_map(|(back, len)| Action::Ack(back, len)),
        6 => (0_u64..60, 0_u64..5, 1_u8..12).prop_map(|(back, len, count)| Action::Frame(back, len, count)),
        2 => (1_u64..30).prop_map(Action::Lose),
        1 => (0_u64..40).prop_map(Action::Expire),
    ]
}

/// A hostile peer acknowledges any range, or nothing at all.
fn hostile_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (1_u8..200).prop_map(Action::Send),
        4 => (1_u16..2000).prop_map(Action::SendSilent),
        1 => Just(Action::Leave),
        1 => Just(Action::Skip),
        4 => (0_u64..5000, 0_u64..3000).prop_map(|(back, len)| Action::Ack(back, len)),
        4 => (0_u64..5000, 0_u64..10, any::<u8>()).prop_map(|(back, len, count)| Action::Frame(back, len, count)),
        2 => (1_u64..3000).prop_map(Action::Lose),
        1 => (0_u64..5000).prop_map(Action::Expire),
    ]
}

proptest! {
    /// Compares the ring with a map from number to state.
    #[test]
    fn agrees_with_a_naive_map(actions in vec(action(), 1..200)) {
        let mut sent = SentPackets::new();
        let mut model: BTreeMap<u64, Fate> = BTreeMap::new();
        let mut skipped = Vec::new();
        let mut received = BTreeSet::new();
        for action in actions {
            match action {
                Action::Send(count) => for _ in 0..count {
                    model.insert(sent.next_number(), Fate::Outstanding);
                    send(&mut sent);
                },
                Action::SendSilent(_) | Action::Leave => {} // see below
                Action::Skip => {
                    skipped.push(sent.next_number());
                    sent.skip(Time::ZERO);
                }
                Action::Ack(back, len) => {
                    let Some(last) = sent.next_number().checked_sub(1 + back) else { continue };
                    let first = last.saturating_sub(len);
                    if skipped.iter().any(|number| (first..=last).contains(number)) {
                        continue; // an invalid acknowledgment, which closes the connection: tested above
                    }
                    let mut news = acked(&mut sent, first, last).expect("all were sent");
                    news.sort_unstable();
                    let expected: Vec<u64> = model
                        .range(first..=last)
                        .filter(|(_, fate)| **fate != Fate::Done)
                        .map(|(number, _)| *number)
                        .collect();
                    prop_assert_eq!(&news, &expected);
                    for number in news {
                        model.insert(number, Fate::Done);
                    }
                    received.extend((first..=last).filter(|number| model.contains_key(number)));
                }
                Action::Frame(back, len, count) => {
                    let Some(last) = sent.next_number().checked_sub(1 + back) else { continue };
                    let numbers = last.saturating_sub(len)..=last;
                    received.extend(numbers.filter(|number| model.contains_key(number)));
                    let ranges = ranges(&received, count.into());
                    let mut news = frame(&mut sent, &ranges);
                    news.sort_unstable();
                    let expected: Vec<u64> = model
                        .iter()
                        .filter(|(number, fate)| {
                            **fate != Fate::Done
                                && ranges.iter().any(|(first, last)| (first..=last).contains(number))
                        })
                        .map(|(number, _)| *number)
                        .collect();
                    prop_assert_eq!(&news, &expected);
                    for number in news {
                        model.insert(number, Fate::Done);
                    }
                }
                Action::Lose(distance) => {
                    let Some(largest) = sent.largest_acked() else { continue };
                    let limit = largest.saturating_sub(distance);
                    let mut lost = Vec::new();
                    sent.declare_lost(
                        |number, _| if number < limit { LOST } else { LATER },
                        &mut |number, _, _, _| lost.push(number),
                    );
                    let expected: Vec<u64> = model
                        .range(..limit)
                        .filter(|(_, fate)| **fate == Fate::Outstanding)
                        .map(|(number, _)| *number)
                        .collect();
                    prop_assert_eq!(&lost, &expected);
                    for number in lost {
                        model.insert(number, Fate::Lost);
                    }
                }
                Action::Expire(age) => {
                    let before = sent.next_number().saturating_sub(age);
                    sent.expire(Time::from_nanos(before));
                    // Packets given up at the front are not recognized again.
                    let kept = sent.slots.front().map_or(sent.next_number(), |slot| slot.number);
                    for (_, fate) in model.range_mut(..kept) {
                        prop_assert_ne!(*fate, Fate::Outstanding);
                        *fate = Fate::Done;
                    }
                }
            }
            let outstanding = model.values().any(|fate| *fate == Fate::Outstanding);
            prop_assert_eq!(sent.has_ack_eliciting(), outstanding);
        }
    }

    #[test]
    fn the_ring_is_at_most_a_thousand_longer_than_the_packets_in_flight(
        actions in vec(hostile_action(), 1..100)
    ) {
        let mut sent = SentPackets::new();
        let (mut acknowledged, mut lost, mut late, mut forgotten, mut skips) = (0, 0, 0, 0, 0);
        for action in actions {
            match action {
                Action::Send(count) => for _ in 0..count {
                    forgotten += sent.push(packet(sent.next_number()), [Receipt::Ping; 3]);
                },
                Action::SendSilent(count) => for index in 0..count {
                    let silent = SentPacket {
                        is_ack_eliciting: index % 7 == 0,
                        is_in_flight: false,
                        ..packet(sent.next_number())
                    };
                    forgotten += sent.push(silent, [Receipt::Ping]);
                },
                Action::Leave => sent.leave_path(&mut |_, _| forgotten += 1),
                Action::Skip => {
                    sent.skip(Time::from_nanos(sent.next_number()));
                    skips += 1;
                }
                Action::Ack(back, len) => {
                    let Some(last) = sent.next_number().checked_sub(1 + back) else { continue };
                    let note = &mut |acked: &NewlyAcked| {
                        acknowledged += 1;
                        late += u64::from(acked.was_lost);
                    };
                    let _ = sent.acknowledge(last.saturating_sub(len), last, note, &mut |_| {});
                }
                Action::Frame(back, len, count) => {
                    let Some(last) = sent.next_number().checked_sub(1 + back) else { continue };
                    sent.start_frame();
                    for index in 0..u64::from(count) * 20 {
                        let Some(last) = last.checked_sub(index * (len + 2)) else { break };
                        let note = &mut |acked: &NewlyAcked| {
                            acknowledged += 1;
                            late += u64::from(acked.was_lost);
                        };
                        if sent.acknowledge_next(last.saturating_sub(len), last, note, &mut |_| {}).is_err() {
                            break;
                        }
                    }
                    prop_assert!(sent.ranges.len() <= 2 * SentPackets::RANGES_MAX);
                }
                Action::Lose(distance) => {
                    let limit = sent.largest_acked().unwrap_or(0).saturating_sub(distance);
                    sent.declare_lost(|number, _| if number < limit { LOST } else { LATER }, &mut |_, _, _, _| lost += 1);
                }
                Action::Expire(age) => {
                    let before = sent.next_number().saturating_sub(age);
                    forgotten += sent.expire(Time::from_nanos(before));
                }
            }
            forgotten += sent.expire(Time::ZERO);
            let in_flight = sent.slots.iter().filter(|slot| {
                slot.fate == Fate::Outstanding && slot.counts_in_flight
            });
            prop_assert_eq!(sent.in_flight(), in_flight.count());
            prop_assert!(sent.len() <= sent.in_flight() + SentPackets::SURPLUS_MAX);
            prop_assert!(sent.receipts.len() <= 3 * (sent.len() + 1));
            prop_assert!(sent.skipped.len() <= SentPackets::SKIPPED_MAX);
            let eliciting = sent.outstanding().filter(|packet| packet.is_ack_eliciting).count();
            prop_assert_eq!(sent.ack_eliciting_outstanding, eliciting as u64);
            // Packets given up by a change of path may still be acknowledged, as late ones; every packet ends in one
            // state.
            let fates = acknowledged + lost + forgotten + sent.outstanding().count() as u64;
            prop_assert_eq!(sent.next_number() - skips + late, fates);
        }
    }
}

/// The size of a packet's state that docs/security.md states.
#[test]
fn a_sent_packet_takes_at_most_104_bytes() {
    assert!(size_of::<Slot>() <= 104, "{}", size_of::<Slot>());
}

/// Packets arrive late, twice or never, and frames of the newest ranges arrive in any order.
fn frames() -> impl Strategy<Value = Vec<(Vec<u64>, usize, bool)>> {
    let arrivals = vec(0_u64..12, 0..6);
    vec((arrivals, 1_usize..40, any::<bool>()), 1..120)
}

proptest! {
    #[test]
    fn any_frames_acknowledge_the_same_when_the_known_rest_is_not_read(frames in frames()) {
        let (mut plain, mut skipping) = (with(400), with(400));
        let mut received = BTreeSet::new();
        let mut late: Option<Vec<(u64, u64)>> = None;
        for (index, (arrivals, count, is_late)) in frames.into_iter().enumerate() {
            received.extend(arrivals.into_iter().map(|back| (3 * index as u64 + 12).saturating_sub(back)));
            let mut frame = ranges(&received, count);
            if is_late {
                let Some(held) = late.replace(frame) else { continue };
                frame = held;
            }
            if frame.is_empty() {
                continue;
            }
            let (expected, _) = encoded_frame(&mut plain, &frame, false);
            let (found, _) = encoded_frame(&mut skipping, &frame, true);
            prop_assert_eq!(found, expected);
            prop_assert_eq!(skipping.largest_acked(), plain.largest_acked());
            prop_assert!(skipping.ranges.len() <= 2 * SentPackets::RANGES_MAX);
        }
    }
}
