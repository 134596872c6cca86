//! Startup and Drain: Appendix A.1 to A.4, A.7, A.12, A.20.

use super::{
    ms,
    path::{Path, SIZE, Source, flow},
    secs,
};
use crate::{
    Bandwidth, Controller, Phase,
    bbr::constants::{DRAIN_PACING_GAIN, PACING_MARGIN},
};

/// `value` within this share of `of`.
fn is_near(value: Bandwidth, of: Bandwidth, share: f64) -> bool {
    let (value, of) = (
        value.bytes_per_second() as f64,
        of.bytes_per_second() as f64,
    );
    (value / of - 1.0).abs() <= share
}

#[test]
fn a1_plateau_ends_startup_within_2_percent_of_the_link() {
    for (megabits, millis) in [(1, 100), (10, 40), (100, 20), (55, 39)] {
        let mut flow = flow(Path::new(megabits * 1_000_000, ms(millis), 8.0));
        flow.run_to(Phase::Drain, secs(10));
        let bbr = &flow.controller;
        assert!(
            is_near(bbr.max_bandwidth.value(), flow.path.rate, 0.02),
            "{bbr:?}"
        );
        assert!(bbr.full_pipe.is_now && bbr.full_pipe.is_reached);
        assert_eq!(flow.dropped, 0);
        assert!(bbr.statistics.window_exiting_startup >= Some(flow.path.bdp()));
        assert_eq!(bbr.statistics.startup_exited_at, Some(flow.now));
        assert_eq!(flow.phases.len(), 2);
    }
}

#[test]
fn a1_startup_takes_a_logarithmic_number_of_rounds() {
    let mut flow = flow(Path::new(1_000_000_000, ms(20), 4.0));
    flow.run_to(Phase::Drain, secs(2));
    // 10 datagrams to 2083 in log2 = 7.7 rounds, three to detect the plateau, and one for the ACKs.
    assert!(
        flow.controller.rounds.count <= 14,
        "{}",
        flow.controller.rounds.count
    );
}

#[test]
fn first_flight_grows_the_window_by_the_bytes_acknowledged() {
    let mut flow = flow(Path::new(10_000_000, ms(40), 8.0));
    flow.run_until(secs(1), |flow| flow.delivered == 5 * SIZE);
    assert_eq!(flow.controller.window(), 15 * SIZE);
}

#[test]
fn pacing_rate_of_startup_starts_from_the_rtt_and_never_falls() {
    let mut flow = flow(Path::new(50_000_000, ms(40), 4.0));
    let first = flow.controller.pacing(&flow.rtt).rate;
    assert!(is_near(
        first,
        Bandwidth::from_bytes_per_second(12_000_000).scaled(2.77),
        0.001
    ));
    // A tenth of the initial window per RTT: samples of it must not slow the search.
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(240_000));
    flow.run(secs(3));
    let initial = Bandwidth::from_bits_per_second(2_400_000).scaled(2.77);
    let rate = flow.controller.pacing(&flow.rtt).rate;
    assert!(is_near(rate, initial, 0.01), "{rate}");
}

#[test]
fn a2_loss_ends_startup_while_application_limited() {
    let mut flow = flow(Path::new(50_000_000, ms(40), 4.0));
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(10_000_000));
    flow.run(secs(1));
    assert_eq!(flow.phase(), Phase::Startup);
    flow.path.loss = 0.3;
    assert!(flow.run_until(secs(2), |flow| flow.phase() != Phase::Startup));
    let bbr = &flow.controller;
    assert!(bbr.full_pipe.is_reached && !bbr.full_pipe.is_now);
    assert!(bbr.bounds.in_flight_longterm < u64::MAX);
}

#[test]
fn a2_few_ranges_or_little_loss_do_not_end_startup() {
    let mut flow = flow(Path::new(50_000_000, ms(40), 4.0));
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(10_000_000));
    flow.run(secs(1));
    // Five ranges among some 41 packets a round: 12 %, but not enough discontiguous ranges.
    flow.path.drop_alternate = 10;
    flow.run(ms(400));
    assert_eq!(flow.dropped, 5 * SIZE);
    assert_eq!(flow.phase(), Phase::Startup);
    flow.path.drop_alternate = 12;
    flow.run(ms(400));
    assert_ne!(flow.phase(), Phase::Startup);
}

#[test]
fn a2_many_ranges_of_little_loss_do_not_end_startup() {
    let mut flow = flow(Path::new(1_000_000_000, ms(60), 8.0));
    flow.run(ms(430));
    flow.path.drop_alternate = 12;
    flow.run(ms(140));
    assert_eq!(flow.dropped, 6 * SIZE);
    assert_eq!(flow.phase(), Phase::Startup);
    flow.run_to(Phase::Drain, secs(2));
    assert!(flow.controller.full_pipe.is_now, "it was a plateau");
}

#[test]
fn a3_drain_paces_at_half_and_ends_when_in_flight_fits() {
    let mut flow = flow(Path::new(20_000_000, ms(50), 8.0));
    flow.run_to(Phase::Drain, secs(5));
    let bbr = &flow.controller;
    let rate = bbr.bandwidth.scaled(DRAIN_PACING_GAIN * PACING_MARGIN);
    assert_eq!(bbr.pacing(&flow.rtt).rate, rate);
    assert!(flow.in_flight > bbr.in_flight_at(bbr.bandwidth, 1.0));
    // DOWN may end with the same ACK: it uses the same condition.
    assert!(flow.run_until(ms(150), |flow| flow.phase() != Phase::Drain));
    let bbr = &flow.controller;
    assert!(flow.in_flight <= bbr.in_flight_at(bbr.bandwidth, 1.0));
    assert!(bbr.rounds.count <= bbr.drain_start_round + 3);
}

#[test]
fn a4_drain_ends_after_three_rounds_when_the_path_was_overestimated() {
    let mut flow = flow(Path::new(20_000_000, ms(50), 8.0));
    flow.run_to(Phase::Drain, secs(5));
    // The queue hardly drains, since the path now delivers at about half the rate.
    flow.set_rate(flow.path.rate.scaled(0.5));
    flow.run_to(Phase::ProbeBandwidthDown, secs(3));
    let bbr = &flow.controller;
    assert!(flow.in_flight > bbr.in_flight_at(bbr.bandwidth, 1.0));
    assert_eq!(bbr.rounds.count, bbr.drain_start_round + 4);
}

#[test]
fn a7_startup_does_not_end_while_application_limited_without_loss() {
    let mut flow = flow(Path::new(50_000_000, ms(40), 4.0));
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(3_000_000));
    flow.run(secs(20));
    assert!(
        flow.phases
            .iter()
            .all(|(_, phase)| matches!(phase, Phase::Startup | Phase::ProbeRtt))
    );
    assert_eq!(flow.controller.statistics.startup_exited_at, None);
}

#[test]
fn a12_startup_finds_the_bandwidth_through_aggregated_acks() {
    let mut flow = flow(Path::new(50_000_000, ms(20), 8.0));
    flow.path.ack_interval = ms(15);
    flow.run_to(Phase::Drain, secs(5));
    let bbr = &flow.controller;
    assert!(
        is_near(bbr.max_bandwidth.value(), flow.path.rate, 0.02),
        "{bbr:?}"
    );
    assert!(bbr.window() > 2 * flow.path.bdp());
    assert!(bbr.extra_acked.value(&bbr.rounds, true) > 0);
}

#[test]
fn a20_probe_rtt_in_startup_returns_to_startup() {
    let mut flow = flow(Path::new(50_000_000, ms(40), 4.0));
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(3_000_000));
    flow.run(secs(3));
    // A longer path, so that the smallest delay does not occur again.
    flow.path.delay = ms(60);
    flow.run_to(Phase::ProbeRtt, secs(10));
    flow.run_until(secs(2), |flow| flow.phase() != Phase::ProbeRtt);
    assert_eq!(flow.phase(), Phase::Startup);
    flow.source = Source::Greedy;
    flow.run_to(Phase::Drain, secs(5));
    let bbr = &flow.controller;
    assert!(
        is_near(bbr.max_bandwidth.value(), flow.path.rate, 0.02),
        "{bbr:?}"
    );
}
