//! What `ab` prints at the end: a table of times and losses by arm, and the queries that it comes from.

use std::path::Path;

use lastbyte_query::{Format, Input, Options, Query};
use lastbyte_report::comparison::Summary;
use lastbyte_sim::experiment::Experiment;

use crate::{commands::summary::table, failure::Failure, files};

/// How many connections and how many complete ones, by arm.
const COUNTS: &str = r#"group_by(_["arm"]) { |r| [count(), count_if(r["complete"])] }"#;
/// Times to last byte, by arm; what never ended is slower than all that did, as on the page.
const TIMES: &str =
    r#"group_by(_["arm"]) { |r| percentile(r["ttlb"] || 1e12, [0.25, 0.5, 0.75, 0.95]) }"#;
/// What stands for the time of what never ended.
const NEVER_MS: f64 = 1e12;
/// The share of packets lost, in percent, by arm.
const LOSSES: &str = r#"select((_["num-packets.sent"] || 0) > 0) >> [_["arm"], 100.0 * _["num-packets.lost"] / _["num-packets.sent"]] >> group_by(_[0]) { |r| [average(r[1]), percentile(r[1], [0.5, 0.9, 0.99])] }"#;

/// What a query says about the log.
fn ask(query: &str, log: &Path) -> Result<serde_json::Value, Failure> {
    let options = Options {
        format: Format::Json,
        ..Options::default()
    };
    let query = Query::compile(query, &[], options).map_err(Failure::run)?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let path = log.to_owned();
    let input = Input::new(log.display().to_string(), move || files::open(&path));
    if !query.run(vec![input], &mut out, &mut err) {
        return Err(Failure::Run(
            String::from_utf8_lossy(&err).trim().to_owned(),
        ));
    }
    if out.is_empty() {
        return Ok(serde_json::Value::Null);
    }
    serde_json::from_slice(&out).map_err(Failure::run)
}

fn number(value: &serde_json::Value, path: &[usize]) -> Option<f64> {
    let mut value = value;
    for index in path {
        value = value.get(index)?;
    }
    value.as_f64()
}

pub(super) fn summary(experiment: &Experiment, log: &Path) -> Result<String, Failure> {
    let (counts, times, losses) = (ask(COUNTS, log)?, ask(TIMES, log)?, ask(LOSSES, log)?);
    let arms: Vec<Summary> = experiment
        .arms
        .iter()
        .map(|arm| {
            let of =
                |values: &serde_json::Value, path: &[usize]| number(values.get(&arm.name)?, path);
            let count = |place: usize| of(&counts, &[place]).unwrap_or(0.0) as u64;
            Summary {
                arm: arm.name.clone(),
                connections: count(0),
                completed: count(1),
                ttlb_ms: [0, 1, 2, 3]
                    .map(|place| of(&times, &[place]).filter(|ttlb| *ttlb < NEVER_MS)),
                loss_percent: [&[0][..], &[1, 0], &[1, 1], &[1, 2]].map(|path| of(&losses, path)),
            }
        })
        .collect();
    Ok(table(&arms, experiment.baseline))
}

pub(super) fn summary_json(
    experiment: &Experiment,
    log: &Path,
    page: Option<&str>,
) -> Result<String, Failure> {
    let summary = serde_json::json!({
        "experiment": experiment.name,
        "baseline": experiment.arms.get(experiment.baseline).map(|arm| &arm.name),
        "log": log.display().to_string(),
        "report": page,
        "connections": ask(COUNTS, log)?,
        "ttlb_ms_p25_p50_p75_p95": ask(TIMES, log)?,
        "loss_percent_average_and_p50_p90_p99": ask(LOSSES, log)?,
    });
    Ok(format!("{summary:#}\n"))
}

/// How to ask again.
pub(super) fn queries(experiment: &Experiment, log: &Path) -> String {
    let mut text = format!(
        "\nTTLB is from request to last acknowledgment, in ms, and its change against {}. The log, and what was asked of it:\n",
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
