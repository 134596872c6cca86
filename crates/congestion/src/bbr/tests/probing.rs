//! The `ProbeBW` cycle, `ProbeRTT` and idleness: Appendix A.5, A.7 to A.11, A.13, A.14, A.22.

use core::time::Duration;

use super::{
    ms,
    path::{Flow, Path, SIZE, Source, flow},
    secs,
};
use crate::{
    Bandwidth, Bbr, Controller, Phase,
    bbr::constants::{PACING_MARGIN, UP_PACING_GAIN},
};

/// A flow of 20 Mb/s and 50 ms that has just left Drain.
fn probing(queue_bdps: f64) -> Flow<Bbr> {
    let mut flow = flow(Path::new(20_000_000, ms(50), queue_bdps));
    assert!(flow.run_until(secs(5), |flow| flow.controller.mode.is_probe_bandwidth()));
    flow
}

#[test]
fn cycle_phases_are_down_cruise_refill_up() {
    let mut flow = probing(8.0);
    flow.run(secs(2));
    flow.postpone_probe_rtt();
    flow.run(ms(4500));
    let start = flow
        .phases
        .iter()
        .position(|(_, phase)| *phase == Phase::ProbeBandwidthRefill);
    let cycle: Vec<_> = flow.phases[start.expect("a refill")..]
        .iter()
        .take(5)
        .collect();
    let names: Vec<_> = cycle.iter().map(|(_, phase)| phase.name()).collect();
    assert_eq!(
        names,
        [
            "probe-bw-refill",
            "probe-bw-up",
            "probe-bw-down",
            "probe-bw-cruise",
            "probe-bw-refill"
        ]
    );
    // REFILL lasts one round. The pipe is full, so UP lasts the three rounds that show it.
    let refill = cycle[1].0.since(cycle[0].0);
    assert!((ms(50)..ms(110)).contains(&refill), "{refill:?}");
    let up = cycle[2].0.since(cycle[1].0);
    assert!((ms(150)..ms(320)).contains(&up), "{up:?}");
    // From DOWN to REFILL: 62 rounds would be more than the 2 to 3 s.
    let wait = cycle[4].0.since(cycle[2].0);
    assert!((secs(2)..ms(3050)).contains(&wait), "{wait:?}");
}

#[test]
fn short_rtts_probe_on_the_time_scale_of_reno() {
    let mut flow = flow(Path::new(20_000_000, ms(10), 8.0));
    flow.run(secs(4));
    let at = |wanted| {
        let found = flow
            .phases
            .iter()
            .filter(move |(_, phase)| *phase == wanted);
        found.map(|(at, _)| *at).collect::<Vec<_>>()
    };
    let (downs, refills) = (
        at(Phase::ProbeBandwidthDown),
        at(Phase::ProbeBandwidthRefill),
    );
    let down = downs.first().expect("a probe that ended");
    let refill = refills
        .iter()
        .find(|refill| *refill > down)
        .expect("one more probe");
    // The path holds 21 datagrams: 20 or 21 rounds of 10 ms, and a small queue.
    let wait = refill.since(*down);
    assert!((ms(200)..ms(300)).contains(&wait), "{wait:?}");
}

#[test]
fn a5_up_ends_when_the_rate_stops_growing() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthUp, secs(4));
    let bbr = &flow.controller;
    let round = bbr.rounds.count;
    flow.run_to(Phase::ProbeBandwidthDown, secs(1));
    let bbr = &flow.controller;
    assert!(bbr.full_pipe.is_now);
    assert!(
        (3..=5).contains(&(bbr.rounds.count - round)),
        "{}",
        bbr.rounds.count - round
    );
    assert_eq!(flow.dropped, 0);
}

#[test]
fn up_paces_a_quarter_faster_and_down_a_tenth_slower() {
    let mut flow = probing(8.0);
    for (phase, gain) in [
        (Phase::ProbeBandwidthUp, UP_PACING_GAIN),
        (Phase::ProbeBandwidthDown, 0.9),
    ] {
        flow.run_to(phase, secs(4));
        let bbr = &flow.controller;
        let rate = bbr.bandwidth.scaled(gain * PACING_MARGIN);
        assert_eq!(bbr.pacing(&flow.rtt).rate, rate);
    }
    // UP permits two datagrams more than its gain gives.
    let floor = |flow: &Flow<Bbr>| flow.controller.in_flight_at(Bandwidth::ZERO, 1.0);
    assert_eq!(floor(&flow), 4 * SIZE);
    flow.run_to(Phase::ProbeBandwidthUp, secs(8));
    assert_eq!(floor(&flow), 6 * SIZE);
}

#[test]
fn a7_up_does_not_end_while_application_limited_without_loss() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthRefill, secs(4));
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(2_000_000));
    // Earlier packets are not application-limited.
    flow.run_to(Phase::ProbeBandwidthUp, secs(1));
    flow.controller.full_pipe.restart(Bandwidth::ZERO);
    let entered = flow.phases.len();
    for _ in 0..10 {
        flow.postpone_probe_rtt();
        flow.run(secs(4));
    }
    assert_eq!(flow.phases.len(), entered, "{:?}", flow.phases);
}

#[test]
fn a8_down_ends_when_in_flight_fits_the_path() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthUp, secs(4));
    flow.run_to(Phase::ProbeBandwidthDown, secs(1));
    let bbr = &flow.controller;
    assert!(flow.in_flight > bbr.in_flight_at(bbr.max_bandwidth.value(), 1.0));
    flow.run_to(Phase::ProbeBandwidthCruise, secs(1));
    let bbr = &flow.controller;
    assert!(flow.in_flight <= bbr.in_flight_at(bbr.max_bandwidth.value(), 1.0));
    assert!(flow.in_flight <= bbr.in_flight_with_headroom());
}

#[test]
fn a8_down_leaves_headroom_below_the_longterm_bound() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthUp, secs(4));
    flow.controller.bounds.in_flight_longterm = flow.path.bdp();
    flow.run_to(Phase::ProbeBandwidthCruise, secs(2));
    assert!(flow.in_flight * 100 <= flow.controller.bounds.in_flight_longterm * 85);
    assert_eq!(
        flow.controller.window(),
        flow.controller.in_flight_with_headroom()
    );
}

#[test]
fn a9_down_ends_by_time_and_skips_cruise() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthUp, secs(4));
    flow.run_to(Phase::ProbeBandwidthDown, secs(1));
    let down = flow.now;
    flow.postpone_probe_rtt();
    flow.set_rate(flow.path.rate.scaled(0.8));
    flow.run_to(Phase::ProbeBandwidthRefill, secs(4));
    assert_eq!(
        flow.phases[flow.phases.len() - 2].1,
        Phase::ProbeBandwidthDown
    );
    let wait = flow.now.since(down);
    assert!((secs(2)..ms(3200)).contains(&wait), "{wait:?}");
}

#[test]
fn a10_probe_rtt_comes_after_five_seconds_and_lasts_200_ms() {
    let mut flow = probing(8.0);
    flow.run(secs(1));
    // From now on, the path is longer than ever before.
    flow.path.delay = ms(55);
    flow.run_to(Phase::ProbeRtt, secs(10));
    let entered = flow.now;
    let bdp = flow.controller.bdp();
    flow.run_until(ms(200), |flow| flow.controller.probe_rtt_hold.is_some());
    assert!(flow.in_flight <= bdp / 2);
    assert!(flow.controller.window() <= bdp / 2);
    flow.run_until(secs(1), |flow| flow.phase() != Phase::ProbeRtt);
    assert_eq!(flow.phase(), Phase::ProbeBandwidthCruise);
    assert!(flow.controller.window() > 3 * bdp / 2, "restored");
    let lasted = flow.now.since(entered);
    assert!((ms(200)..ms(400)).contains(&lasted), "{lasted:?}");
    // Not within five seconds from now, but within ten seconds of it the new delay is accepted.
    let left = flow.now;
    flow.run_to(Phase::ProbeRtt, secs(10));
    assert!(flow.now.since(left) > secs(5));
    flow.run(secs(6));
    let believed = flow.controller.min_rtt.value().expect("a minimum");
    assert!((ms(55)..ms(57)).contains(&believed), "{believed:?}");
}

#[test]
fn a10_probe_rtt_costs_little() {
    let mut flow = probing(8.0);
    flow.run(secs(1));
    let rate = flow.run(secs(20));
    assert!(rate > flow.path.rate.scaled(0.96), "{rate}");
    assert!(
        flow.phases
            .iter()
            .filter(|(_, phase)| *phase == Phase::ProbeRtt)
            .count()
            <= 4
    );
}

#[test]
fn a11_probe_rtt_is_skipped_after_idleness() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthCruise, secs(4));
    flow.source = Source::Silent;
    flow.run(secs(6));
    assert_eq!(flow.in_flight, 0);
    // A packet that takes longer than the minimum, so that only idleness can refresh it.
    flow.path.delay = ms(51);
    flow.source = Source::Greedy;
    let phases = flow.phases.len();
    let window = flow.controller.window();
    assert!(flow.run_until(secs(1), |flow| flow.in_flight > 0));
    assert!(flow.controller.is_idle_restart);
    assert_eq!(flow.controller.window(), window);
    assert_eq!(
        flow.controller.pacing_rate,
        flow.controller.bandwidth.scaled(PACING_MARGIN)
    );
    flow.run(ms(150));
    assert!(!flow.controller.is_idle_restart);
    assert!(
        flow.phases[phases..]
            .iter()
            .all(|(_, phase)| *phase != Phase::ProbeRtt)
    );
}

#[test]
fn idle_restart_paces_at_the_estimated_rate_whatever_the_gain() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthUp, secs(4));
    flow.source = Source::Silent;
    flow.run(secs(1));
    assert_eq!((flow.phase(), flow.in_flight), (Phase::ProbeBandwidthUp, 0));
    flow.source = Source::Greedy;
    assert!(flow.run_until(secs(1), |flow| flow.in_flight > 0));
    let bbr = &flow.controller;
    assert_eq!(bbr.pacing_rate, bbr.bandwidth.scaled(PACING_MARGIN));
}

#[test]
fn idle_restart_leaves_probe_rtt_whose_time_is_up() {
    let mut flow = probing(8.0);
    flow.run(secs(1));
    flow.path.delay = ms(55);
    flow.run_to(Phase::ProbeRtt, secs(10));
    flow.run_until(secs(1), |flow| flow.controller.probe_rtt_hold.is_some());
    flow.source = Source::Silent;
    flow.run(ms(180));
    assert_eq!((flow.phase(), flow.in_flight), (Phase::ProbeRtt, 0));
    flow.run(ms(100));
    flow.source = Source::Greedy;
    assert!(flow.run_until(secs(1), |flow| flow.in_flight > 0));
    assert_eq!(flow.phase(), Phase::ProbeBandwidthCruise);
    assert!(flow.controller.window() > flow.path.bdp());
}

#[test]
fn a13_cruise_keeps_the_link_busy_through_aggregated_acks() {
    for millis in [5, 15, 40] {
        let mut flow = flow(Path::new(50_000_000, ms(20), 8.0));
        flow.path.ack_interval = ms(millis);
        flow.run(secs(3));
        let rate = flow.run(secs(3));
        assert!(rate > flow.path.rate.scaled(0.95), "{millis} ms: {rate}");
        let bbr = &flow.controller;
        let extra = bbr.extra_acked.value(&bbr.rounds, true);
        assert!(extra >= flow.path.rate.bytes_in(ms(millis)) / 2, "{extra}");
        assert!(bbr.window() > 2 * flow.path.bdp());
    }
}

#[test]
fn a14_paths_with_a_bdp_below_a_packet_have_a_floor_of_four_packets() {
    // 100 kb/s and 20 ms: a fifth of a packet. With so small a path the link's own time per packet, 96 ms, is most of
    // the round-trip time.
    let mut flow = flow(Path::new(100_000, ms(20), 8.0));
    assert!(flow.run_until(secs(30), |flow| flow.controller.mode.is_probe_bandwidth()));
    let rate = flow.run(secs(20));
    assert!(rate > flow.path.rate.scaled(0.95), "{rate}");
    assert!(flow.controller.window() >= 4 * SIZE);
    assert!(flow.controller.window() <= 8 * SIZE);
    assert!(flow.controller.max_bandwidth.value() <= flow.path.rate.scaled(1.02));
}

#[test]
fn a14_paths_with_a_bdp_below_a_packet_pause_between_probes() {
    // A datagram of 9000 bytes is more than the path holds.
    let mut flow = flow(Path::new(10_000_000, ms(1), 40.0));
    flow.controller.on_mtu(9000);
    flow.run(secs(1));
    assert!(flow.controller.bdp() < 9000);
    let (rounds, phases) = (flow.controller.rounds.count, flow.phases.len());
    flow.run(secs(3));
    let rounds = flow.controller.rounds.count - rounds;
    let probes = flow.phases[phases..]
        .iter()
        .filter(|(_, phase)| *phase == Phase::ProbeBandwidthUp)
        .count();
    // Three or four rounds in DOWN and CRUISE, one in REFILL, and UP till a queue overflows.
    assert!(rounds >= 4 * probes as u64, "{probes} in {rounds}");
}

#[test]
fn window_is_at_least_a_send_quantum_on_any_path() {
    // 10 Gb/s and 10 µs: 12.5 kB, a fifth of the quantum.
    let mut flow = flow(Path::new(10_000_000_000, Duration::from_micros(10), 8.0));
    flow.run(ms(10));
    assert!(flow.controller.mode.is_probe_bandwidth());
    assert_eq!(flow.controller.quantum(), 64 * 1024);
    assert!(flow.controller.window() >= 64 * 1024);
}

#[test]
fn a22_application_limited_refill_does_not_change_the_bandwidth() {
    let mut flow = probing(8.0);
    flow.run_to(Phase::ProbeBandwidthCruise, secs(4));
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(1_000_000));
    // Until everything sent at full rate is acknowledged.
    flow.run(ms(300));
    let known = flow.controller.max_bandwidth.value();
    flow.run_to(Phase::ProbeBandwidthRefill, secs(4));
    flow.run_to(Phase::ProbeBandwidthUp, secs(1));
    assert_eq!(flow.controller.max_bandwidth.value(), known);
    flow.source = Source::Greedy;
    let rate = flow.run(secs(2));
    assert!(rate > flow.path.rate.scaled(0.95), "{rate}");
}

#[test]
fn same_seed_same_behaviour() {
    let run = || {
        let mut flow = flow(Path::new(20_000_000, ms(20), 1.0));
        flow.path.loss = 0.005;
        flow.run(secs(6));
        (flow.phases, flow.delivered, flow.dropped)
    };
    assert_eq!(run(), run());
}
