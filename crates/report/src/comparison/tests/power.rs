//! How many connections an experiment needs.

use super::*;
use crate::statistics::tests_of::{self, MeanPair};

/// Paths whose time in the second arm is this factor of the first's, with noise of mean one.
fn pairs(seed: u64, paths: u64, factor: f64) -> Vec<(f64, f64)> {
    let mut chance = Chance(seed);
    (0..paths)
        .map(|_| {
            let time = 300.0 * (0.5 * chance.normal()).exp();
            (time, time * factor * (0.2 * chance.normal() - 0.02).exp())
        })
        .collect()
}

fn log_of(pairs: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (path, (base, ours)) in pairs.iter().enumerate() {
        for (arm, time) in [("baseline", base), ("new", ours)] {
            let ttlb = (time * 1000.0).round() / 1000.0;
            text += &line(
                &json!({ "arm": arm, "seed": path, "ttlb": ttlb, "content_length": 300_000 }),
            );
        }
    }
    text
}

fn needed(text: &str, change: f64) -> crate::comparison::power::SampleSize {
    let settings = Settings {
        power: Some(change),
        ..quick()
    };
    let comparison = read(text, settings).expect("a report");
    let power = comparison.analysis.power.as_ref().expect("a power");
    power.needed(1, change, 1)
}

/// An experiment of the size that a pilot asks for detects the change in about 80 % of cases.
#[test]
fn the_number_of_connections_detects_the_change_as_often_as_it_says() {
    let pilot = needed(&log_of(&pairs(1, 400, 1.0)), 0.05);
    let connections = pilot.mean_paired.expect("a number");
    assert!((100..2000).contains(&connections), "{pilot:?}");
    let experiments = 300;
    let detected = (0..experiments)
        .filter(|seed| {
            let pairs = pairs(1000 + seed, connections / 2, 1.05);
            let micros = |ms: f64| Some((ms * 1000.0).round() as u64);
            let pairs = pairs
                .into_iter()
                .map(|(base, ours)| (micros(ours), micros(base)));
            let z = tests_of::simultaneous(1);
            MeanPair::paired(pairs).is_some_and(|one| one.change(z).excludes_zero())
        })
        .count();
    // 80 % of 300 are 240; the pilot's own standard error of a few percent comes on top.
    assert!(
        (205..275).contains(&detected),
        "{detected} of {experiments}"
    );
}

#[test]
fn pairs_and_larger_changes_need_fewer_connections() {
    let text = log_of(&pairs(7, 300, 0.9));
    let (small, large) = (needed(&text, 0.05), needed(&text, 0.2));
    assert!(small.median_paired < small.median_unpaired && small.mean_paired < small.mean_unpaired);
    assert!(large.mean_paired < small.mean_paired && large.median_unpaired < small.median_unpaired);
    // (ln 1.2 / ln 1.05)² is 13.96.
    let ratio = small.mean_unpaired.expect("a number") as f64
        / large.mean_unpaired.expect("a number") as f64;
    assert!((13.5..14.5).contains(&ratio), "{ratio}");
}

#[test]
fn the_numbers_are_labelled_and_optional() {
    let text = log_of(&pairs(3, 100, 1.0));
    let silent = read(&text, quick()).expect("a report");
    assert!(silent.power().is_empty() && !silent.html().contains("Connections needed"));
    let settings = Settings {
        power: Some(0.1),
        ..quick()
    };
    let comparison = read(&text, settings).expect("a report");
    let sentence = &comparison.power()[0];
    assert!(
        sentence.starts_with("new: connections to detect a change of +10.0\u{a0}% with a probability of 80\u{a0}%: median "),
        "{sentence}"
    );
    assert!(sentence.contains(" paired, ") && sentence.contains(" unpaired; mean "));
    assert!(comparison.html().contains("Connections needed"));
    let json: Value = serde_json::from_str(&comparison.json()).expect("JSON");
    assert!(json["connections_needed"][0]["median_paired"].is_u64());
}
