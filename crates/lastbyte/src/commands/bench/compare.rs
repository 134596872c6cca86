//! `--compare`: the change between the results of two runs.

use core::fmt::Write as _;
use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_load::histogram::BEYOND_MIN;
use lastbyte_report::statistics::{Counts, bootstrap::apart, tests_of::mann_whitney};
use serde_json::Value;

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
/// The level of significance.
const LEVEL: f64 = 0.05;
/// Smaller probabilities are printed as less than this.
const P_MIN: f64 = 1e-99;

/// The change from the first file to the second, as text.
pub(super) fn compare(paths: &[PathBuf]) -> Result<String, Failure> {
    let mut results = Vec::new();
    for path in paths {
        let text = files::read_text(path).map_err(Failure::usage)?;
        let invalid = |what: String| {
            Failure::Usage(format!(
                "`{}` is not a result of `lastbyte bench --json`: {what}",
                path.display()
            ))
        };
        let value = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        results.push(Results::parse(value).map_err(|key| invalid(format!("no `{key}`")))?);
    }
    match &results[..] {
        [before, after] => Ok(text(before, after)),
        _ => Err(Failure::Usage("expected two files".to_owned())),
    }
}

/// The results of a run that are compared.
struct Results {
    value: Value,
    /// Latencies in ns. Requests without a response have no value, and so count as slower than all others.
    latencies: Counts,
    rate: f64,
    failed: u64,
}

impl Results {
    /// Returns the name of the key that is missing.
    fn parse(value: Value) -> Result<Self, &'static str> {
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
        let missing = number("/requests/errored")?
            + number("/requests/unfinished")?
            + number("/requests/not_started")?;
        Ok(Self {
            latencies: Counts::new(&counts, missing as u64),
            rate: number("/requests_per_second")?,
            failed: number("/requests/failed")? as u64,
            value,
        })
    }
}

fn text(before: &Results, after: &Results) -> String {
    let mut text = String::new();
    for key in different_settings(before, after) {
        let of = |results: &Results| results.value["settings"][&key].to_string();
        let _ = writeln!(
            text,
            "warning: the settings differ: {key} {} → {}",
            of(before),
            of(after)
        );
    }
    let _ = writeln!(
        text,
        "{:<14}{:>12}{:>12}   {:<14}95 % interval",
        "", "before", "after", "change"
    );
    let shares: Vec<f64> = SHARES.iter().map(|(_, share)| *share).collect();
    let groups = [&before.latencies, &after.latencies];
    let resampled = apart(&groups, &shares, REPLICATES, SEED);
    for (place, (name, share)) in SHARES.into_iter().enumerate() {
        let beyond = |counts: &Counts| (1.0 - share) * counts.total() as f64 * 1.000_001;
        if groups
            .iter()
            .any(|counts| beyond(counts) < BEYOND_MIN as f64)
        {
            continue;
        }
        let [Some(old), Some(new)] = groups.map(|counts| counts.percentile(share)) else {
            continue;
        };
        let changes = resampled.iter().filter_map(|by_group| {
            let old = by_group.first()?.get(place).copied()??;
            let new = by_group.get(1)?.get(place).copied()??;
            Some(change(old as f64, new as f64))
        });
        let mut changes: Vec<f64> = changes.collect();
        changes.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let index = (share * (changes.len().saturating_sub(1)) as f64).round() as usize;
            changes.get(index).copied().unwrap_or(f64::NAN)
        };
        let (low, high) = (at(LEVEL / 2.0), at(1.0 - LEVEL / 2.0));
        let verdict = if low > 0.0 || high < 0.0 {
            "significant"
        } else {
            "no significant difference"
        };
        let _ = writeln!(
            text,
            "latency {name:<6}{:>12}{:>12}   {:<14}{:+.1} % to {:+.1} %: {verdict}",
            millis(old),
            millis(new),
            in_words(change(old as f64, new as f64)),
            low * 100.0,
            high * 100.0
        );
    }
    let _ = writeln!(
        text,
        "requests/s    {:>12.1}{:>12.1}   {}",
        before.rate,
        after.rate,
        in_words(change(before.rate, after.rate))
    );
    let _ = writeln!(
        text,
        "failed        {:>12}{:>12}",
        before.failed, after.failed
    );
    if let Some(test) = mann_whitney(&before.latencies, &after.latencies) {
        let p = test.p;
        // The test is an approximation, and further digits would be meaningless.
        let p_text = if p < P_MIN {
            format!("p < {P_MIN:.0e}")
        } else {
            format!("p = {p:.2e}")
        };
        let verdict = if p < LEVEL {
            "significant"
        } else {
            "no significant difference"
        };
        let _ = writeln!(
            text,
            "a request of the second run is slower with a probability of {:.1} % (Mann–Whitney, {p_text}: {verdict})",
            test.share_less * 100.0
        );
    }
    text
}

/// The settings that differ, apart from the addresses.
fn different_settings(before: &Results, after: &Results) -> Vec<String> {
    let Some(settings) = before.value["settings"].as_object() else {
        return Vec::new();
    };
    let differs = |key: &&String| {
        key.as_str() != "urls" && settings.get(*key) != after.value["settings"].get(key.as_str())
    };
    settings.keys().filter(differs).cloned().collect()
}

/// The relative change; not finite from 0.
fn change(before: f64, after: f64) -> f64 {
    after / before - 1.0
}

/// `–` for a change from 0.
fn in_words(change: f64) -> String {
    if !change.is_finite() {
        return "–".to_owned();
    }
    let percent = change.abs() * 100.0;
    let which = if change < 0.0 { "less" } else { "more" };
    format!("{percent:.1} % {which}")
}

fn millis(nanos: u64) -> String {
    let millis = nanos as f64 / 1e6;
    let decimals = if millis < 1.0 { 3 } else { 2 };
    format!("{millis:.decimals$} ms")
}
