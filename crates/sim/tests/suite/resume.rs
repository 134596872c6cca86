//! Careful Resume (RFC 9959) on return visits.

use core::time::Duration;

use lastbyte_congestion::{SavedPath, State};
use lastbyte_scenario::{Scenario, population::Population};
use lastbyte_sim::{Outcome, simulate};

use crate::paths::{bottleneck, logged, lost, run, transfer, ttlb_ms};

fn visit(mut scenario: Scenario, window: u64, rtt_ms: u64) -> Outcome {
    scenario.transport.saved_path = Some(SavedPath {
        window,
        rtt: Duration::from_millis(rtt_ms),
    });
    run(&scenario)
}

fn congestion(outcome: &Outcome) -> &State {
    &outcome.flows[0]
        .server
        .as_ref()
        .expect("a server")
        .congestion
}

#[test]
fn a_return_visit_over_a_satellite_is_much_faster_and_loses_nothing() {
    // 50 Mb/s and 600 ms: 3.75 MB.
    let scenario = || transfer(bottleneck(50, 600, 300), "careful-resume", 1_600_000);
    let (first, again) = (run(&scenario()), visit(scenario(), 3_750_000, 600));
    assert_eq!(congestion(&first).statistics.jump_window, None);
    assert_eq!(congestion(&again).statistics.jump_window, Some(1_875_000));
    assert_eq!((lost(&first), lost(&again)), (0, 0));
    let keys = [
        "jumpstart.prev-rate",
        "jumpstart.prev-rtt",
        "jumpstart.cwnd",
    ];
    assert_eq!(keys.map(|key| logged(&first, 0, key)), [0; 3]);
    let expected = [6_250_000, 600, 1_875_000];
    assert_eq!(keys.map(|key| logged(&again, 0, key)), expected);
    let ratio = ttlb_ms(&again) / ttlb_ms(&first);
    assert!(ratio < 0.75, "{ratio}");
}

#[test]
fn a_slower_path_of_the_same_round_trip_costs_less_than_the_jump() {
    // Saved at 100 Mb/s, now 10 Mb/s: half of the saved window is five times the path's product.
    for size in [400_000, 1_600_000] {
        let scenario = |spec| transfer(bottleneck(10, 100, 100), spec, size);
        let (cubic, resumed) = (
            run(&scenario("cubic")),
            visit(scenario("careful-resume"), 1_250_000, 100),
        );
        let statistics = &congestion(&resumed).statistics;
        assert_eq!(statistics.jump_window, Some(625_000));
        // Safe Retreat: half of what was delivered, of the path and its queue, 250 kB, and of what was acknowledged before.
        let smallest = statistics.window_min.expect("a retreat");
        assert!(smallest <= 160_000, "{size}: {smallest}");
        assert!(
            lost(&resumed) * 1280 <= 625_000,
            "{size}: {}",
            lost(&resumed)
        );
        let ratio = ttlb_ms(&resumed) / ttlb_ms(&cubic);
        assert!(ratio < 1.3, "{size}: {ratio}");
    }
}

#[test]
fn a_round_trip_of_another_path_or_a_preset_without_resume_does_not_jump() {
    for (spec, rtt_ms, jumps) in [
        ("careful-resume", 100, true),
        ("careful-resume", 240, false),
        ("careful-resume", 5, false),
        ("cubic", 100, false),
        ("rapid-start:resume=on", 100, true),
    ] {
        let outcome = visit(
            transfer(bottleneck(100, 100, 100), spec, 800_000),
            1_000_000,
            rtt_ms,
        );
        let jump = congestion(&outcome).statistics.jump_window;
        let expected = if jumps { Some(500_000) } else { None };
        assert_eq!(jump, expected, "{spec} {rtt_ms}");
    }
}

#[test]
fn no_saved_window_leads_to_more_than_the_largest_jump() {
    let scenario = transfer(
        bottleneck(100, 100, 100),
        "careful-resume:resume-max=300kB",
        2_000_000,
    );
    let outcome = visit(scenario, u64::MAX, 100);
    let statistics = &congestion(&outcome).statistics;
    assert_eq!(statistics.jump_window, Some(300_000));
    assert!(statistics.window_max < 2_000_000);
}

#[test]
fn a_server_that_resumes_issues_a_few_tokens_more() {
    let tokens = |spec: &str| {
        let outcome = run(&transfer(bottleneck(200, 100, 100), spec, 20_000_000));
        logged(&outcome, 0, "num-frames-sent.new_token")
    };
    assert_eq!(tokens("cubic"), 1);
    // From four initial windows (154 kB) to the path's product (2.5 MB), by doubling.
    let resuming = tokens("careful-resume");
    assert!((3..=7).contains(&resuming), "{resuming}");
}

#[test]
fn a_population_has_return_visits_some_over_another_path() {
    let text = lastbyte_scenario::population::DEFAULT.replace(
        "ecn-share = 0\n",
        "ecn-share = 0\nreturns = { share = 0.6, changed = 0.25, used = \"uniform 50% 100%\" }\n",
    );
    let population = Population::parse(&text).expect("a population");
    let default = Population::parse(lastbyte_scenario::population::DEFAULT).expect("a population");
    let (mut returns, mut same) = (0.0, 0.0);
    for seed in 0..4000 {
        let draw = population.draw(seed);
        let other = default.draw(seed);
        assert_eq!(draw.facts, other.facts, "nothing else changes");
        assert_eq!(other.transport.saved_path, None);
        let Some(saved) = draw.transport.saved_path else {
            continue;
        };
        returns += 1.0;
        if saved.rtt == draw.facts.rtt {
            same += 1.0;
            let rate = draw.facts.long_term_rate().bits_per_second() as f64 / 8.0;
            let used = saved.window as f64 / (rate * saved.rtt.as_secs_f64());
            assert!((0.49..=1.0).contains(&used), "{seed}: {used}");
        }
    }
    assert!((returns / 4000.0_f64 - 0.6).abs() < 0.03, "{returns}");
    assert!(
        (same / returns - 0.75_f64).abs() < 0.03,
        "{same} of {returns}"
    );
    let scenario = Scenario::transfer(
        population.draw(1).path,
        "careful-resume".parse().expect("a spec"),
        1000,
    );
    assert!(simulate(&scenario, &mut ()).is_ok());
    let bad = text.replace("changed = 0.25", "changed = 2");
    let error = Population::parse(&bad).expect_err("a share").to_string();
    assert!(error.contains("returns.changed"), "{error}");
}

#[test]
fn what_a_server_saves_for_a_later_connection_is_logged() {
    let keys = ["token-sent.rate", "token-sent.rtt", "token-sent.at"];
    let of = |spec| {
        let outcome = run(&transfer(bottleneck(50, 40, 40), spec, 10_000_000));
        keys.map(|key| logged(&outcome, 0, key))
    };
    let [rate, rtt, at] = of("careful-resume");
    assert!((3_000_000..=6_300_000).contains(&rate), "{rate}");
    assert!(
        (40..=42).contains(&rtt) && (80..2000).contains(&at),
        "{rtt} {at}"
    );
    // Without Careful Resume, nothing is saved.
    assert_eq!(of("cubic"), [0; 3]);
}
