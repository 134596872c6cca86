//! The state of a part of a log, so that logs of several machines are replayed without moving them.
//!
//! A prediction needs the counts of a log and a sample of the lines of each arm. A state has both as text: a line with the counts and
//! what the sample depends on, a line for each line of the sample, and one with a checksum. It has neither bank nor arms to come, so
//! parts cannot differ in them.

use core::fmt::Write as _;
use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_replay::{KEYS, Line, LogLine};
use serde_json::{Value, json};

use super::{
    bank::hash,
    log::{Log, Part, Sample},
};
use crate::{commands::sealed, failure::Failure};

/// What the sample of a part depends on.
#[derive(Clone, Copy)]
pub(super) struct Sampling {
    /// Lines of an arm at most.
    pub(super) most: usize,
    pub(super) seed: u64,
}

impl Sampling {
    fn head(self) -> Value {
        json!({
            "replay-state": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "seed": self.seed,
            "lines": self.most,
            "keys": KEYS,
        })
    }
}

const NO_STATE: &str = "not a state (expected the output of `lastbyte replay --partial`)";

/// The lines of the state of a part.
pub(super) fn text(part: &Part, sampling: Sampling) -> String {
    let counts = &part.counts;
    let counts = json!({
        "logs": counts.names,
        "experiment": counts.experiment,
        "lines": part.lines,
        "usable": counts.usable,
        "not_json": counts.not_json,
        "without_arm": counts.without_arm,
        "incomplete": counts.incomplete,
        "without_time": counts.without_time,
        "without_statistics": counts.without_statistics,
        "resumed": counts.resumed,
        "other_sizes": counts.other_sizes,
    });
    let mut text = format!("{}\n{counts}\n", sampling.head());
    // Writing to a string cannot fail.
    for (place, (line, count)) in part.samples.values().flat_map(|sample| &sample.0) {
        let numbers: Vec<Option<f64>> = line.line.numbers().collect();
        let row = json!([line.arm, line.site, place.0, place.1, count, numbers]);
        let _ = writeln!(text, "{row}");
    }
    text
}

/// Reads states, and joins them in their order.
pub(super) fn merge(paths: &[PathBuf], sampling: Sampling) -> Result<Part, Failure> {
    let mut all = Part::default();
    let mut known: BTreeMap<u64, String> = BTreeMap::new();
    for path in paths {
        let name = path.display().to_string();
        let failure = |why: String| Failure::Usage(format!("`{name}`: {why}"));
        let state = sealed::read(path).map_err(|error| failure(error.to_string()))?;
        let (part, rows) = parse(&state, sampling).map_err(failure)?;
        if !rows.is_empty()
            && let Some(earlier) = known.insert(hash(rows), name.clone())
        {
            return Err(failure(format!(
                "it has the lines of `{earlier}` (expected each part once)"
            )));
        }
        all.add(part, sampling.most).map_err(failure)?;
    }
    Ok(all)
}

/// A part, and the text of its lines, which is the same under another name.
fn parse(text: &str, sampling: Sampling) -> Result<(Part, &str), String> {
    let mut rows = text.lines();
    let value = |row: Option<&str>| -> Result<Value, String> {
        serde_json::from_str(row.unwrap_or_default()).map_err(|_| NO_STATE.to_owned())
    };
    let head = value(rows.next())?;
    if head.get("replay-state").is_none() {
        return Err(NO_STATE.to_owned());
    }
    let expected = sampling.head();
    for (key, what) in [
        ("replay-state", "format"),
        ("version", "version"),
        ("seed", "--seed"),
        ("lines", "--lines"),
        ("keys", "list of keys"),
    ] {
        if head.get(key) != expected.get(key) {
            let show = |of: &Value| match of.get(key) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(_)) | None => "another one".to_owned(),
                Some(other) => other.to_string(),
            };
            return Err(format!(
                "the part was made with another {what}: {} (expected {})",
                show(&head),
                if key == "keys" {
                    "that of this version".to_owned()
                } else {
                    show(&expected)
                }
            ));
        }
    }
    let lines = sealed::opened(text)?
        .splitn(3, '\n')
        .nth(2)
        .unwrap_or_default();
    let counts = value(rows.next())?;
    let mut part = Part {
        lines: whole(&counts["lines"])?,
        counts: counts_of(&counts)?,
        ..Part::default()
    };
    for row in lines.lines() {
        let row = value(Some(row))?;
        let line = LogLine {
            arm: row[0].as_str().ok_or(NO_STATE)?.to_owned(),
            site: row[1].as_str().map(str::to_owned),
            line: Line::of_numbers(
                row[5]
                    .as_array()
                    .ok_or(NO_STATE)?
                    .iter()
                    .map(|number| number.as_f64().unwrap_or(f64::NAN)),
            ),
        };
        let place = (whole(&row[2])?, whole(&row[3])?);
        let sample: &mut Sample = part.samples.entry(line.arm.clone()).or_default();
        sample.add(place, line, whole(&row[4])?, sampling.most);
    }
    Ok((part, lines))
}

fn whole(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| NO_STATE.to_owned())
}

fn counts_of(counts: &Value) -> Result<Log, String> {
    let names = counts["logs"].as_array().ok_or(NO_STATE)?;
    let usable = counts["usable"].as_object().ok_or(NO_STATE)?;
    let usable = usable
        .iter()
        .map(|(arm, lines)| Ok((arm.clone(), whole(lines)?)));
    Ok(Log {
        names: names
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
        experiment: counts["experiment"].as_str().map(str::to_owned),
        usable: usable.collect::<Result<_, String>>()?,
        not_json: whole(&counts["not_json"])?,
        without_arm: whole(&counts["without_arm"])?,
        incomplete: whole(&counts["incomplete"])?,
        without_time: whole(&counts["without_time"])?,
        without_statistics: whole(&counts["without_statistics"])?,
        resumed: whole(&counts["resumed"])?,
        other_sizes: whole(&counts["other_sizes"])?,
        ..Log::default()
    })
}
