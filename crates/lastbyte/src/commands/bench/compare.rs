//! `--compare`: the change between the results of two commands, over several runs of each.

use core::fmt::Write as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use lastbyte_load::histogram::{BEYOND_MIN, PRECISION, needed_for};
use lastbyte_report::statistics::{Counts, bootstrap::apart};
use serde_json::Value;

use super::interval::{Change, between, geometric_mean, verdicts};
use crate::{failure::Failure, files};

#[cfg(test)]
mod tests;

const SHARES: [(&str, f64); 5] = [
    ("P50", 0.5),
    ("P75", 0.75),
    ("P90", 0.9),
    ("P99", 0.99),
    ("P99.9", 0.999),
];
const REPLICATES: usize = 2000;
const SEED: u64 = 1;
/// The level of the intervals within a run.
const LEVEL: f64 = 0.05;
/// The most files of a side: each has a histogram in memory.
const FILES_MAX: usize = 1000;

/// The change between the files of the first side and those of the second, as text.
pub(super) fn compare(sides: &[PathBuf]) -> Result<String, Failure> {
    let [before, after] = sides else {
        return Err(Failure::Usage(format!(
            "--compare: {} sides (expected two: FILE[,FILE…] FILE[,FILE…])",
            sides.len()
        )));
    };
    text(&side(before)?, &side(after)?).map_err(Failure::Usage)
}

/// Reads the files of a side, separated by commas.
fn side(given: &Path) -> Result<Vec<Results>, Failure> {
    let name = given.to_string_lossy();
    let paths: Vec<&str> = if given.exists() {
        vec![&name]
    } else {
        name.split(',').collect()
    };
    if paths.len() > FILES_MAX {
        return Err(Failure::Usage(format!(
            "--compare: {} files on a side (expected at most {FILES_MAX})",
            paths.len()
        )));
    }
    let results = paths.into_iter().map(|path| {
        let text = files::read_text(Path::new(path)).map_err(Failure::usage)?;
        let invalid = |what: String| {
            Failure::Usage(format!(
                "`{path}` is not a result of `lastbyte bench --json`: {what}"
            ))
        };
        let value = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        Results::parse(path, value).map_err(|key| invalid(format!("no `{key}`")))
    });
    results.collect()
}

/// The results of a run that are compared.
struct Results {
    path: String,
    value: Value,
    /// Latencies in ns. Requests without a response have no value, and so count as slower than all others.
    latencies: Counts,
    rate: f64,
    total: u64,
    failed: u64,
}

impl Results {
    /// Returns the name of the key that is missing.
    fn parse(path: &str, value: Value) -> Result<Self, &'static str> {
        let number = |pointer: &'static str| {
            let found = value.pointer(pointer).and_then(Value::as_f64);
            found.ok_or(pointer)
        };
        if value["format"].as_u64() != Some(1) {
            return Err("format: 1");
        }
        let buckets = value["latency_histogram"].as_array();
        let mut counts = BTreeMap::new();
        for bucket in buckets.ok_or("latency_histogram")? {
            let pair = (bucket[0].as_f64(), bucket[1].as_u64());
            let (Some(micros), Some(count)) = pair else {
                return Err("latency_histogram");
            };
            *counts.entry((micros * 1000.0).round() as u64).or_insert(0) += count;
        }
        // In a closed loop, the requests in progress at the end are as many as there are streams, and no slower than others.
        let is_open = !value["settings"]["rate"].is_null();
        let unfinished = number("/requests/unfinished")?;
        let missing = number("/requests/errored")?
            + number("/requests/not_started")?
            + if is_open { unfinished } else { 0.0 };
        Ok(Self {
            path: path.to_owned(),
            latencies: Counts::new(&counts, missing as u64),
            rate: number("/requests_per_second")?,
            total: number("/requests/total")? as u64,
            failed: number("/requests/failed")? as u64,
            value,
        })
    }

    /// The latency in ns that a share of the requests do not exceed, if enough requests exceed it.
    fn percentile(&self, share: f64) -> Result<f64, String> {
        let total = self.latencies.total();
        let beyond = (1.0 - share) * total as f64 * 1.000_001;
        if beyond < BEYOND_MIN as f64 {
            let needed = needed_for(share);
            return Err(format!(
                "needs {needed} requests (`{}` has {total})",
                self.path
            ));
        }
        let found = self.latencies.percentile(share).map(|nanos| nanos as f64);
        found.ok_or_else(|| {
            format!(
                "more requests of `{}` than that have no response",
                self.path
            )
        })
    }
}

fn text(before: &[Results], after: &[Results]) -> Result<String, String> {
    let mut text = String::new();
    check_runs(before.iter().chain(after))?;
    for side in [before, after] {
        check_side(side)?;
        warn_of_side(side, &mut text);
    }
    let ([old, ..], [new, ..]) = (before, after) else {
        return Err("--compare: no file (expected one or more on each side)".to_owned());
    };
    for key in different_settings(old, new, "urls") {
        let of = |results: &Results| results.value["settings"][&key].to_string();
        let _ = writeln!(
            text,
            "warning: the settings differ: {key} {} → {}",
            of(old),
            of(new)
        );
    }
    if old.value["settings"]["urls"] != new.value["settings"]["urls"] {
        let [old, new] = [old, new].map(|run| run.value["settings"]["urls"].to_string());
        let _ = writeln!(text, "note: the URLs differ: {old} → {new}");
    }
    let lines = lines(before, after);
    let (heading, intervals, note) = match (before, after) {
        ([old], [new]) => (
            "95 % interval within the runs".to_owned(),
            lines
                .iter()
                .map(|line| within_run(old, new, line.share))
                .collect(),
            "one run a side: within-run variation only, and no verdict. Runs of the same command often differ by more: \
             repeat both in turn, and compare all files (--compare a1.json,a2.json b1.json,b2.json)\n",
        ),
        ([_], _) | (_, [_]) => (
            String::new(),
            vec![None; lines.len()],
            "one run on a side: its variation between runs is unknown, so there is no interval and no verdict (expected two or more a side)\n",
        ),
        _ => {
            let counts = format!("{} and {} runs", before.len(), after.len());
            let heading = format!("95 % interval over {counts}");
            (heading, over_runs(&lines), "")
        }
    };
    table(&mut text, &lines, &heading, intervals);
    let failed = [before, after].map(|side| {
        let sum = |of: fn(&Results) -> u64| side.iter().map(of).fold(0, u64::saturating_add);
        share_of(sum(|run| run.failed), sum(|run| run.total))
    });
    let _ = writeln!(text, "{:<14}{:>12} {:>12}", "failed", failed[0], failed[1]);
    for (name, share) in SHARES {
        if let Err(why) = percentiles(before, share).and_then(|_| percentiles(after, share)) {
            let _ = writeln!(text, "not compared: latency {name} {why}");
        }
    }
    text.push_str(note);
    Ok(text)
}

/// What is compared: a percentile of latencies, or the rate.
struct Line {
    name: String,
    /// The share of a percentile.
    share: Option<f64>,
    /// The values of the runs of both sides.
    values: [Vec<f64>; 2],
    show: fn(f64) -> String,
}

/// A line for each percentile that all runs have, and for the rate.
fn lines(before: &[Results], after: &[Results]) -> Vec<Line> {
    let latency = |(name, share)| {
        Some(Line {
            name: format!("latency {name}"),
            share: Some(share),
            values: [
                percentiles(before, share).ok()?,
                percentiles(after, share).ok()?,
            ],
            show: millis,
        })
    };
    let rate = Line {
        name: "requests/s".to_owned(),
        share: None,
        values: [before, after].map(|side| side.iter().map(|run| run.rate).collect()),
        show: |rate| format!("{rate:.1}"),
    };
    let latencies = SHARES.into_iter().filter_map(latency);
    latencies.chain([rate]).collect()
}

/// A percentile of each run of a side.
fn percentiles(side: &[Results], share: f64) -> Result<Vec<f64>, String> {
    side.iter().map(|run| run.percentile(share)).collect()
}

/// The intervals over runs, with what they say.
fn over_runs(lines: &[Line]) -> Vec<Option<String>> {
    let change = |line: &Line| {
        let precision = line.share.map_or(0.0, |_| PRECISION);
        between(&line.values[0], &line.values[1], precision)
    };
    let changes: Vec<Option<Change>> = lines.iter().map(change).collect();
    let together = changes.iter().zip(verdicts(&changes));
    let interval = |(change, verdict): (&Option<Change>, _)| {
        let ((low, high), verdict) = (
            change.map(|it| (it.low * 100.0, it.high * 100.0))?,
            verdict?,
        );
        Some(format!("{low:+.1} % to {high:+.1} %: {verdict}"))
    };
    together.map(interval).collect()
}

/// The lines with their changes and intervals.
fn table(text: &mut String, lines: &[Line], heading: &str, intervals: Vec<Option<String>>) {
    let header = format!(
        "{:<14}{:>12}{:>12}   {:<14}{heading}",
        "", "before", "after", "change"
    );
    let _ = writeln!(text, "{}", header.trim_end());
    for (line, interval) in lines.iter().zip(intervals) {
        let [old, new] = [&line.values[0], &line.values[1]].map(|values| mean(values));
        let changed = in_words(new / old - 1.0);
        let (old, new, interval) = (
            (line.show)(old),
            (line.show)(new),
            interval.unwrap_or_default(),
        );
        let row = format!(
            "{:<14}{old:>12}{new:>12}   {changed:<14}{interval}",
            line.name
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
}

/// The geometric mean, to which the ratio of the line belongs; the mean if a value is 0.
fn mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    geometric_mean(values).unwrap_or(sum / values.len() as f64)
}

/// The bootstrap interval of the change of a percentile between two runs, as if their responses were independent.
fn within_run(before: &Results, after: &Results, share: Option<f64>) -> Option<String> {
    let groups = [&before.latencies, &after.latencies];
    let resampled = apart(&groups, &[share?], REPLICATES, SEED);
    let changes = resampled.iter().filter_map(|by_group| {
        let old = by_group.first()?.first().copied()??;
        let new = by_group.get(1)?.first().copied()??;
        Some(new as f64 / old as f64 - 1.0)
    });
    let mut changes: Vec<f64> = changes.collect();
    changes.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (share * (changes.len().saturating_sub(1)) as f64).round() as usize;
        changes.get(index).map(|change| change * 100.0)
    };
    let (low, high) = (at(LEVEL / 2.0)?, at(1.0 - LEVEL / 2.0)?);
    Some(format!("{low:+.1} % to {high:+.1} %"))
}

/// Checks that all are different runs. A run that is given twice, also as a copy, differs from itself by nothing, and is no
/// measure of the variation between runs.
fn check_runs<'a>(runs: impl Iterator<Item = &'a Results>) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for run in runs {
        if let Some(first) = seen.insert(run.value.to_string(), &run.path) {
            return Err(format!(
                "`{first}` and `{}` are the results of the same run (expected different runs)",
                run.path
            ));
        }
    }
    Ok(())
}

/// Checks that the runs of a side are those of one command.
fn check_side(side: &[Results]) -> Result<(), String> {
    if let Some(run) = side
        .iter()
        .find(|run| run.total > 0 && run.failed.saturating_mul(2) > run.total)
    {
        return Err(format!(
            "`{}`: {} of {} requests failed (expected runs with mostly successful responses)",
            run.path, run.failed, run.total
        ));
    }
    let Some(first) = side.first() else {
        return Ok(());
    };
    for run in side {
        // Runs of one command may differ in their random seeds.
        if let Some(key) = different_settings(first, run, "seed").first() {
            return Err(format!(
                "`{}` is a run of another command than `{}`: {key} {} (expected {})",
                run.path, first.path, run.value["settings"][key], first.value["settings"][key]
            ));
        }
    }
    Ok(())
}

/// Warns of runs whose values are doubtful.
fn warn_of_side(side: &[Results], text: &mut String) {
    for run in side {
        if run.value["is_interrupted"] == true {
            let _ = writeln!(text, "warning: `{}`: the run was interrupted", run.path);
        }
        for warning in run.value["warnings"].as_array().into_iter().flatten() {
            let warning = warning.as_str().unwrap_or_default();
            let _ = writeln!(text, "warning: `{}`: {warning}", run.path);
        }
        if let Some(first) = side.first()
            && run.value["generator"] != first.value["generator"]
        {
            let _ = writeln!(
                text,
                "warning: `{}` is of another program than `{}`: {} → {}",
                run.path, first.path, first.value["generator"], run.value["generator"]
            );
        }
    }
}

/// The settings that differ, apart from one. A setting that one of them lacks differs as well.
fn different_settings(before: &Results, after: &Results, apart_from: &str) -> Vec<String> {
    let keys = [before, after].map(|results| results.value["settings"].as_object());
    let keys: BTreeSet<&String> = keys
        .into_iter()
        .flatten()
        .flat_map(|it| it.keys())
        .collect();
    let differs = |key: &&String| {
        let of = |results: &Results| results.value["settings"].get(key.as_str()).cloned();
        key.as_str() != apart_from && of(before) != of(after)
    };
    keys.into_iter().filter(differs).cloned().collect()
}

/// A count and its share of a total.
fn share_of(count: u64, total: u64) -> String {
    match (count, total) {
        (0, _) | (_, 0) => count.to_string(),
        _ => format!("{count} ({:.2} %)", count as f64 / total as f64 * 100.0),
    }
}

/// `–` for a change from 0.
pub(super) fn in_words(change: f64) -> String {
    if !change.is_finite() {
        return "–".to_owned();
    }
    let percent = change.abs() * 100.0;
    let which = if change < 0.0 { "less" } else { "more" };
    format!("{percent:.1} % {which}")
}

pub(super) fn millis(nanos: f64) -> String {
    let millis = nanos / 1e6;
    let decimals = if millis < 1.0 { 3 } else { 2 };
    format!("{millis:.decimals$} ms")
}
