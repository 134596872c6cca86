use super::*;
use crate::recovery::EcnState;

fn after(marks: Marks) -> Pair {
    let mut pair = Pair::new(1, Faults::default());
    pair.marks = marks;
    pair.shake_hands();
    pair.transfer(&body(100_000, 1), &body(200_000, 2));
    pair
}

#[test]
fn rfc9000_13_4_2_ecn_is_used_if_marks_arrive() {
    let pair = after(Marks::Kept);
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.recovery().ecn().state(), EcnState::Capable);
        let packets = end.statistics().packets;
        assert!(packets.received_ect0 > 50, "{packets:?}");
        assert_eq!(packets.received_ce + packets.received_ect1, 0);
    }
}

#[test]
fn rfc9000_13_4_2_ecn_is_disabled_if_marks_do_not_arrive() {
    let pair = after(Marks::Bleached);
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.recovery().ecn().state(), EcnState::Failed);
        assert_eq!(end.statistics().packets.received_ect0, 0);
    }
}

#[test]
fn rfc9000_13_4_2_ecn_is_disabled_if_marks_are_changed() {
    let pair = after(Marks::AllEct1);
    for end in [&pair.client, &pair.server] {
        assert_eq!(end.recovery().ecn().state(), EcnState::Failed);
    }
}

#[test]
fn rfc9002_7_1_congestion_experienced_cuts_the_window_without_a_loss() {
    let pair = after(Marks::AllCe);
    let server = pair.server.recovery();
    assert_eq!(server.ecn().state(), EcnState::Capable);
    let statistics = server.congestion().statistics;
    assert!(statistics.ecn_episodes > 0, "{statistics:?}");
    assert_eq!(server.statistics().packets_lost, 0);
}
