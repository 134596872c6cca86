//! Loss, undo, persistent congestion and CE: Appendix A.6, A.17 to A.19, A.21.

use super::{
    ms,
    path::{Flow, Path, Policer, SIZE, Source, flow},
    secs,
};
use crate::{
    Bandwidth, Bbr, Controller, EcnCe, Phase, Receipt,
    bbr::model::{UNBOUNDED, scale},
};

/// A flow of 20 Mb/s and 50 ms, in this phase of its first cycle.
fn flow_in(phase: Phase, queue_bdps: f64) -> Flow<Bbr> {
    let mut flow = flow(Path::new(20_000_000, ms(50), queue_bdps));
    flow.run_to(phase, secs(5));
    flow
}

#[test]
fn a6_loss_ends_up_while_application_limited() {
    let mut flow = flow_in(Phase::ProbeBandwidthRefill, 8.0);
    flow.source = Source::Steady(Bandwidth::from_bits_per_second(5_000_000));
    flow.run_to(Phase::ProbeBandwidthUp, secs(1));
    flow.run(ms(120));
    assert_eq!(flow.phase(), Phase::ProbeBandwidthUp);
    flow.path.loss = 0.2;
    // DOWN may end with the same ACK, since so little is in flight.
    assert!(flow.run_until(ms(300), |flow| flow.phase() != Phase::ProbeBandwidthUp));
    // The lost packets were application-limited: they say nothing about the capacity of the path.
    assert_eq!(flow.controller.bounds.in_flight_longterm, UNBOUNDED);
    assert!(flow.controller.cycle.is_previous_too_high);
}

#[test]
fn a21_loss_ends_up_and_bounds_bytes_in_flight() {
    // A queue of a fifth of what the path holds: probing with a quarter more overflows it.
    let mut flow = flow_in(Phase::ProbeBandwidthUp, 0.2);
    let dropped = flow.dropped;
    flow.run_to(Phase::ProbeBandwidthDown, secs(1));
    assert!(flow.dropped > dropped);
    let bbr = &flow.controller;
    assert!(bbr.cycle.is_previous_too_high);
    let (bdp, longterm) = (flow.path.bdp(), bbr.bounds.in_flight_longterm);
    assert!(longterm >= scale(bdp, 0.7), "{longterm}");
    assert!(longterm <= scale(bdp, 1.3), "{longterm} of {bdp}");
}

#[test]
fn probe_after_loss_is_precautionary_and_then_repeated_in_full() {
    let mut flow = flow_in(Phase::ProbeBandwidthUp, 0.2);
    flow.run_to(Phase::ProbeBandwidthDown, secs(1));
    assert!(flow.controller.cycle.is_previous_too_high);
    // The queue grows: what was too much no longer is.
    flow.path.queue_bytes *= 20;
    flow.postpone_probe_rtt();
    flow.run_to(Phase::ProbeBandwidthUp, secs(4));
    let start = flow.now;
    let longterm = flow.controller.bounds.in_flight_longterm;
    flow.run_to(Phase::ProbeBandwidthDown, secs(1));
    // It stopped at the bound without loss, and so continues with a full probe at once.
    assert!(flow.now.since(start) < ms(120));
    assert!(flow.in_flight <= longterm);
    flow.run_to(Phase::ProbeBandwidthUp, ms(400));
    let start = flow.now;
    flow.run_to(Phase::ProbeBandwidthDown, secs(2));
    assert!(flow.now.since(start) > ms(150));
    assert!(flow.controller.bounds.in_flight_longterm > longterm);
}

#[test]
fn shallow_queue_keeps_the_link_busy_with_few_losses() {
    let mut flow = flow_in(Phase::ProbeBandwidthUp, 0.2);
    let (dropped, sent) = (flow.dropped, flow.sent);
    let rate = flow.run(secs(20));
    assert!(rate > flow.path.rate.scaled(0.85), "{rate}");
    let loss = (flow.dropped - dropped) as f64 / (flow.sent - sent) as f64;
    assert!(loss < 0.02, "{loss}");
}

#[test]
fn random_loss_of_one_percent_costs_little() {
    let mut flow = flow(Path::new(20_000_000, ms(40), 2.0));
    flow.path.loss = 0.01;
    flow.run(secs(5));
    let rate = flow.run(secs(20));
    // Between probes, the rate decreases with what is delivered, by loss and by the pacing margin, a round at a time;
    // the probe restores it (§5.3.3.8.3).
    assert!(rate > flow.path.rate.scaled(0.75), "{rate}");
}

#[test]
fn loss_in_cruise_lowers_the_shortterm_bounds_once_per_round() {
    let mut flow = flow_in(Phase::ProbeBandwidthCruise, 8.0);
    flow.run(ms(300));
    let (known, window) = (
        flow.controller.max_bandwidth.value(),
        flow.controller.window(),
    );
    assert!(flow.controller.bounds.bandwidth_shortterm.is_unlimited());
    flow.path.drop_alternate = 2;
    assert!(flow.run_until(secs(1), |flow| {
        !flow.controller.bounds.bandwidth_shortterm.is_unlimited()
    }));
    let bounds = flow.controller.bounds;
    // One loss hardly reduces the delivery rate, and the bound is no lower than what was delivered.
    assert!(bounds.bandwidth_shortterm > known.scaled(0.9));
    assert!(
        bounds.in_flight_shortterm >= scale(window, 0.7)
            || bounds.in_flight_shortterm >= flow.path.bdp() / 2
    );
    flow.run(ms(300));
    assert_eq!(
        flow.controller.bounds.bandwidth_shortterm,
        bounds.bandwidth_shortterm
    );
    assert_eq!(flow.controller.statistics.loss_episodes, 1);
    // The next probe starts from the long-term model.
    flow.run_to(Phase::ProbeBandwidthRefill, secs(4));
    assert!(flow.controller.bounds.bandwidth_shortterm.is_unlimited());
}

#[test]
fn a17_the_rate_conforms_to_a_policer() {
    let mut flow = flow(Path::new(100_000_000, ms(40), 4.0));
    let rate = Bandwidth::from_bits_per_second(10_000_000);
    flow.path.policer = Some(Policer::new(rate, 100_000));
    flow.run(secs(10));
    let (dropped, sent) = (flow.dropped, flow.sent);
    let delivered = flow.run(secs(20));
    assert!(delivered > rate.scaled(0.8), "{delivered}");
    let loss = (flow.dropped - dropped) as f64 / (flow.sent - sent) as f64;
    assert!(loss < 0.05, "{loss}");
}

#[test]
fn a18_spurious_losses_in_up_are_undone() {
    let mut flow = flow_in(Phase::ProbeBandwidthUp, 8.0);
    flow.run(ms(60));
    flow.path.reorder = Some((40, ms(15)));
    flow.run_to(Phase::ProbeBandwidthDown, ms(200));
    let bbr = &flow.controller;
    assert!(bbr.bounds.in_flight_longterm < UNBOUNDED);
    assert_eq!(bbr.statistics.loss_episodes, 1);
    flow.run_to(Phase::ProbeBandwidthRefill, ms(60));
    let bbr = &flow.controller;
    assert_eq!(bbr.bounds.in_flight_longterm, UNBOUNDED);
    assert!(bbr.bounds.bandwidth_shortterm.is_unlimited());
    assert_eq!(bbr.statistics.episodes_undone, 1);
    assert_eq!(bbr.statistics.episodes_undone_in_startup, 0);
    flow.run_to(Phase::ProbeBandwidthUp, ms(200));
    assert_eq!(flow.dropped, 0);
}

#[test]
fn a18_spurious_losses_in_cruise_are_undone() {
    let mut flow = flow_in(Phase::ProbeBandwidthCruise, 8.0);
    flow.run(ms(300));
    flow.path.reorder = Some((20, ms(15)));
    assert!(
        flow.run_until(secs(1), |flow| flow.controller.statistics.loss_episodes
            == 1)
    );
    assert!(
        flow.run_until(ms(100), |flow| flow.controller.statistics.episodes_undone
            == 1)
    );
    assert!(flow.controller.bounds.bandwidth_shortterm.is_unlimited());
    flow.run(ms(500));
    assert!(flow.controller.bounds.bandwidth_shortterm.is_unlimited());
    assert_eq!(flow.phase(), Phase::ProbeBandwidthCruise);
}

#[test]
fn one_real_loss_among_spurious_ones_is_not_undone() {
    let mut flow = flow_in(Phase::ProbeBandwidthUp, 8.0);
    flow.run(ms(60));
    flow.path.drop_alternate = 2;
    flow.run(ms(1));
    flow.path.reorder = Some((40, ms(15)));
    flow.run(ms(400));
    assert_eq!(flow.dropped, SIZE);
    assert_eq!(flow.controller.statistics.episodes_undone, 0);
    assert!(flow.controller.bounds.in_flight_longterm < UNBOUNDED);
}

#[test]
fn spurious_losses_do_not_end_startup() {
    let mut flow = flow(Path::new(200_000_000, ms(60), 8.0));
    flow.run(ms(310));
    flow.path.reorder = Some((100, ms(20)));
    let undone = |flow: &Flow<Bbr>| flow.controller.statistics.episodes_undone > 0;
    assert!(flow.run_until(ms(200), undone));
    flow.run_to(Phase::Drain, secs(2));
    assert!(flow.controller.full_pipe.is_now, "it was a plateau");
}

#[test]
fn spurious_losses_that_ended_startup_restore_it() {
    let mut flow = flow(Path::new(200_000_000, ms(60), 8.0));
    flow.run(ms(310));
    // All of one round, and so late that the round is over by then.
    flow.path.reorder = Some((100, ms(150)));
    flow.run_to(Phase::Drain, ms(200));
    assert!(!flow.controller.full_pipe.is_now, "it was loss");
    assert!(flow.controller.statistics.startup_exited_at.is_some());
    flow.run_to(Phase::Startup, ms(200));
    let bbr = &flow.controller;
    assert_eq!(bbr.statistics.episodes_undone_in_startup, 1);
    assert_eq!(bbr.statistics.startup_exited_at, None);
    assert!(!bbr.full_pipe.is_reached);
    flow.run_to(Phase::Drain, secs(3));
    let known = flow.controller.max_bandwidth.value();
    assert!(known > flow.path.rate.scaled(0.97), "{known}");
}

#[test]
fn a19_persistent_congestion_lowers_the_window_and_is_undone_if_spurious() {
    let mut flow = flow_in(Phase::ProbeBandwidthCruise, 8.0);
    flow.run(ms(300));
    let window = flow.controller.window();
    let bandwidth = flow.controller.bandwidth;
    flow.lose_all(true);
    let bbr = &flow.controller;
    assert_eq!(bbr.window(), 4 * SIZE);
    assert_eq!(bbr.statistics.persistent_congestions, 1);
    assert_eq!(bbr.statistics.window_min, Some(4 * SIZE));
    // Everything arrives after all.
    flow.run(ms(60));
    let bbr = &flow.controller;
    assert_eq!(bbr.statistics.episodes_undone, 1);
    assert!(bbr.window() >= window);
    flow.run(ms(500));
    assert_eq!(flow.controller.bandwidth, bandwidth);
    assert_eq!(flow.phase(), Phase::ProbeBandwidthCruise);
}

#[test]
fn window_recovers_after_persistent_congestion() {
    let mut flow = flow_in(Phase::ProbeBandwidthCruise, 8.0);
    flow.run(ms(300));
    let window = flow.controller.window();
    flow.path.loss = 1.0;
    flow.run(ms(70));
    flow.lose_all(true);
    assert_eq!(flow.controller.window(), 4 * SIZE);
    flow.path.loss = 0.0;
    // With the first packet that arrives, recovery is over and the window is restored, less the effect of a round with
    // losses.
    flow.run(ms(70));
    assert!(flow.controller.window() >= scale(window, 0.69));
    flow.run(secs(4));
    assert_eq!(flow.controller.statistics.episodes_undone, 0);
    let rate = flow.run(secs(2));
    assert!(rate > flow.path.rate.scaled(0.85), "{rate}");
}

/// Marks arrive with the acknowledgment of this packet.
fn mark(flow: &mut Flow<Bbr>, send_index: u64) {
    flow.controller.on_ecn_ce(&EcnCe {
        now: flow.now,
        newly_marked: 5,
        largest_acked: Receipt::new(send_index),
        in_flight: flow.in_flight,
        rtt: &flow.rtt,
    });
}

#[test]
fn marked_episode_is_not_undone() {
    let mut flow = flow_in(Phase::ProbeBandwidthUp, 8.0);
    flow.run(ms(60));
    flow.path.reorder = Some((40, ms(15)));
    flow.run_to(Phase::ProbeBandwidthDown, ms(200));
    mark(&mut flow, 0);
    flow.run(ms(100));
    let statistics = &flow.controller.statistics;
    assert_eq!((statistics.loss_episodes, statistics.ecn_episodes), (1, 0));
    assert_eq!(statistics.episodes_undone, 0);
    assert!(flow.controller.bounds.in_flight_longterm < UNBOUNDED);
}

#[test]
fn mark_is_a_loss_of_zero_bytes() {
    let mut flow = flow_in(Phase::ProbeBandwidthCruise, 8.0);
    flow.run(ms(300));
    let newest = flow.sent / SIZE;
    mark(&mut flow, newest);
    // Of packets sent before the response: no new event.
    mark(&mut flow, newest - 1);
    let statistics = &flow.controller.statistics;
    assert_eq!((statistics.loss_episodes, statistics.ecn_episodes), (1, 1));
    flow.run(ms(300));
    assert!(!flow.controller.bounds.bandwidth_shortterm.is_unlimited());
    // It does not end a probe, nor change the long-term bound.
    flow.run_to(Phase::ProbeBandwidthUp, secs(4));
    flow.run(ms(60));
    let newest = flow.sent / SIZE;
    mark(&mut flow, newest);
    flow.run(ms(40));
    assert_eq!(flow.phase(), Phase::ProbeBandwidthUp);
    assert_eq!(flow.controller.bounds.in_flight_longterm, UNBOUNDED);
    assert_eq!(flow.controller.statistics.ecn_episodes, 2);
}
