//! The lines of the connection logs: read by the query engine, and counted, in parts if need be.
//!
//! The state of a part has no epochs of the ramp: it may be made where the decisions are not, or before the next one. Merged states
//! count the lines of the ramp's epochs.

use core::{num::NonZeroUsize, ops::ControlFlow};
use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_query::{Options, Query, Value as Cell};
use lastbyte_record::connection_log::{keys, tcp::TRANSPORT};
use lastbyte_steer::{
    Epoch, Subject,
    tally::{Line, Tally},
};
use lastbyte_units::SplitMix64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    commands::{report, sealed},
    failure::Failure,
};

/// Counts the lines of each of these times, which ascend: those up to the first, those after it up to the second, and so on. Later
/// lines do not count. Copies of lines are an error.
pub(super) fn tally(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    epochs: &[Epoch],
    times_ms: &[u64],
) -> Result<Vec<Tally>, Failure> {
    let (tallies, copies) = count(logs, jobs, subject, Some(epochs), times_ms)?;
    copies.check()?;
    Ok(tallies)
}

/// Counts lines, of these epochs or of any, and samples them for copies.
fn count(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    epochs: Option<&[Epoch]>,
    times_ms: &[u64],
) -> Result<(Vec<Tally>, Copies), Failure> {
    let options = Options {
        threads: report::threads(jobs),
        ..Options::default()
    };
    let columns = [
        keys::EXPERIMENT_NAME,
        keys::ARM,
        keys::SITE,
        keys::CONFIG,
        keys::TIME,
        keys::CONTENT_LENGTH,
        keys::COMPLETE,
        keys::TTLB,
        keys::NUM_PACKETS_SENT,
        keys::NUM_PACKETS_LOST,
        TRANSPORT,
        keys::CONN_ID,
    ];
    let columns = columns.map(|key| format!("_[\"{}\"]", key.name()));
    let query = format!("[{}]", columns.join(", "));
    let query = Query::compile(&query, &[], options).map_err(Failure::run)?;
    let mut tallies = vec![Tally::default(); times_ms.len()];
    let last = times_ms.last().copied().unwrap_or(0);
    let mut copies = Copies::default();
    let outcome = query.for_each(report::inputs(logs)?, |row| {
        let value = |at: usize| row.get(at);
        let text = |at: usize| value(at).and_then(Cell::as_str);
        let number = |at: usize| value(at).and_then(Cell::as_f64);
        let whole = |at: usize| {
            number(at)
                .filter(|number| *number >= 0.0)
                .map(|number| number as u64)
        };
        let line = Line {
            experiment: text(0),
            arm: text(1),
            site: text(2),
            config: text(3),
            time_ms: whole(4),
            size: whole(5),
            is_complete: value(6).and_then(Cell::as_bool),
            ttlb_ms: number(7),
            sent: number(8),
            lost: number(9),
        };
        // A connection over TCP has no arm.
        if text(10).is_none() {
            let time = line.time_ms.unwrap_or(0).min(last);
            let place = times_ms.partition_point(|until| *until < time);
            let tally = tallies.get_mut(place);
            let counts = tally.is_some_and(|tally| {
                // A line names any site: their number ends the reading, not memory.
                tally.excess_sites() == 0 && tally.add(&line, subject, epochs, last)
            });
            let numbers = [4, 11, 7, 8, 9].map(|at| number(at).unwrap_or(-1.0));
            if counts && numbers[1] >= 0.0 {
                copies.add(&numbers);
            }
        }
        ControlFlow::Continue(())
    });
    outcome.into_result().map_err(Failure::run)?;
    tallies.iter().try_for_each(check_sites)?;
    Ok((tallies, copies))
}

fn check_sites(tally: &Tally) -> Result<(), Failure> {
    if tally.excess_sites() == 0 {
        return Ok(());
    }
    Err(Failure::Run(
        "the lines have more than 512 sites (expected fewer, such as locations in place of servers: `--site`; the shares stay)"
            .to_owned(),
    ))
}

/// What the state of a part depends on, besides its lines.
fn head(plan: &str) -> Value {
    json!({ "steer-state": 1, "version": env!("CARGO_PKG_VERSION"), "plan": plan })
}

/// The lines of the state of a part of the logs, up to a time. `plan` is the hash of the plan's file.
pub(super) fn part(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    plan: &str,
    now_ms: u64,
) -> Result<String, Failure> {
    let (tallies, copies) = count(logs, jobs, subject, None, &[now_ms])?;
    copies.check()?;
    let tally = tallies.into_iter().next().unwrap_or_default();
    if tally.has_too_many_epochs() {
        return Err(Failure::Run(
            "the lines are of too many epochs (expected those of one ramp, which has one for each change of its shares)".to_owned(),
        ));
    }
    let state = serde_json::to_string(&(tally, copies)).map_err(Failure::run)?;
    Ok(format!("{}\n{state}\n", head(plan)))
}

/// The lines of states of parts.
pub(super) fn merge(
    parts: &[PathBuf],
    plan: &str,
    epochs: &[Epoch],
    now_ms: u64,
) -> Result<Tally, Failure> {
    let (mut all, mut all_copies) = (Tally::default(), Copies::default());
    for path in parts {
        let failure = |why: String| Failure::Usage(format!("`{}`: {why}", path.display()));
        let text = sealed::read(path).map_err(|error| failure(error.to_string()))?;
        let (tally, copies) = parse(&text, plan).map_err(failure)?;
        if tally.until_ms > now_ms {
            return Err(failure(format!(
                "it has a line of {} ms since 1970, and the clock is at {now_ms} ms (expected an earlier line; the shares stay)",
                tally.until_ms
            )));
        }
        all.merge(&tally);
        all_copies.merge(copies);
    }
    all_copies.check()?;
    check_sites(&all)?;
    Ok(all.of_epochs(epochs))
}

fn parse(text: &str, plan: &str) -> Result<(Tally, Copies), String> {
    const NO_STATE: &str = "not a state (expected the output of `lastbyte steer --partial`)";
    let first = text.lines().next().unwrap_or_default();
    let found: Value = serde_json::from_str(first).map_err(|_| NO_STATE)?;
    if found.get("steer-state").is_none() {
        return Err(NO_STATE.to_owned());
    }
    let expected = head(plan);
    for (key, what) in [
        ("steer-state", "format"),
        ("version", "version"),
        ("plan", "plan"),
    ] {
        let [found, expected] = [&found, &expected].map(|head| head.get(key));
        if found != expected {
            let show = |of: Option<&Value>| of.map_or("none".to_owned(), Value::to_string);
            return Err(format!(
                "the part was made with another {what}: {} (expected {})",
                show(found),
                show(expected)
            ));
        }
    }
    let lines = sealed::opened(text)?;
    let state = lines.lines().nth(1).unwrap_or_default();
    serde_json::from_str(state).map_err(|error| format!("{error} ({NO_STATE})"))
}

/// The share of copies beyond which logs are refused.
const COPIES_MAX: f64 = 0.01;
/// The lines that are looked at for copies.
const SAMPLE: usize = 4096;

/// A sample of the lines, those with the smallest numbers, each with how often it came.
#[derive(Default, Serialize, Deserialize)]
struct Copies(BTreeMap<u64, u64>);

impl Copies {
    /// Adds a line by what tells its connection from others.
    fn add(&mut self, of: &[f64]) {
        let identity = of.iter().fold(0, |hash, number| {
            SplitMix64::stream(hash, number.to_bits()).at(0)
        });
        *self.0.entry(identity).or_default() += 1;
        if self.0.len() > SAMPLE {
            self.0.pop_last();
        }
    }

    /// Adds the lines of another part.
    fn merge(&mut self, other: Self) {
        for (identity, count) in other.0 {
            let ours = self.0.entry(identity).or_default();
            *ours = ours.saturating_add(count);
        }
        while self.0.len() > SAMPLE {
            self.0.pop_last();
        }
    }

    /// Returns an error if too many lines are copies of others.
    fn check(&self) -> Result<(), Failure> {
        let all: u64 = self
            .0
            .values()
            .fold(0, |all, count| all.saturating_add(*count));
        let share = all.saturating_sub(self.0.len() as u64) as f64 / all.max(1) as f64;
        if share > COPIES_MAX {
            return Err(Failure::Run(format!(
                "about {:.0} % of the lines are copies of others (expected each connection once: give each log once; the shares stay)",
                share * 100.0
            )));
        }
        Ok(())
    }
}
