//! The summary that `ab` prints: times and losses by arm, and the queries behind them.

use std::{ops::ControlFlow, path::Path};

use lastbyte_query::{Input, Options, Query, Value};
use lastbyte_report::comparison::{Metric, Summary};
use lastbyte_scenario::experiment::Experiment;
use serde_json::json;

use crate::{commands::summary::table, failure::Failure, files};

/// Number of connections and of complete ones, by arm.
const COUNTS: &str = r#"group_by(_["arm"]) { |r| [count(), count_if(r["complete"])] }"#;
/// Times to last byte, by arm; incomplete transfers count as slower than all complete ones, as on the page.
const TIMES: &str =
    r#"group_by(_["arm"]) { |r| percentile(r["ttlb"] || 1e12, [0.25, 0.5, 0.75, 0.95]) }"#;
/// Stands for the time of an incomplete transfer.
const NEVER_MS: f64 = 1e12;
/// The share of packets lost, in percent, by arm.
const LOSSES: &str = r#"select((_["num-packets.sent"] || 0) > 0) >> [_["arm"], 100.0 * _["num-packets.lost"] / _["num-packets.sent"]] >> group_by(_[0]) { |r| [average(r[1]), percentile(r[1], [0.5, 0.9, 0.99])] }"#;

/// The result of a query on the log, by arm.
fn run_query(query: &str, log: &Path) -> Result<Vec<(String, Value)>, Failure> {
    let mut by_arm = Vec::new();
    for_each(query, log, |row| {
        if let [Value::Object(members)] = row {
            by_arm.clone_from(members);
        }
    })?;
    Ok(by_arm)
}

/// Takes the rows of a query on the log.
fn for_each(query: &str, log: &Path, mut take: impl FnMut(&[Value]) + Send) -> Result<(), Failure> {
    let query = Query::compile(query, &[], Options::default()).map_err(Failure::run)?;
    let path = log.to_owned();
    let input = Input::new(log.display().to_string(), move || files::open(&path));
    let outcome = query.for_each(vec![input], |row| {
        take(row);
        ControlFlow::Continue(())
    });
    outcome.into_result().map_err(Failure::run)
}

/// Whether a log has a connection of this seed, and one of its seeds.
pub(super) fn seeds(log: &Path, seed: u64) -> Result<(bool, Option<u64>), Failure> {
    let query = format!(r#"[count_if(_["seed"] == {seed}), max(_["seed"])]"#);
    let mut found = (false, None);
    for_each(&query, log, |row| {
        if let [count, other] = row {
            let other = other.as_i64().and_then(|seed| u64::try_from(seed).ok());
            found = (count.as_i64() > Some(0), other);
        }
    })?;
    Ok(found)
}

/// The summaries of the arms, in the order of the experiment.
fn summaries(experiment: &Experiment, log: &Path) -> Result<Vec<Summary>, Failure> {
    let (counts, times, losses) = (
        run_query(COUNTS, log)?,
        run_query(TIMES, log)?,
        run_query(LOSSES, log)?,
    );
    let summary_of = |name: &String| {
        let of = |by_arm: &[(String, Value)], path: &[usize]| {
            let (_, value) = by_arm.iter().find(|(arm, _)| arm == name)?;
            let mut path = path.iter();
            let value = path.try_fold(value, |value, index| value.as_array()?.get(*index));
            value?.as_f64()
        };
        let count = |place: usize| of(&counts, &[place]).unwrap_or(0.0) as u64;
        Summary {
            arm: name.clone(),
            connections: count(0),
            completed: count(1),
            ttlb_ms: [0, 1, 2, 3].map(|place| of(&times, &[place]).filter(|ttlb| *ttlb < NEVER_MS)),
            loss_percent: [&[0][..], &[1, 0], &[1, 1], &[1, 2]].map(|path| of(&losses, path)),
        }
    };
    let arms = experiment.arms.iter();
    Ok(arms.map(|arm| summary_of(&arm.name)).collect())
}

pub(super) fn summary(experiment: &Experiment, log: &Path) -> Result<String, Failure> {
    Ok(table(
        &summaries(experiment, log)?,
        experiment.baseline,
        &Metric::default(),
    ))
}

/// The output of `--json`, which docs/ab.md describes.
pub(super) fn summary_json(
    experiment: &Experiment,
    log: &Path,
    page: Option<&str>,
) -> Result<String, Failure> {
    let summaries = summaries(experiment, log)?;
    let arms = summaries.iter().map(|arm| {
        let [p25, p50, p75, p95] = arm.ttlb_ms;
        let [mean, loss_p50, loss_p90, loss_p99] = arm.loss_percent;
        json!({
            "arm": arm.arm,
            "connections": arm.connections,
            "complete": arm.completed,
            "ttlb_ms": { "p25": p25, "p50": p50, "p75": p75, "p95": p95 },
            "loss_percent": { "mean": mean, "p50": loss_p50, "p90": loss_p90, "p99": loss_p99 },
        })
    });
    let summary = json!({
        "experiment": experiment.name,
        "baseline": experiment.arms.get(experiment.baseline).map(|arm| &arm.name),
        "seed": experiment.seed,
        "log": log.display().to_string(),
        "report": page,
        "arms": arms.collect::<Vec<_>>(),
    });
    Ok(format!("{summary:#}\n"))
}

/// The queries, for the user to repeat.
pub(super) fn queries(experiment: &Experiment, log: &Path) -> String {
    let mut text = format!(
        "\nTTLB: from the request to the last acknowledgment, in ms, with the change against {}. Queries behind the table:\n",
        experiment
            .arms
            .get(experiment.baseline)
            .map_or("the first arm", |arm| &arm.name)
    );
    for query in [COUNTS, TIMES, LOSSES] {
        text.push_str("  lastbyte query '");
        text.push_str(query);
        text.push_str("' ");
        text.push_str(&log.display().to_string());
        text.push('\n');
    }
    text
}
