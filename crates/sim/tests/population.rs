//! Connections of the default experiment, simulated.

use lastbyte_congestion::Registry;
use lastbyte_scenario::{Experiment, Request, experiment::Plan};
use lastbyte_sim::{FlowOutcome, simulate};

#[test]
fn connections_of_the_four_arms_terminate() {
    let experiment = Experiment::four_arms();
    let mut incomplete = Vec::new();
    for index in 0..240 {
        let plan = experiment.connection(index, false);
        let mut scenario = experiment.scenario(&plan);
        scenario.flows[0].requests = vec![Request::of(plan.draw.size_bytes.min(250_000))];
        let outcome = simulate(&scenario, &mut ()).expect("it can be simulated");
        if !outcome.flows.iter().all(FlowOutcome::is_complete) {
            incomplete.push((index, plan.draw.facts));
        }
    }
    assert!(incomplete.is_empty(), "{incomplete:#?}");
}

#[test]
fn the_example_of_the_documentation_is_a_valid_experiment() {
    let document = include_str!("../../../docs/population.md");
    let example = document.split("```toml\n").nth(1);
    let example = example.and_then(|rest| rest.split("```").next());
    let experiment = Experiment::parse(example.expect("there is an example")).expect("it is one");
    assert_eq!(experiment.population.sites().count(), 2);
    assert_eq!(experiment.population.sweep().changes(), [("queue", 4.0)]);
}

/// A loss burst that starts while only probes are sent must not drop all of them.
#[test]
fn connections_over_poor_paths_terminate() {
    let experiment = Experiment::four_arms();
    for (index, seed) in [
        0xb312_24d4_9eec_a641,
        0x520d_37b0_e6bd_c544,
        0xeaf8_3b12_a963_d2bc,
        0xc2f5_d0bd_2a05_5b3e,
        0x3bd8_75e0_4cdc_de9d,
        0x6738_67a5_2d29_f60a,
    ]
    .into_iter()
    .enumerate()
    {
        let plan = Plan {
            arm: experiment.baseline,
            seed,
            draw: experiment.population.draw(seed),
        };
        let outcome = simulate(&experiment.scenario(&plan), &mut ()).expect("it can be simulated");
        assert!(
            outcome.flows.iter().all(FlowOutcome::is_complete),
            "{index}"
        );
    }
}

#[test]
fn the_same_connection_has_the_same_outcome() {
    let experiment = Experiment::four_arms();
    for index in 0..8 {
        let run = || {
            let scenario = experiment.scenario(&experiment.connection(index, true));
            let outcome = simulate(&scenario, &mut ()).expect("it can be simulated");
            format!("{outcome:?}")
        };
        assert_eq!(run(), run());
    }
}

#[test]
fn the_startups_are_compared_on_the_same_paths_with_what_earlier_visits_saved() {
    let text = include_str!("../../../experiments/startups.toml");
    let experiment = Experiment::parse(text).expect("an experiment");
    let arms = experiment.arms.len() as u64;
    assert!(
        experiment
            .arms
            .iter()
            .any(|arm| arm.name == "careful-resume")
    );
    let mut jumps = 0;
    for index in 0..20 * arms {
        let plan = experiment.connection(index, true);
        assert!(plan.draw.transport.saved_path.is_some());
        if experiment.arms[plan.arm].name != "careful-resume" {
            continue;
        }
        let outcome = simulate(&experiment.scenario(&plan), &mut ()).expect("it can be simulated");
        assert!(
            outcome.flows.iter().all(FlowOutcome::is_complete),
            "{index}"
        );
        let server = outcome.flows[0].server.as_ref().expect("a server");
        let statistics = &server.congestion.statistics;
        assert_eq!(statistics.saved_path, plan.draw.transport.saved_path);
        jumps += u32::from(statistics.jump_window.is_some());
    }
    assert!((5..20).contains(&jumps), "{jumps}");
    let wrong = text.replace("changed = 0.2", "changed = -1");
    let error = Experiment::parse(&wrong).expect_err("a share").to_string();
    assert!(error.contains("returns.changed"), "{error}");
}

#[test]
fn the_arms_of_the_talk_over_its_fitted_population_terminate() {
    let text = include_str!("../../../experiments/four-arms-quicly.toml");
    let population = include_str!("../../../experiments/populations/talk-like.toml");
    let experiment = Experiment::parse_with(text, &Registry::builtin(), &mut |name| {
        assert_eq!(name, "populations/talk-like.toml");
        Ok(population.to_owned())
    })
    .expect("an experiment");
    assert_eq!(experiment.arms.len(), 4);
    let mut drawn = [false; 3];
    for index in 0..120 {
        let plan = experiment.connection(index, true);
        let facts = &plan.draw.facts;
        assert!(!facts.is_poor && facts.has_aqm);
        drawn[0] |= facts.contention.is_some();
        drawn[1] |= facts.wake_up.is_some();
        drawn[2] |= facts.reordering.is_some();
        let outcome = simulate(&experiment.scenario(&plan), &mut ()).expect("it can be simulated");
        assert!(
            outcome.flows.iter().all(FlowOutcome::is_complete),
            "{index}"
        );
    }
    assert_eq!(drawn, [true; 3]);
}
