//! The example of an algorithm: it runs, is faster than CUBIC where nothing is in its way, and fits an experiment file.

use lastbyte_scenario::Experiment;
use lastbyte_sim::simulate;

use crate::paths::{bottleneck, run, transfer, ttlb_ms};

#[expect(dead_code, reason = "the example's main prints what is asserted here")]
#[path = "../../examples/algorithm.rs"]
mod example;

#[test]
fn the_example_startup_is_faster_than_cubic_and_its_key_counts() {
    let registry = example::registry().expect("free names");
    let [cubic, surge, cautious] = ["cubic", "surge", "surge:patience=0"].map(|spec| {
        let mut scenario = transfer(bottleneck(55, 39, 50), "cubic", 400_000);
        scenario.flows[0].congestion = registry.parse(spec).expect("a spec");
        ttlb_ms(&run(&scenario))
    });
    assert!(surge < cubic, "{surge} {cubic}");
    assert!(surge < cautious, "{surge} {cautious}");
}

#[test]
fn the_example_experiment_runs_with_the_example_registry_only() {
    let text = include_str!("../../../lastbyte/examples/plugin.toml");
    let registry = example::registry().expect("free names");
    let experiment = Experiment::parse_with(text, &registry, &mut |name| Err(name.to_owned()))
        .expect("an experiment");
    for index in 0..experiment.arms.len() as u64 {
        let plan = experiment.connection(index, true);
        let outcome = simulate(&experiment.scenario(&plan), &mut ()).expect("a scenario");
        assert!(
            outcome
                .flows
                .iter()
                .all(lastbyte_sim::FlowOutcome::is_complete)
        );
    }
    let error = Experiment::parse(text).expect_err("`surge` is not built in");
    assert_eq!(error.key, "arms.surge.spec");
}
