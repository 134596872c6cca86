use lastbyte_units::Time;

use super::*;
use crate::{rtt::Rtt, spec::Value};

/// The datagram size of these tests, which makes windows easy to read in thousands.
const M: u64 = 1000;

struct Flow {
    cubic: Cubic,
    rtt: Rtt,
    now: Time,
    window: u64,
}

impl Flow {
    fn new(config: &Config, rtt: Duration) -> Self {
        let mut estimator = Rtt::default();
        estimator.update(Time::ZERO, rtt, Duration::ZERO, None);
        Self {
            cubic: Cubic::new(config),
            rtt: estimator,
            now: Time::from_nanos(1_000_000_000),
            window: 0,
        }
    }

    fn reduce(&mut self, full: u64, after: u64, is_measured: bool) {
        self.window = after;
        self.cubic.on_congestion(&Reduction {
            now: self.now,
            full,
            is_measured,
            after,
            cause: Cause::Loss,
            rtt: &self.rtt,
            max_datagram_size: M,
        });
    }

    /// A round trip in which the whole window is acknowledged, a datagram a frame.
    fn round(&mut self) {
        let datagrams = self.window / M;
        let spacing = self.rtt.smoothed() / datagrams.max(1) as u32;
        for _ in 0..datagrams {
            self.now = self.now + spacing;
            self.ack(M);
        }
    }

    fn ack(&mut self, bytes: u64) {
        self.window = self.cubic.on_ack(&AvoidanceAck {
            now: self.now,
            bytes,
            window: self.window,
            rtt: &self.rtt,
            max_datagram_size: M,
        });
    }
}

/// `W_cubic(t)` of RFC 9438 §4.2 in bytes.
fn closed_formula(t: f64, max: f64, epoch: f64) -> f64 {
    let k = ((max - epoch) / (0.4 * M as f64)).cbrt();
    0.4 * M as f64 * (t - k).powi(3) + max
}

#[test]
fn rfc9438_4_2_window_follows_the_closed_formula() {
    // 200 ms: long enough to be out of the Reno-friendly region. W_max 100, window 70: K = cbrt(75) = 4.217 s.
    let rtt = Duration::from_millis(200);
    let mut flow = Flow::new(&Config::default(), rtt);
    flow.reduce(100 * M, 70 * M, false);
    let start = flow.now;
    let mut rounds_checked = 0;
    while flow.now.since(start) < Duration::from_secs(9) {
        flow.round();
        // The window aims at the curve's value one round trip ahead, and reaches it within the round trip.
        let t = flow.now.since(start).as_secs_f64();
        let expected = closed_formula(t, 100e3, 70e3);
        let error = (flow.window as f64 - expected).abs() / expected;
        assert!(
            error < 0.03,
            "at {t:.3} s: {} for {expected:.0}",
            flow.window
        );
        rounds_checked += 1;
    }
    assert!(rounds_checked > 40);
    assert!(
        flow.window > 120 * M,
        "convex beyond W_max: {}",
        flow.window
    );
}

#[test]
fn rfc9438_4_2_plateau_is_reached_after_k() {
    let rtt = Duration::from_millis(100);
    let mut flow = Flow::new(&Config::default(), rtt);
    flow.reduce(100 * M, 70 * M, false);
    let start = flow.now;
    while flow.now.since(start) < Duration::from_millis(4217) {
        flow.round();
    }
    assert!((99 * M..=101 * M).contains(&flow.window), "{}", flow.window);
}

#[test]
fn rfc9438_4_3_matches_reno_on_short_paths() {
    // At 10 ms the cubic term hardly changes; the window follows W_est: alpha = 0.529 datagrams a round trip.
    let mut flow = Flow::new(&Config::default(), Duration::from_millis(10));
    flow.reduce(20 * M, 14 * M, false);
    let before = flow.window;
    for _ in 0..8 {
        flow.round();
    }
    let per_round = (flow.window - before) as f64 / 8.0 / M as f64;
    assert!((0.50..0.56).contains(&per_round), "{per_round}");
}

#[test]
fn rfc9438_4_3_alpha_is_one_above_the_prior_window() {
    let mut flow = Flow::new(&Config::default(), Duration::from_millis(1));
    flow.reduce(10 * M, 7 * M, false);
    while flow.window < 10 * M + M / 2 {
        flow.round();
    }
    let before = flow.window;
    for _ in 0..10 {
        flow.round();
    }
    let per_round = (flow.window - before) as f64 / 10.0 / M as f64;
    assert!((0.9..1.05).contains(&per_round), "{per_round}");
}

#[test]
fn rfc9438_4_4_target_is_at_most_half_a_window_more() {
    let mut flow = Flow::new(&Config::default(), Duration::from_millis(100));
    flow.reduce(100 * M, 70 * M, false);
    flow.ack(M);
    // 100 s without an ACK and without an application limit: the curve is far above.
    flow.now = flow.now + Duration::from_secs(100);
    let before = flow.window;
    flow.ack(before);
    assert!(flow.window > before);
    assert!(
        flow.window <= before * 3 / 2 + 1,
        "{} from {before}",
        flow.window
    );
}

#[test]
fn rfc9438_4_2_clock_stops_while_application_limited() {
    let mut paused = Flow::new(&Config::default(), Duration::from_millis(100));
    let mut steady = Flow::new(&Config::default(), Duration::from_millis(100));
    for flow in [&mut paused, &mut steady] {
        flow.reduce(100 * M, 70 * M, false);
        (0..5).for_each(|_| flow.round());
    }
    paused.cubic.on_app_limited(paused.now);
    // Repeated calls during a pause: the first one counts.
    paused.now = paused.now + Duration::from_secs(4);
    paused.cubic.on_app_limited(paused.now);
    paused.now = paused.now + Duration::from_secs(6);
    for _ in 0..5 {
        paused.round();
        steady.round();
        // The time from the last ACK before the pause to it does not count either: 1.4 ms, some bytes of window.
        // Ten seconds would be 150 kB.
        assert!(paused.window.abs_diff(steady.window) < 20);
    }
}

#[test]
fn rfc9438_4_7_fast_convergence_reduces_w_max() {
    let with = |fast_convergence| {
        let mut flow = Flow::new(
            &Config {
                settings: [("fast-convergence", Value::Switch(fast_convergence))]
                    .into_iter()
                    .collect(),
                ..Config::default()
            },
            Duration::from_millis(100),
        );
        flow.reduce(200 * M, 140 * M, false);
        flow.reduce(100 * M, 70 * M, false);
        flow.ack(M);
        flow.cubic.curve.max
    };
    assert_eq!(with(true), Some(85e3)); // 100 × (1 + 0.7) / 2
    assert_eq!(with(false), Some(100e3));
}

#[test]
fn fast_convergence_doubles_a_measured_capacity() {
    let with = |fast_convergence| {
        let mut flow = Flow::new(
            &Config {
                settings: [("fast-convergence", Value::Switch(fast_convergence))]
                    .into_iter()
                    .collect(),
                ..Config::default()
            },
            Duration::from_millis(100),
        );
        flow.reduce(100 * M, 70 * M, true);
        flow.cubic.curve.max
    };
    assert_eq!(with(true), Some(200e3));
    assert_eq!(with(false), Some(100e3));
}

#[test]
fn rfc9438_4_10_growth_is_convex_after_slow_start_without_loss() {
    let mut flow = Flow::new(&Config::default(), Duration::from_millis(100));
    flow.window = 100 * M;
    flow.cubic.on_slow_start_exit(flow.window);
    flow.ack(M);
    let epoch = flow.cubic.curve.epoch.expect("an epoch");
    assert!(epoch.k.abs() < f64::EPSILON);
}

#[test]
fn rfc9438_4_9_2_undo_restores_the_curve() {
    let mut flow = Flow::new(&Config::default(), Duration::from_millis(100));
    flow.reduce(100 * M, 70 * M, false);
    (0..10).for_each(|_| flow.round());
    let before = format!("{:?}", flow.cubic.curve);
    flow.reduce(flow.window, flow.window * 7 / 10, false);
    assert_ne!(format!("{:?}", flow.cubic.curve), before);
    flow.cubic.undo(0);
    assert_eq!(format!("{:?}", flow.cubic.curve), before);
}

#[test]
fn growth_below_a_byte_is_not_lost() {
    // Acknowledging ten bytes at a time must give the same result as acknowledging thousands.
    let mut fine = Flow::new(&Config::default(), Duration::from_millis(100));
    let mut coarse = Flow::new(&Config::default(), Duration::from_millis(100));
    fine.reduce(100 * M, 70 * M, false);
    coarse.reduce(100 * M, 70 * M, false);
    for _ in 0..700 {
        fine.now = fine.now + Duration::from_millis(1);
        coarse.now = fine.now;
        (0..100).for_each(|_| fine.ack(10));
        coarse.ack(1000);
    }
    assert!(
        fine.window.abs_diff(coarse.window) <= coarse.window / 500,
        "{} and {}",
        fine.window,
        coarse.window
    );
}
