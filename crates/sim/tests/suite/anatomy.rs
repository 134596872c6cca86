//! Breakdown of a transfer's time: the parts add up, and each scenario shows in its part.

use core::time::Duration;

use lastbyte_link as link;
use lastbyte_quic::anatomy::Anatomy;
use lastbyte_scenario::{Request, Scenario, experiment::Experiment};
use lastbyte_sim::{Outcome, simulate};
use lastbyte_units::SplitMix64;

use crate::paths::{bottleneck, run, transfer};

/// The parts of the first flow's transfer, and the time that they have to add up to; `None` if it was not completed.
fn anatomy(outcome: &Outcome) -> Option<(Anatomy, Duration)> {
    let server = outcome.flows[0].server.as_ref()?;
    let (request, end) = server.requested_at.zip(server.acked_at)?;
    Some((server.snapshot.anatomy()?, end.since(request)))
}

fn adds_up(outcome: &Outcome, what: &str) -> bool {
    let Some((parts, ttlb)) = anatomy(outcome) else {
        return false;
    };
    let difference = parts.transfer().abs_diff(ttlb);
    assert!(
        difference < Duration::from_millis(1),
        "{what}: {parts:?} is not {ttlb:?}"
    );
    true
}

#[test]
fn parts_add_up_to_the_ttlb_over_the_population() {
    let experiment = Experiment::four_arms();
    let mut complete = 0;
    for index in 0..100 {
        let plan = experiment.connection(index, true);
        let outcome = simulate(&experiment.scenario(&plan), &mut ()).expect("a scenario");
        complete += u32::from(adds_up(&outcome, &format!("connection {index}")));
    }
    assert!(complete > 90, "{complete}");
}

#[test]
fn parts_add_up_to_the_ttlb_in_any_scenario() {
    let specs = [
        "slow-start",
        "rapid-start",
        "jumpstart",
        "bbr",
        "hystart",
        "newreno",
    ];
    let mut complete = 0;
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let mut below = |limit: u64| random.number() % limit;
        let (mbit, rtt, queue) = (1 + below(200), 1 + below(300), 1 + below(200));
        let mut path = bottleneck(mbit, rtt, queue);
        path.down.loss = vec![link::Loss::Bernoulli(below(6) as f64 / 100.0)];
        path.up.loss = vec![link::Loss::Bernoulli(below(3) as f64 / 100.0)];
        let spec = specs[below(specs.len() as u64) as usize];
        let mut scenario = transfer(path, spec, 1 + below(1_500_000));
        scenario.seed = seed;
        let what = format!("{seed}: {spec} over {mbit} Mb/s, {rtt} ms, queue {queue} ms");
        complete += u32::from(adds_up(&run(&scenario), &what));
    }
    assert!(complete > 55, "{complete}");
}

fn parts(scenario: &Scenario) -> (Anatomy, f64) {
    let (parts, ttlb) = anatomy(&run(scenario)).expect("a complete transfer");
    (parts, ttlb.as_secs_f64())
}

/// A share of the time to last byte.
fn share(part: Duration, ttlb: f64) -> f64 {
    part.as_secs_f64() / ttlb
}

/// What an overshoot lost is sent again for longer than the recovery period, and nothing else is waited for.
#[test]
fn data_that_is_sent_again_is_no_wait_for_the_last_acknowledgment() {
    let (parts, ttlb) = parts(&transfer(bottleneck(55, 39, 50), "rapid-start", 1_600_000));
    assert!(parts.last_ack.as_millis() < 60, "{parts:?}");
    assert!(share(parts.repair, ttlb) > 0.4, "{parts:?}");
}

#[test]
fn small_windows_on_a_fast_path_leave_it_idle() {
    let of = |spec: &str| parts(&transfer(bottleneck(100, 100, 200), spec, 400_000));
    let (slow, slow_ttlb) = of("slow-start");
    let (rapid, rapid_ttlb) = of("rapid-start");
    assert!(share(slow.idle, slow_ttlb) > 0.3, "{slow:?}");
    assert!(
        rapid.idle + Duration::from_millis(50) < slow.idle,
        "{rapid:?} {slow:?}"
    );
    assert!(rapid_ttlb < slow_ttlb);
    for parts in [slow, rapid] {
        assert_eq!(parts.repair, Duration::ZERO);
        // A round trip after the last byte, and the queueing delay of that byte.
        assert!(
            (100..130).contains(&parts.last_ack.as_millis()),
            "{parts:?}"
        );
        // The client's first flight, and its answer.
        assert!(
            (90..130).contains(&parts.handshake.as_millis()),
            "{parts:?}"
        );
    }
}

#[test]
fn large_windows_on_a_slow_path_wait_in_its_queue() {
    let (parts, ttlb) = parts(&transfer(bottleneck(10, 20, 3000), "slow-start", 1_500_000));
    assert!(share(parts.queueing, ttlb) > 0.4, "{parts:?}");
    assert_eq!(parts.repair, Duration::ZERO);
}

#[test]
fn paced_flights_wait_for_the_pacer() {
    let (parts, ttlb) = parts(&transfer(bottleneck(100, 100, 200), "rapid-start", 400_000));
    assert!(share(parts.pacing, ttlb) > 0.1, "{parts:?}");
}

#[test]
fn loss_is_repaired() {
    let mut path = bottleneck(50, 50, 100);
    let clean = parts(&transfer(path.clone(), "slow-start", 500_000)).0;
    path.down.loss = vec![link::Loss::Bernoulli(0.03)];
    let (lossy, ttlb) = parts(&transfer(path, "slow-start", 500_000));
    assert_eq!(clean.repair, Duration::ZERO);
    assert!(share(lossy.repair, ttlb) > 0.1, "{lossy:?}");
}

/// A client whose window stays at `window` bytes, far below the bandwidth-delay product of the path.
fn small_window(window: u64, size: u64) -> Scenario {
    let mut scenario = transfer(bottleneck(1000, 100, 1000), "rapid-start", size);
    scenario.transport.stream_window = window;
    scenario.transport.has_fixed_windows = true;
    scenario
}

/// Another request of the first flow, this long after the response before.
fn add_request(scenario: &mut Scenario, size: u64, pause: Duration) {
    scenario.flows[0].requests.push(Request {
        pause,
        ..Request::of(size)
    });
}

#[test]
fn a_small_window_of_the_client_is_flow_control() {
    let (parts, ttlb) = parts(&small_window(20_000, 1_000_000));
    assert!(share(parts.flow_control, ttlb) > 0.95, "{parts:?}");
    assert_eq!(parts.application, Duration::ZERO, "{parts:?}");
}

#[test]
fn pauses_of_the_client_are_the_application() {
    let mut scenario = transfer(bottleneck(100, 100, 200), "rapid-start", 50_000);
    let pause = Duration::from_secs(1);
    add_request(&mut scenario, 50_000, pause);
    let (parts, _) = parts(&scenario);
    assert!(parts.application >= pause, "{parts:?}");
    assert_eq!(parts.flow_control, Duration::ZERO, "{parts:?}");
}

#[test]
fn flow_control_and_application_are_apart_in_one_transfer() {
    let mut scenario = small_window(20_000, 200_000);
    let pause = Duration::from_secs(1);
    add_request(&mut scenario, 200_000, pause);
    assert!(adds_up(&run(&scenario), "both"));
    let (parts, _) = parts(&scenario);
    // The pause, the round trip before the second request's first byte, and no more.
    let most = pause + Duration::from_millis(250);
    assert!((pause..most).contains(&parts.application), "{parts:?}");
    // Nine round trips of each response.
    assert!(
        parts.flow_control > Duration::from_millis(1700),
        "{parts:?}"
    );
}

#[test]
fn a_large_window_of_the_client_is_never_flow_control() {
    for spec in ["slow-start", "rapid-start", "bbr"] {
        let (parts, _) = parts(&transfer(bottleneck(50, 50, 100), spec, 1_000_000));
        assert_eq!(parts.flow_control, Duration::ZERO, "{spec}: {parts:?}");
    }
}
