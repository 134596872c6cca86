//! Paths that reorder: jitter of which packets overtake each other.

use core::time::Duration;

use lastbyte_link as link;
use lastbyte_sim::Outcome;

use crate::paths::{bottleneck, run, transfer, ttlb_ms};

/// 20 MB at 100 Mb/s and 30 ms, with the defaults.
fn transfer_with_jitter(spec: &str, jitter_ms: u64, seed: u64) -> Outcome {
    let mut path = bottleneck(100, 30, 60);
    path.down.jitter = Some(link::Jitter {
        spread: link::Spread::Uniform(Duration::from_millis(jitter_ms)),
        may_reorder: true,
    });
    let mut scenario = transfer(path, spec, 20_000_000);
    scenario.seed = seed;
    run(&scenario)
}

#[test]
fn bbr_tolerates_reordering_like_cubic() {
    for jitter_ms in [1, 5] {
        for seed in 1..=3 {
            let bbr = ttlb_ms(&transfer_with_jitter("bbr", jitter_ms, seed));
            let cubic = ttlb_ms(&transfer_with_jitter("cubic", jitter_ms, seed));
            assert!(
                bbr < 1.1 * cubic,
                "jitter {jitter_ms} ms, seed {seed}: {bbr} ms against {cubic} ms"
            );
            // Twice the time that 20 MB take at 100 Mb/s would be half the rate.
            assert!(cubic < 2000.0, "jitter {jitter_ms} ms: {cubic} ms");
        }
    }
}
