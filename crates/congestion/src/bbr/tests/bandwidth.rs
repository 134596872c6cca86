//! Paths whose bandwidth changes, and paths of all kinds: Appendix A.15, A.16 and the ranges of Appendix A.

use core::time::Duration;

use super::{
    ms,
    path::{Path, flow},
    secs,
};
use crate::{Controller, Phase};

#[test]
fn a15_ten_times_the_bandwidth_is_found_in_few_rounds() {
    for longterm_is_set in [false, true] {
        let mut flow = flow(Path::new(10_000_000, ms(40), 4.0));
        flow.run_to(Phase::ProbeBandwidthCruise, secs(5));
        flow.run(ms(500));
        flow.path.queue_bytes *= 10;
        flow.set_rate(flow.path.rate.scaled(10.0));
        if longterm_is_set {
            flow.controller.bounds.in_flight_longterm = flow.controller.window();
        }
        flow.run_to(Phase::ProbeBandwidthUp, secs(4));
        let round = flow.controller.rounds.count;
        let found = flow.run_until(secs(4), |flow| {
            flow.controller.max_bandwidth.value() > flow.path.rate.scaled(0.95)
        });
        let rounds = flow.controller.rounds.count - round;
        assert!(found, "{:?}", flow.phases);
        // A quarter more a round is ten times as much after log 10 / log 1.25 = 10.3 rounds, and what a round sends is
        // measured in the next.
        assert!(rounds <= 21, "{rounds}");
    }
}

#[test]
fn a15_longterm_bound_grows_by_doubling_steps() {
    let mut flow = flow(Path::new(10_000_000, ms(40), 4.0));
    flow.run_to(Phase::ProbeBandwidthCruise, secs(5));
    flow.path.queue_bytes *= 10;
    flow.set_rate(flow.path.rate.scaled(10.0));
    flow.run_to(Phase::ProbeBandwidthRefill, secs(4));
    // So low that the window is always limited by it.
    flow.controller.bounds.in_flight_longterm = flow.path.bdp() / 20;
    flow.run_to(Phase::ProbeBandwidthUp, secs(1));
    let mut growth = Vec::new();
    for _ in 0..6 {
        let before = flow.controller.bounds.in_flight_longterm;
        flow.run_until(ms(200), |flow| flow.controller.rounds.started);
        flow.run_until(ms(200), |flow| !flow.controller.rounds.started);
        growth.push((flow.controller.bounds.in_flight_longterm - before) / 1200);
    }
    for pair in growth.windows(2).skip(1) {
        let ratio = pair[1] as f64 / pair[0] as f64;
        assert!((1.2..4.0).contains(&ratio), "{growth:?}");
    }
    assert!(
        growth.last() >= growth.first().map(|first| first * 12).as_ref(),
        "{growth:?}"
    );
}

#[test]
fn a16_a_drop_to_a_tenth_of_the_bandwidth_is_accepted_after_two_cycles() {
    let mut flow = flow(Path::new(100_000_000, ms(40), 1.0));
    flow.run_to(Phase::ProbeBandwidthCruise, secs(5));
    flow.run(ms(300));
    flow.set_rate(flow.path.rate.scaled(0.1));
    flow.path.queue_bytes = flow.path.bdp();
    let (start, phases) = (flow.now, flow.phases.len());
    // Loss is noticed at once: within a few rounds, long before the filter expires.
    assert!(flow.run_until(secs(3), |flow| {
        flow.controller.bandwidth < flow.path.rate.scaled(1.3)
    }));
    assert!(
        flow.now.since(start) < secs(2),
        "{:?}",
        flow.now.since(start)
    );
    assert!(flow.controller.max_bandwidth.value() > flow.path.rate.scaled(9.0));
    assert!(flow.run_until(secs(12), |flow| {
        flow.controller.max_bandwidth.value() < flow.path.rate.scaled(1.1)
    }));
    let ups = flow.phases[phases..]
        .iter()
        .filter(|(_, phase)| *phase == Phase::ProbeBandwidthUp)
        .count();
    assert!(ups <= 3, "{:?}", flow.phases);
    let rate = flow.run(secs(5));
    assert!(rate > flow.path.rate.scaled(0.9), "{rate}");
}

/// Throughput after startup, as a fraction of the link rate.
fn utilization(bits_per_second: u64, delay: Duration, warm_up: Duration, span: Duration) -> f64 {
    let mut flow = flow(Path::new(bits_per_second, delay, 2.0));
    flow.run(warm_up);
    let rate = flow.run(span);
    rate.bytes_per_second() as f64 / flow.path.rate.bytes_per_second() as f64
}

#[test]
fn sweep_of_rates_and_round_trip_times_fills_the_link() {
    let kilo = 1_000;
    let mega = 1_000_000;
    let paths = [
        (64 * kilo, ms(1), secs(5), secs(20)),
        (64 * kilo, ms(100), secs(5), secs(20)),
        (64 * kilo, secs(1), secs(20), secs(30)),
        (mega, Duration::from_micros(200), secs(2), secs(12)),
        (mega, ms(300), secs(8), secs(20)),
        (mega, secs(1), secs(20), secs(40)),
        (20 * mega, ms(1), secs(1), secs(6)),
        (20 * mega, ms(600), secs(10), secs(12)),
        (100 * mega, ms(30), secs(1), secs(3)),
        (100 * mega, Duration::from_micros(500), ms(300), secs(1)),
        (1000 * mega, ms(10), ms(300), ms(500)),
        (1000 * mega, Duration::from_micros(100), ms(50), ms(300)),
        (10_000 * mega, ms(2), ms(60), ms(60)),
        (10_000 * mega, Duration::from_micros(50), ms(10), ms(40)),
    ];
    let shares: Vec<_> = paths
        .iter()
        .map(|(rate, delay, warm_up, span)| utilization(*rate, *delay, *warm_up, *span))
        .collect();
    for (path, share) in paths.iter().zip(&shares) {
        // ProbeRTT lasts at least a round, which is expensive if a round takes half a second or more.
        let least = if path.1 > ms(500) { 0.82 } else { 0.9 };
        assert!(*share > least, "{path:?}: {share}; all: {shares:.3?}");
    }
}
