//! The four arms of the talk, with the draft's own rules, on the path of the talk and others.

use crate::paths::{bottleneck, lost, run, transfer, ttlb_ms};

#[test]
fn each_arm_is_faster_than_the_baseline_where_the_path_is_long() {
    for (mbit, rtt, queue) in [(55, 39, 50), (100, 40, 80), (30, 60, 120), (50, 600, 600)] {
        for size in [200_000, 400_000, 800_000] {
            let times = ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"]
                .map(|arm| ttlb_ms(&run(&transfer(bottleneck(mbit, rtt, queue), arm, size))));
            for (arm, time) in times.iter().enumerate().skip(1) {
                assert!(
                    *time < times[0],
                    "{mbit} Mb/s {rtt} ms {size}: {arm} {times:?}"
                );
            }
        }
    }
}

#[test]
fn hystart_loses_fewer_packets_at_the_same_time() {
    // Deep and shallow queues; the transfer is long enough for either to find the end of the path.
    for (mbit, rtt, queue) in [(50, 40, 40), (50, 40, 80), (100, 30, 60), (20, 80, 160)] {
        let size = mbit * 125_000 * rtt / 1000 * 20;
        let [slow, hystart] = ["slow-start:beta=0.7", "hystart"].map(|arm| {
            let outcome = run(&transfer(bottleneck(mbit, rtt, queue), arm, size));
            (ttlb_ms(&outcome), lost(&outcome))
        });
        assert!(
            hystart.1 < slow.1,
            "{mbit} {rtt} {queue}: {hystart:?} {slow:?}"
        );
        assert!(
            hystart.0 < slow.0 * 1.05,
            "{mbit} {rtt} {queue}: {hystart:?} {slow:?}"
        );
    }
}
