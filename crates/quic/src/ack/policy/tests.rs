use lastbyte_wire::{VarInt, packet::PacketNumber};

use super::*;
use crate::ack::ReceivedPackets;

const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
const MIN_RTT: Duration = Duration::from_millis(40);

struct Space {
    received: ReceivedPackets,
    now: Time,
}

impl Space {
    fn new(policy: AckPolicy) -> Self {
        Self {
            received: ReceivedPackets::new(policy),
            now: Time::from_nanos(1_000_000_000),
        }
    }

    /// Receives a packet; when an ACK is due at once, sends it. Returns whether it was.
    fn receive(&mut self, number: u32, is_ack_eliciting: bool, ecn: Ecn) -> bool {
        self.received.on_received(&Received {
            now: self.now,
            number: PacketNumber::from(number),
            is_ack_eliciting,
            ecn,
            min_rtt: Some(MIN_RTT),
        });
        let is_due = self.received.urgency(self.now) == Urgency::Due;
        if is_due {
            let mut buffer = [0; 1200];
            let sent = self.received.write_ack(
                self.now,
                &mut lastbyte_wire::Writer::new(&mut buffer),
                1200,
                3,
            );
            assert!(matches!(sent, Ok(Some(_))));
        }
        is_due
    }

    fn acked_at(&mut self, numbers: &[u32]) -> Vec<u32> {
        numbers
            .iter()
            .copied()
            .filter(|number| self.receive(*number, true, Ecn::NotEct))
            .collect()
    }
}

fn ack_frequency(sequence: u32, eliciting: u32, reordering: u32) -> AckFrequency {
    AckFrequency {
        sequence: VarInt::from_u32(sequence),
        ack_eliciting_threshold: VarInt::from_u32(eliciting),
        max_ack_delay_us: VarInt::from_u32(50_000),
        reordering_threshold: VarInt::from_u32(reordering),
    }
}

fn delayed() -> Space {
    Space::new(AckPolicy::delayed(MAX_ACK_DELAY, None))
}

fn with_thresholds(eliciting: u32, reordering: u32) -> Space {
    let mut space = delayed();
    space
        .received
        .policy_mut()
        .on_ack_frequency(&ack_frequency(0, eliciting, reordering));
    space
}

#[test]
fn rfc9000_13_2_1_initial_and_handshake_packets_at_once() {
    let mut space = Space::new(AckPolicy::immediate());
    assert_eq!(space.acked_at(&[0, 1, 2]), [0, 1, 2]);
}

#[test]
fn rfc9000_13_2_2_every_second_packet_is_acknowledged() {
    assert_eq!(delayed().acked_at(&[0, 1, 2, 3, 4, 5]), [1, 3, 5]);
}

#[test]
fn rfc9000_13_2_1_an_ack_is_delayed_by_at_most_max_ack_delay() {
    let mut space = delayed();
    assert!(!space.receive(0, true, Ecn::NotEct));
    assert_eq!(space.received.deadline(), Some(space.now + MAX_ACK_DELAY));
    assert_eq!(space.received.urgency(space.now), Urgency::Piggyback);
    assert_eq!(
        space.received.urgency(space.now + MAX_ACK_DELAY),
        Urgency::Due
    );
}

#[test]
fn rfc9000_13_2_1_a_gap_and_a_late_packet_at_once() {
    // 2 shows a gap; 1 is late; after them the count starts again.
    assert_eq!(delayed().acked_at(&[0, 2, 1, 3, 4]), [2, 1, 4]);
}

#[test]
fn rfc9000_13_2_1_an_old_gap_is_not_reported_again() {
    assert_eq!(delayed().acked_at(&[0, 2, 3, 4, 5, 6]), [2, 4, 6]);
}

#[test]
fn rfc9000_13_2_1_non_ack_eliciting_packets_cause_no_ack() {
    let mut space = delayed();
    for number in 0..20 {
        assert!(!space.receive(number, false, Ecn::NotEct));
    }
    assert_eq!(space.received.deadline(), None);
    assert_eq!(space.received.urgency(Time::MAX), Urgency::None);
}

#[test]
fn rfc9000_13_2_1_ce_at_once() {
    let mut space = delayed();
    assert!(space.receive(0, true, Ecn::Ce));
    assert!(space.receive(1, true, Ecn::Ce));
    assert!(!space.receive(2, true, Ecn::Ect0));
}

#[test]
fn ack_frequency_6_3_with_a_threshold_only_the_change_to_ce_counts() {
    let mut space = with_thresholds(10, 1);
    assert!(space.receive(0, true, Ecn::Ce));
    assert!(!space.receive(1, true, Ecn::Ce));
    assert!(!space.receive(2, true, Ecn::Ect0));
    assert!(space.receive(3, true, Ecn::Ce));
}

#[test]
fn ack_frequency_4_acks_when_more_than_the_threshold_wait() {
    assert_eq!(
        with_thresholds(3, 1).acked_at(&[0, 1, 2, 3, 4, 5, 6, 7]),
        [3, 7]
    );
    assert_eq!(with_thresholds(0, 1).acked_at(&[0, 1, 2]), [0, 1, 2]);
    let mut space = with_thresholds(3, 1);
    space.receive(0, true, Ecn::NotEct);
    assert_eq!(
        space.received.deadline(),
        Some(space.now + Duration::from_millis(50))
    );
}

#[test]
fn ack_frequency_6_2_1_examples_of_the_reordering_threshold() {
    assert_eq!(
        with_thresholds(99, 3).acked_at(&[0, 1, 3, 4, 5, 8, 9, 10]),
        [5, 9, 10]
    );
    assert_eq!(
        with_thresholds(99, 5).acked_at(&[0, 1, 3, 5, 6, 7, 9]),
        [7, 9]
    );
}

#[test]
fn ack_frequency_4_a_reordering_threshold_of_zero_ignores_order() {
    let nothing: [u32; 0] = [];
    assert_eq!(with_thresholds(99, 0).acked_at(&[0, 5, 3, 40, 1]), nothing);
}

#[test]
fn ack_frequency_4_an_older_frame_is_ignored() {
    let mut space = with_thresholds(1, 1);
    let policy = space.received.policy_mut();
    policy.on_ack_frequency(&ack_frequency(5, 3, 1));
    policy.on_ack_frequency(&ack_frequency(4, 0, 1));
    policy.on_ack_frequency(&ack_frequency(5, 0, 1));
    assert_eq!(space.acked_at(&[0, 1, 2, 3]), [3]);
}

#[test]
fn ack_frequency_5_immediate_ack() {
    let mut space = delayed();
    space.receive(0, true, Ecn::NotEct);
    space.received.policy_mut().on_immediate_ack();
    assert_eq!(space.received.urgency(space.now), Urgency::Due);
}

fn chromium() -> Space {
    Space::new(AckPolicy::delayed(
        MAX_ACK_DELAY,
        Some(AckDecimation::CHROMIUM),
    ))
}

#[test]
fn chromium_acks_every_second_packet_up_to_the_hundredth_and_then_every_tenth() {
    let numbers: Vec<u32> = (7..160).collect();
    let acked = chromium().acked_at(&numbers);
    let every_second = (8..107).step_by(2);
    let every_tenth = (116..160).step_by(10);
    assert_eq!(acked, every_second.chain(every_tenth).collect::<Vec<_>>());
}

#[test]
fn chromium_waits_a_quarter_of_the_minimum_round_trip_once_it_acks_every_tenth() {
    let mut space = chromium();
    space.receive(0, true, Ecn::NotEct);
    assert_eq!(space.received.deadline(), Some(space.now + MAX_ACK_DELAY));
    for number in 1..=100 {
        space.receive(number, true, Ecn::NotEct);
    }
    assert_eq!(space.received.deadline(), Some(space.now + MIN_RTT / 4));
}

#[test]
fn the_delay_of_decimation_is_from_one_millisecond_to_max_ack_delay() {
    let delay = |min_rtt| AckDecimation::CHROMIUM.delay(MAX_ACK_DELAY, min_rtt);
    let ms = Duration::from_millis;
    assert_eq!(delay(None), ms(1));
    assert_eq!(delay(Some(ms(1))), ms(1));
    assert_eq!(delay(Some(ms(60))), ms(15));
    assert_eq!(delay(Some(ms(600))), MAX_ACK_DELAY);
    let zeros = AckDecimation {
        after: 0,
        packets: 0,
        rtt_divisor: 0,
        packets_after_gap: 0,
    };
    assert_eq!(zeros.delay(MAX_ACK_DELAY, Some(ms(8))), ms(8));
    let mut space = Space::new(AckPolicy::delayed(MAX_ACK_DELAY, Some(zeros)));
    assert_eq!(space.acked_at(&[0, 1, 2]), [0, 1, 2]);
}

#[test]
fn chromium_acks_four_packets_at_once_after_a_gap() {
    let mut space = chromium();
    space.acked_at(&(0..=110).collect::<Vec<_>>());
    // 111 is missing; the count starts again after 115.
    assert_eq!(
        space.acked_at(&(112..130).collect::<Vec<_>>()),
        [112, 113, 114, 115, 125]
    );
}

#[test]
fn ack_frequency_ends_decimation() {
    let mut space = chromium();
    space.acked_at(&(0..=110).collect::<Vec<_>>());
    space
        .received
        .policy_mut()
        .on_ack_frequency(&ack_frequency(0, 1, 1));
    assert_eq!(space.acked_at(&[111, 112, 113, 114]), [111, 113]);
}

/// The rules of QUICHE as its functions are written, over a set of numbers.
#[derive(Default)]
struct Quiche {
    seen: std::collections::BTreeSet<u32>,
    last_sent_largest: Option<u32>,
    waiting: u64,
    frequency: u64,
}

impl Quiche {
    /// `MaybeUpdateAckTimeout`; returns whether an acknowledgment is sent at once.
    fn receive(&mut self, number: u32) -> bool {
        let was_missing = self.seen.last().is_some_and(|largest| number < *largest);
        if !self.seen.insert(number) {
            return false;
        }
        self.waiting += 1;
        let first = *self.seen.first().expect("one was inserted");
        if number >= first + 100 {
            self.frequency = 10;
        }
        let largest = *self.seen.last().expect("one was inserted");
        let newest = (0..=largest)
            .rev()
            .take_while(|number| self.seen.contains(number))
            .count() as u32;
        let has_missing = largest + 1 - newest > first;
        let is_late = was_missing && self.last_sent_largest.is_some_and(|sent| number < sent);
        let is_due =
            is_late || self.waiting >= self.frequency.max(2) || (has_missing && newest <= 4);
        if is_due {
            self.waiting = 0;
            self.last_sent_largest = Some(largest);
        }
        is_due
    }
}

proptest::proptest! {
    /// Without packets that arrive late: for those RFC 9000 §13.2.1, which is kept, has an ACK in more cases.
    #[test]
    fn decimation_acks_when_quiche_does(
        steps in proptest::collection::vec(proptest::sample::select(vec![1_u32, 1, 1, 1, 1, 1, 1, 2, 3]), 1..400),
    ) {
        let (mut space, mut quiche) = (chromium(), Quiche::default());
        let mut number = 0;
        for step in steps {
            number += step;
            let is_due = space.receive(number, true, Ecn::NotEct);
            proptest::prop_assert_eq!(is_due, quiche.receive(number), "packet {}", number);
        }
    }
}
