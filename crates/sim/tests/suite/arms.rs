//! The four arms of the talk, with the draft's own rules, on the path of the talk and others.

use core::time::Duration;
use lastbyte_scenario::Request;

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
fn search_ends_startup_after_the_path_is_full_and_loses_less_in_deep_queues() {
    for (mbit, rtt, queue) in [(50, 40, 200), (100, 30, 150), (20, 80, 400)] {
        let size = mbit * 125_000 * rtt / 1000 * 30;
        let [slow, search, drain] = ["cubic", "search:search-exit=keep", "search"].map(|arm| {
            let outcome = run(&transfer(bottleneck(mbit, rtt, queue), arm, size));
            let state = &outcome.flows[0]
                .server
                .as_ref()
                .expect("a server")
                .congestion;
            let exit = state.statistics.window_exiting_startup.expect("an end");
            (
                ttlb_ms(&outcome),
                lost(&outcome),
                exit,
                state.statistics.window_min,
            )
        });
        let path = format!("{mbit} {rtt} {queue}: {slow:?} {search:?} {drain:?}");
        let product = mbit * 125 * rtt;
        assert!(search.1 < slow.1 && drain.1 <= search.1, "{path}");
        assert!(search.2 >= product && search.2 < slow.2, "{path}");
        assert!(search.0 < slow.0 * 1.03, "{path}");
        // Drained, the window is about the bandwidth-delay product.
        let drained = drain.3.expect("lowered");
        assert!((product / 2..product * 2).contains(&drained), "{path}");
    }
}

#[test]
fn a_rate_limited_sender_keeps_to_twice_its_largest_flight() {
    let window = |spec: &str| {
        let mut scenario = transfer(bottleneck(50, 40, 100), spec, 12_000);
        let again = Request {
            pause: Duration::from_millis(100),
            size: 12_000,
            is_parallel: false,
        };
        scenario.flows[0].requests.extend([again; 19]);
        let outcome = run(&scenario);
        let state = &outcome.flows[0]
            .server
            .as_ref()
            .expect("a server")
            .congestion;
        state.statistics.window_max / 1280
    };
    // 12 kB are 10 packets of a window of 30.
    assert!((30..=32).contains(&window("cubic")), "{}", window("cubic"));
    let limited = window("rate-limited");
    assert!((55..=64).contains(&limited), "{limited}");
    assert!(window("cubic:respect-app-limited=off") > 150);
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
