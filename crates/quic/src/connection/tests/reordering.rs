use super::*;
use crate::recovery::LossThresholds;

/// A transfer over a path on which one datagram in thirty is delayed by half the one-way delay; returns how many of
/// those the sender declared lost.
fn spurious_losses(thresholds: LossThresholds, seed: u64) -> u64 {
    let mut server_config = config();
    server_config.thresholds = thresholds;
    let faults = Faults {
        delay: 30,
        ..Faults::default()
    };
    let mut pair = Pair::with_configs(seed, faults, config(), server_config);
    pair.shake_hands();
    pair.transfer(&body(10, 1), &body(4_000_000, 2));
    pair.pass(DELAY * 4);
    let statistics = pair.server.recovery_statistics();
    assert_eq!(statistics.packets_lost, statistics.packets_late, "no other");
    statistics.packets_late
}

#[test]
fn adaptive_thresholds_reduce_spurious_losses_on_a_reordering_path() {
    for seed in 1..=5 {
        let fixed = spurious_losses(LossThresholds::fixed(), seed);
        let adaptive = spurious_losses(LossThresholds::adaptive(), seed);
        assert!(fixed >= 50, "{fixed}");
        assert!(adaptive * 2 < fixed, "{adaptive} of {fixed}");
    }
}
