use core::time::Duration;

use lastbyte_congestion::Registry;
use lastbyte_scenario::{Experiment, Neighbour, Path, Plan, Scenario};

use super::*;
use crate::{row::Row, simulate};

const TWO_ARMS: &str = r#"
name = "two"
neighbours = ["cubic", "bbr", "cbr:2mbit", "pages:cubic 300kB 500ms"]
arms = [{ name = "slow", spec = "slow-start" }, { name = "rapid", spec = "rapid-start" }]
"#;

fn observed(scenario: &Scenario, plan: &Plan) -> NeighbourOutcome {
    let mut counter = NeighbourCounter::new(1, plan.draw.neighbour.as_ref());
    simulate(scenario, &mut counter).expect("a scenario");
    counter.outcome().expect("an observation")
}

#[test]
fn each_path_has_a_neighbour_until_the_horizon() {
    let experiment = Experiment::parse(TWO_ARMS).expect("an experiment");
    let mut names = std::collections::BTreeSet::new();
    for index in (0..40).step_by(2) {
        let plans = [0, 1].map(|arm| experiment.connection(index + arm, true));
        let [slow, rapid] = plans.each_ref().map(|plan| {
            let observation = plan.draw.neighbour.as_ref().expect("a neighbour");
            assert_eq!(plan.draw.cross.len(), 1);
            assert!(plan.draw.cross[0].start < plan.draw.start);
            assert_eq!(observation.from, plan.draw.start);
            assert!(
                observation.span() >= plan.draw.facts.rtt * 20
                    || observation.span().as_secs() == 60
            );
            observation.clone()
        });
        assert_eq!(slow, rapid);
        names.insert(slow.name);
    }
    assert_eq!(names.len(), 4);
}

#[test]
fn the_same_seed_gives_the_same_neighbour_and_arms_differ() {
    let experiment = Experiment::parse(TWO_ARMS).expect("an experiment");
    let mut differing = 0;
    for index in 0..16 {
        let plan = experiment.connection(index, true);
        let scenario = experiment.scenario(&plan);
        let first = observed(&scenario, &plan);
        assert_eq!(first, observed(&scenario, &plan));
        if index % 2 == 1 {
            let base = experiment.connection(index - 1, true);
            let base = observed(&experiment.scenario(&base), &base);
            differing += u32::from(base != first);
        }
    }
    assert!(differing > 4, "{differing}");
}

#[test]
fn neither_horizon_nor_counter_changes_the_transfer() {
    let experiment = Experiment::parse(TWO_ARMS).expect("an experiment");
    for index in 0..8 {
        let plan = experiment.connection(index, true);
        let with = experiment.scenario(&plan);
        let without = Scenario {
            horizon: Duration::ZERO,
            ..with.clone()
        };
        let label = crate::row::Label {
            arm: "arm".to_owned(),
            network: "network".to_owned(),
            size_bytes: plan.draw.size_bytes,
            seed: plan.seed,
            handshake: plan.draw.transport.handshake,
        };
        let mut counter = NeighbourCounter::new(1, plan.draw.neighbour.as_ref());
        let observed = simulate(&with, &mut counter).expect("a scenario");
        let unobserved = simulate(&without, &mut ()).expect("a scenario");
        assert!(observed.ended_at >= Time::ZERO + with.horizon);
        assert!(unobserved.ended_at <= observed.ended_at);
        let times = |outcome| {
            let row = Row::all(&label, outcome).remove(0);
            (
                row.ttlb,
                row.packets_sent,
                row.packets_lost,
                row.rtt_min,
                row.window,
            )
        };
        assert_eq!(times(&observed), times(&unobserved));
    }
}

/// A call has the line for itself, so it gets its rate, loses nothing and does not wait.
#[test]
fn a_neighbour_alone_gets_its_rate() {
    let mut path = Path::default();
    path.down.capacity =
        lastbyte_link::Capacity::Constant(lastbyte_link::Rate::from_bits_per_second(20_000_000));
    path.down.delay = Duration::from_millis(10);
    path.up.delay = Duration::from_millis(10);
    let mut scenario = Scenario::transfer(path, "cubic".parse().expect("a preset"), 1000);
    let neighbour = Neighbour::parse("cbr:2mbit", &Registry::builtin()).expect("a neighbour");
    scenario.cross = vec![neighbour.kind.into()];
    scenario.flows[0].start = Duration::from_secs(5);
    scenario.horizon = Duration::from_secs(4);
    let observation = Observation {
        name: neighbour.name,
        from: Duration::from_secs(1),
        until: Duration::from_secs(4),
    };
    let mut counter = NeighbourCounter::new(1, Some(&observation));
    simulate(&scenario, &mut counter).expect("a scenario");
    let outcome = counter.outcome().expect("an observation");
    let bits = outcome.delivered_bytes * 8 / 3;
    assert!((1_990_000..=2_010_000).contains(&bits), "{bits}");
    assert_eq!(
        (outcome.lost, outcome.loss(), outcome.waited),
        (0, Some(0.0), Duration::ZERO)
    );
}

#[test]
fn nothing_is_counted_without_an_observation() {
    let counter = NeighbourCounter::new(1, None);
    assert!(!counter.wants_link_events() && counter.outcome().is_none());
    assert_eq!(NeighbourOutcome::default().loss(), None);
    assert_eq!(NeighbourOutcome::default().delay(), None);
}

#[test]
fn errors_name_what_is_wrong() {
    let registry = Registry::builtin();
    let error = |text| {
        Neighbour::parse(text, &registry)
            .expect_err(text)
            .to_string()
    };
    assert_eq!(
        error("stack:cubic"),
        "`stack:cubic` (expected a neighbour without `stack:`)"
    );
    assert!(error("cubik").contains("cubic"));
    assert!(error("cubic rtt 5ms").contains("`rtt`"));
    let file = |line: &str| {
        let text = TWO_ARMS.replace("name = \"two\"", &format!("name = \"two\"\n{line}"));
        Experiment::parse(&text).expect_err(line).to_string()
    };
    assert_eq!(
        file("horizon = \"0s\""),
        "`horizon`: 0ms (expected a span above zero, 600s at most)"
    );
    let none = TWO_ARMS.replace("neighbours = [\"cubic\"", "neighbours = [\"cubik\"");
    assert!(
        Experiment::parse(&none)
            .expect_err("no spec")
            .to_string()
            .starts_with("`neighbours`: ")
    );
}
