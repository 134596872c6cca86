//! C4 over short, deep and marking queues, and over jitter: the delay that it causes, and what it leaves to others.

use core::time::Duration;

use lastbyte_congestion::SavedPath;
use lastbyte_link::{Jitter, Spread};
use lastbyte_scenario::Path;
use lastbyte_sim::Outcome;

use crate::{
    paths::{bottleneck, logged, lost, run, transfer, ttlb_ms},
    shares::{dual_pi2, share},
};

#[test]
fn alone_it_fills_the_link_with_a_queue_of_a_millisecond() {
    for queue_ms in [10, 50] {
        let (mut shares, _) = share(bottleneck(40, 20, queue_ms), &["c4"], &[]);
        let (used, tail) = (shares.utilisation(), shares.wait_ms(0, 0.99));
        assert!(used > 0.97 && tail < 4.0, "{used}, {tail} ms of {queue_ms}");
    }
    // CUBIC fills whatever queue there is.
    let (mut shares, _) = share(bottleneck(40, 20, 50), &["cubic"], &[]);
    assert!(shares.wait_ms(0, 0.5) > 30.0);
}

#[test]
fn the_queue_that_initial_built_is_drained() {
    let (mut shares, _) = share(bottleneck(40, 20, 200), &["c4"], &[]);
    let median = shares.wait_ms(0, 0.5);
    assert!(shares.utilisation() > 0.97 && median < 5.0, "{median} ms");
}

#[test]
fn it_shares_with_its_like_and_with_others() {
    for queue_ms in [10, 20, 50] {
        for other in ["c4", "cubic", "bbr", "rapid-start"] {
            let (shares, _) = share(bottleneck(40, 20, queue_ms), &["c4", other], &[]);
            let (part, used) = (shares.first(), shares.utilisation());
            assert!(
                (0.4..=0.8).contains(&part) && used > 0.95,
                "{part} beside {other}, {used} used, {queue_ms} ms"
            );
        }
    }
}

#[test]
fn over_dualpi2_marks_keep_its_queue_short_and_nobody_starves() {
    let (mut shares, outcome) = share(dual_pi2(), &["c4"], &[]);
    let (used, tail) = (shares.utilisation(), shares.wait_ms(0, 0.99));
    assert!(used > 0.87 && tail < 8.0, "{used}, {tail} ms");
    assert_eq!(outcome.down.dropped_total().packets, 0);
    let (mut shares, _) = share(dual_pi2(), &["c4", "cubic"], &[]);
    let (part, tail) = (shares.first(), shares.wait_ms(0, 0.99));
    assert!(
        (0.5..=0.9).contains(&part) && tail < 8.0,
        "{part}, {tail} ms"
    );
}

#[test]
fn jitter_does_not_take_its_rate() {
    let path = || {
        let mut path = bottleneck(40, 20, 200);
        path.up.jitter = Some(Jitter {
            spread: Spread::Uniform(Duration::from_millis(60)),
            may_reorder: false,
        });
        path
    };
    let (mut c4, _) = share(path(), &["c4"], &[]);
    let (mut cubic, _) = share(path(), &["cubic"], &[]);
    let (c4_wait, cubic_wait) = (c4.wait_ms(0, 0.5), cubic.wait_ms(0, 0.5));
    assert!(c4.utilisation() > 0.92, "{}", c4.utilisation());
    assert!(c4_wait < cubic_wait / 2.0, "{c4_wait} and {cubic_wait} ms");
}

/// Resuming (§4.3), with what an earlier connection saved of the path.
fn visit(spec: &str, path: Path, size: u64, window: u64, rtt_ms: u64) -> Outcome {
    let mut scenario = transfer(path, spec, size);
    scenario.transport.saved_path = Some(SavedPath {
        window,
        rtt: Duration::from_millis(rtt_ms),
    });
    run(&scenario)
}

#[test]
fn a_return_visit_resumes_and_loses_nothing() {
    for (mbit, rtt, queue, sizes, ratio) in [
        (50, 600, 300, [1_600_000, 16_000_000], 0.75),
        (100, 100, 100, [800_000, 8_000_000], 0.97),
    ] {
        let product = mbit * 125 * rtt;
        for size in sizes {
            let [plain, resumed] = ["c4", "c4:resume=on"]
                .map(|spec| visit(spec, bottleneck(mbit, rtt, queue), size, product, rtt));
            let name = format!("{mbit} Mb/s, {rtt} ms, {size} bytes");
            let jump = |outcome: &Outcome| {
                let sender = outcome.flows[0].server.as_ref().expect("a server");
                sender.congestion.statistics.jump_window
            };
            assert_eq!((jump(&plain), jump(&resumed)), (None, Some(product / 2)));
            assert_eq!(lost(&resumed), 0, "{name}");
            let measured = ttlb_ms(&resumed) / ttlb_ms(&plain);
            assert!(measured < ratio, "{name}: {measured}");
            assert_eq!(logged(&resumed, 0, "jumpstart.cwnd"), product / 2);
        }
    }
}

/// Saved at 100 Mb/s, now 10 Mb/s: half of the saved window is five times the path's product.
#[test]
fn a_visit_over_a_slower_path_retreats_with_few_losses() {
    for size in [400_000, 1_600_000] {
        let [plain, resumed] = ["c4", "c4:resume=on"]
            .map(|spec| visit(spec, bottleneck(10, 100, 30), size, 1_250_000, 100));
        // The excess of what was sent in a round trip over path and queue, and no more.
        assert!(lost(&resumed) * 1280 < 625_000 / 2, "{}", lost(&resumed));
        let ratio = ttlb_ms(&resumed) / ttlb_ms(&plain);
        assert!(ratio < 2.2, "{size}: {ratio}");
    }
}

#[test]
fn a_server_with_c4_saves_what_it_would_use() {
    let tokens = |spec: &str| {
        let outcome = run(&transfer(bottleneck(100, 50, 50), spec, 10_000_000));
        logged(&outcome, 0, "token-sent.rate")
    };
    assert_eq!(tokens("c4"), 0);
    let rate = tokens("c4:resume=on");
    assert!((5_000_000..=12_600_000).contains(&rate), "{rate}");
}
