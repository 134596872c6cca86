use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};

use super::*;

fn packet(sent_at: u64) -> SentPacket {
    SentPacket {
        sent_at: Time::from_nanos(sent_at),
        bytes: 1200,
        is_ack_eliciting: true,
        is_in_flight: true,
        is_mtu_probe: false,
        is_off_path: false,
        ecn: EcnCodepoint::NotEct,
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

/// Sends a packet with as many receipts as its number has, modulo four.
fn send(sent: &mut SentPackets) {
    let number = sent.next_number();
    sent.push(
        packet(number),
        (0..(number % 4) as u16).map(|index| mark(number, index)),
    );
}

fn acked(sent: &mut SentPackets, first: u64, last: u64) -> Result<Vec<u64>, AckedUnsent> {
    let mut numbers = Vec::new();
    sent.acknowledge(first, last, &mut |acked, receipts| {
        let receipts: Vec<Receipt> = receipts.collect();
        let expected: Vec<Receipt> = (0..(acked.number % 4) as u16)
            .map(|index| mark(acked.number, index))
            .collect();
        assert_eq!(receipts, expected, "packet {}", acked.number);
        numbers.push(acked.number);
    })?;
    Ok(numbers)
}

fn with(count: u64) -> SentPackets {
    let mut sent = SentPackets::new();
    (0..count).for_each(|_| send(&mut sent));
    sent
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

#[test]
fn rfc9000_13_1_acknowledging_what_was_not_sent_is_an_error() {
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
    // An honest peer first says what was before the gap; then the lie still shows.
    assert_eq!(acked(&mut sent, 0, 2), Ok(vec![0, 1, 2]));
    assert_eq!(
        acked(&mut sent.clone(), 0, 4),
        Err(AckedUnsent { number: 3 })
    );
    assert_eq!(acked(&mut sent, 4, 5), Ok(vec![4, 5]));
    assert!(sent.is_empty());
}

#[test]
fn a_repeated_range_costs_nothing_however_long() {
    // A hole at 0 keeps all of it in the ring.
    let mut sent = with(100_001);
    assert_eq!(
        acked(&mut sent, 1, 100_000).map(|numbers| numbers.len()),
        Ok(100_000)
    );
    // 10⁵ frames that repeat it, and acknowledge one packet each: 10¹⁰ steps, if each were gone through.
    for number in 100_001..200_001 {
        send(&mut sent);
        assert_eq!(acked(&mut sent, 1, number), Ok(vec![number]));
    }
}

#[test]
fn lost_packets_are_known_when_they_come_late() {
    let mut sent = with(10);
    assert_eq!(acked(&mut sent, 5, 5), Ok(vec![5]));
    let mut lost = Vec::new();
    sent.declare_lost(|number, _| number <= 2, &mut |number, _, receipts| {
        lost.push((number, receipts.count()));
    });
    assert_eq!(lost, [(0, 0), (1, 1), (2, 2)]);
    let mut late = Vec::new();
    sent.acknowledge(1, 4, &mut |acked, _| {
        late.push((acked.number, acked.was_lost));
    })
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
fn lost_run_ends_where_something_was_acknowledged() {
    let mut sent = with(10);
    acked(&mut sent, 3, 3).expect("sent");
    acked(&mut sent, 9, 9).expect("sent");
    sent.declare_lost(|_, _| true, &mut |_, _, _| {});
    let span = |from: u64, upto: u64| Some((Time::from_nanos(from), Time::from_nanos(upto)));
    assert_eq!(sent.lost_run(8, Time::ZERO), span(4, 8));
    assert_eq!(sent.lost_run(2, Time::ZERO), span(1, 2)); // 0 was not sent after the first sample
    assert_eq!(sent.lost_run(8, Time::from_nanos(6)), span(7, 8));
    assert!(sent.has_acked_between(Time::from_nanos(2), Time::from_nanos(4)));
    assert!(!sent.has_acked_between(Time::from_nanos(3), Time::from_nanos(9)));
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Send(u8),
    Skip,
    Ack(u64, u64),
    Lose(u64),
    Expire(u64),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (1_u8..8).prop_map(Action::Send),
        1 => Just(Action::Skip),
        6 => (0_u64..60, 0_u64..20).prop_map(|(back, len)| Action::Ack(back, len)),
        2 => (1_u64..30).prop_map(Action::Lose),
        1 => (0_u64..40).prop_map(Action::Expire),
    ]
}

proptest! {
    /// The ring against a map from number to fate.
    #[test]
    fn agrees_with_a_plain_map(actions in vec(action(), 1..200)) {
        let mut sent = SentPackets::new();
        let mut model: BTreeMap<u64, Fate> = BTreeMap::new();
        let mut skipped = Vec::new();
        for action in actions {
            match action {
                Action::Send(count) => for _ in 0..count {
                    model.insert(sent.next_number(), Fate::Outstanding);
                    send(&mut sent);
                },
                Action::Skip => {
                    skipped.push(sent.next_number());
                    sent.skip(Time::ZERO);
                }
                Action::Ack(back, len) => {
                    let Some(last) = sent.next_number().checked_sub(1 + back) else { continue };
                    let first = last.saturating_sub(len);
                    if skipped.iter().any(|number| (first..=last).contains(number)) {
                        continue; // a lie, which ends the connection: tested above
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
                }
                Action::Lose(distance) => {
                    let Some(largest) = sent.largest_acked() else { continue };
                    let limit = largest.saturating_sub(distance);
                    let mut lost = Vec::new();
                    sent.declare_lost(|number, _| number < limit, &mut |number, _, _| lost.push(number));
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
                    // What is given up at the front will not be known again.
                    let kept = sent.next_number() - sent.len() as u64;
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
}
