use lastbyte_wire::{VarInt, packet::PacketNumber};

use super::*;
use crate::ack::ReceivedPackets;

const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

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
    fn receive(&mut self, number: u32, is_ack_eliciting: bool, ecn: EcnCodepoint) -> bool {
        self.received.on_received(&Received {
            now: self.now,
            number: PacketNumber::from(number),
            is_ack_eliciting,
            ecn,
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
            .filter(|number| self.receive(*number, true, EcnCodepoint::NotEct))
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
    Space::new(AckPolicy::delayed(MAX_ACK_DELAY))
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
fn rfc9000_13_2_2_each_second_packet() {
    assert_eq!(delayed().acked_at(&[0, 1, 2, 3, 4, 5]), [1, 3, 5]);
}

#[test]
fn rfc9000_13_2_1_the_first_one_waits_no_longer_than_max_ack_delay() {
    let mut space = delayed();
    assert!(!space.receive(0, true, EcnCodepoint::NotEct));
    assert_eq!(space.received.deadline(), Some(space.now + MAX_ACK_DELAY));
    assert_eq!(space.received.urgency(space.now), Urgency::Piggyback);
    assert_eq!(
        space.received.urgency(space.now + MAX_ACK_DELAY),
        Urgency::Due
    );
}

#[test]
fn rfc9000_13_2_1_a_gap_and_a_late_packet_at_once() {
    // 2 shows a gap; 1 is late; after them the count starts anew.
    assert_eq!(delayed().acked_at(&[0, 2, 1, 3, 4]), [2, 1, 4]);
}

#[test]
fn rfc9000_13_2_1_an_old_gap_is_not_reported_again() {
    assert_eq!(delayed().acked_at(&[0, 2, 3, 4, 5, 6]), [2, 4, 6]);
}

#[test]
fn rfc9000_13_2_1_what_elicits_nothing_makes_no_ack_leave() {
    let mut space = delayed();
    for number in 0..20 {
        assert!(!space.receive(number, false, EcnCodepoint::NotEct));
    }
    assert_eq!(space.received.deadline(), None);
    assert_eq!(space.received.urgency(Time::MAX), Urgency::None);
}

#[test]
fn rfc9000_13_2_1_ce_at_once() {
    let mut space = delayed();
    assert!(space.receive(0, true, EcnCodepoint::Ce));
    assert!(space.receive(1, true, EcnCodepoint::Ce));
    assert!(!space.receive(2, true, EcnCodepoint::Ect0));
}

#[test]
fn ack_frequency_6_3_with_a_threshold_only_the_change_to_ce_counts() {
    let mut space = with_thresholds(10, 1);
    assert!(space.receive(0, true, EcnCodepoint::Ce));
    assert!(!space.receive(1, true, EcnCodepoint::Ce));
    assert!(!space.receive(2, true, EcnCodepoint::Ect0));
    assert!(space.receive(3, true, EcnCodepoint::Ce));
}

#[test]
fn ack_frequency_4_acks_when_more_than_the_threshold_wait() {
    assert_eq!(
        with_thresholds(3, 1).acked_at(&[0, 1, 2, 3, 4, 5, 6, 7]),
        [3, 7]
    );
    assert_eq!(with_thresholds(0, 1).acked_at(&[0, 1, 2]), [0, 1, 2]);
    let mut space = with_thresholds(3, 1);
    space.receive(0, true, EcnCodepoint::NotEct);
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
    space.receive(0, true, EcnCodepoint::NotEct);
    space.received.policy_mut().on_immediate_ack();
    assert_eq!(space.received.urgency(space.now), Urgency::Due);
}
