use super::*;

#[test]
fn more_than_two_percent_of_loss_is_too_high() {
    assert!(!is_too_high(0, 0));
    assert!(!is_too_high(2_000, 100_000));
    assert!(is_too_high(2_001, 100_000));
    assert!(is_too_high(u64::MAX, u64::MAX));
}

#[test]
fn the_crossing_point_matches_a_worked_example() {
    // 98 kB before the packet, nothing lost: (0 + p) / (98000 + p) = 2 % at p = 2000.
    assert_eq!(in_flight_at_loss(10_000, 108_000, 10_000), 100_000);
    // 1 kB of it lost before: p = (1960 − 1000) / 0.98 = 979.
    assert_eq!(in_flight_at_loss(10_000, 108_000, 11_000), 98_979);
    // Exceeded before this packet.
    assert_eq!(in_flight_at_loss(10_000, 108_000, 15_000), 98_000);
    // A packet small enough to fit as a whole.
    assert_eq!(in_flight_at_loss(1_000, 100_000, 1_000), 100_000);
    assert_eq!(in_flight_at_loss(u64::MAX, 0, 0), 0);
    assert_eq!(in_flight_at_loss(0, u64::MAX, u64::MAX), u64::MAX);
}

#[test]
fn adjacent_losses_are_one_range() {
    let mut losses = LossRound::default();
    for send_index in [3, 4, 5, 9, 11, 12, u64::MAX, u64::MAX] {
        losses.note_packet(send_index);
    }
    assert_eq!(losses.ranges, 4);
}
