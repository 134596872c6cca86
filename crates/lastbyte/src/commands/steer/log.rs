//! The lines of the connection logs: read by the query engine, and counted, in parts if need be.
//!
//! The state of a part has no epochs of the ramp: it may be made where the decisions are not, or before the next one. Merged states
//! count the lines of the ramp's epochs.

use core::{num::NonZeroUsize, ops::ControlFlow};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

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
    terminal::notice,
};

/// The lines of logs.
pub(super) struct Lines {
    pub(super) tally: Tally,
    pub(super) sample: Sample,
    /// The mark of each log or state with lines: the smallest number of its lines, by its name.
    pub(super) marks: BTreeMap<String, u64>,
}

/// Counts lines up to a time. Copies of lines are an error.
pub(super) fn lines(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    epochs: &[Epoch],
    until_ms: u64,
) -> Result<Lines, Failure> {
    let mut marks = BTreeMap::new();
    let (tallies, sample) = count(
        logs,
        jobs,
        subject,
        Some(epochs),
        &[until_ms],
        |log, number| lower(&mut marks, log, number),
    )?;
    sample.check()?;
    Ok(Lines {
        tally: tallies.into_iter().next().unwrap_or_default(),
        sample,
        marks,
    })
}

/// Counts the lines of each of these times, which ascend: those up to the first, those after it up to the second, and so on. Later
/// lines do not count. Copies of lines are an error.
pub(super) fn tallies(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    epochs: &[Epoch],
    times_ms: &[u64],
) -> Result<Vec<Tally>, Failure> {
    let (tallies, sample) = count(logs, jobs, subject, Some(epochs), times_ms, |_, _| ())?;
    sample.check()?;
    Ok(tallies)
}

/// Makes the mark of a log this number, unless it is smaller.
fn lower(marks: &mut BTreeMap<String, u64>, log: &str, number: u64) {
    if let Some(mark) = marks.get_mut(log) {
        *mark = number.min(*mark);
    } else {
        marks.insert(log.to_owned(), number);
    }
}

/// Counts lines, of these epochs or of any, and samples them. The name of its log and its number are given for each.
fn count(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    epochs: Option<&[Epoch]>,
    times_ms: &[u64],
    mut on_line: impl FnMut(&str, u64) + Send,
) -> Result<(Vec<Tally>, Sample), Failure> {
    let options = Options {
        threads: report::threads(jobs),
        // A server that is killed while it writes a line leaves a part of it.
        skip_bad_lines: true,
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
        keys::RTT_MINIMUM,
        keys::RTT_SMOOTHED,
    ];
    let columns = columns.map(|key| format!("_.dig(\"{}\")", key.name()));
    // What is no object has no keys.
    let query = format!("([{}, $FILENAME] rescue nil)", columns.join(", "));
    let query = Query::compile(&query, &[], options).map_err(Failure::run)?;
    let mut tallies = vec![Tally::default(); times_ms.len()];
    let last = times_ms.last().copied().unwrap_or(0);
    let mut sample = Sample::default();
    let mut others = 0;
    let outcome = query.for_each(report::inputs(logs)?, |row| {
        if row.len() <= columns.len() {
            others += 1;
            return ControlFlow::Continue(());
        }
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
            // What is no number is not a transfer without one.
            ttlb_ms: value(7)
                .filter(|cell| !matches!(cell, Cell::Null))
                .map(|cell| cell.as_f64().unwrap_or(f64::NAN)),
            sent: number(8),
            lost: number(9),
            rtt_ms: [number(12), number(13)],
        };
        // A connection over TCP has no arm.
        if text(10).is_none() {
            let time = line.time_ms.unwrap_or(0).min(last);
            let place = times_ms.partition_point(|until| *until < time);
            let tally = tallies.get_mut(place);
            // A line names any site: their number ends the reading, not memory.
            let epoch = tally
                .filter(|tally| tally.excess_sites() == 0)
                .and_then(|tally| tally.add(&line, subject, epochs, last));
            if let Some(epoch) = epoch {
                let numbers = [4, 11, 7, 8, 9].map(|at| number(at).unwrap_or(-1.0));
                let number = identity(&numbers, text(11).unwrap_or_default());
                sample.add(number, epoch);
                on_line(text(14).unwrap_or_default(), number);
            }
        }
        ControlFlow::Continue(())
    });
    if let Some(skipped) = &outcome.skipped {
        notice(skipped.to_string());
        others += skipped.count as u64;
    }
    if let Some(tally) = tallies.last_mut() {
        tally.add_unreadable(others);
    }
    outcome.into_result().map_err(Failure::run)?;
    tallies.iter().try_for_each(check_sites)?;
    Ok((tallies, sample))
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
    json!({ "steer-state": 2, "version": env!("CARGO_PKG_VERSION"), "plan": plan })
}

/// The lines of the state of a part of the logs, up to a time. `plan` is the hash of the plan's file.
pub(super) fn part(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    plan: &str,
    now_ms: u64,
) -> Result<String, Failure> {
    let (tallies, sample) = count(logs, jobs, subject, None, &[now_ms], |_, _| ())?;
    sample.check()?;
    let tally = tallies.into_iter().next().unwrap_or_default();
    if tally.has_too_many_epochs() {
        return Err(Failure::Run(
            "the lines are of too many epochs (expected those of one ramp, which has one for each change of its shares)".to_owned(),
        ));
    }
    let state = serde_json::to_string(&(tally, sample)).map_err(Failure::run)?;
    Ok(format!("{}\n{state}\n", head(plan)))
}

/// The state of a part of the logs.
#[derive(Debug)]
pub(in crate::commands) struct State {
    name: String,
    tally: Tally,
    sample: Sample,
}

impl State {
    /// Reads a state. `plan` is the hash of the plan's file.
    pub(super) fn read(path: &Path, plan: &str) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failure = |why: String| Failure::Usage(format!("`{name}`: {why}"));
        let text = sealed::read(path).map_err(|error| failure(error.to_string()))?;
        let (tally, sample) = parse(&text, plan).map_err(failure)?;
        Ok(Self {
            name,
            tally,
            sample,
        })
    }
}

/// The lines of states of parts.
pub(super) fn merge(states: &[State], epochs: &[Epoch], now_ms: u64) -> Result<Lines, Failure> {
    let (mut all, mut all_lines) = (Tally::default(), Sample::default());
    let mut marks = BTreeMap::new();
    for state in states {
        let (name, until_ms) = (&state.name, state.tally.until_ms);
        if until_ms > now_ms {
            return Err(Failure::Usage(format!(
                "`{name}`: it has a line of {until_ms} ms since 1970, and the clock is at {now_ms} ms (expected an earlier line; the shares stay)"
            )));
        }
        if let Some(mark) = state.sample.smallest(epochs) {
            lower(&mut marks, name, mark);
        }
        all.merge(&state.tally);
        all_lines.merge(&state.sample);
    }
    all_lines.check()?;
    check_sites(&all)?;
    Ok(Lines {
        tally: all.of_epochs(epochs),
        sample: all_lines,
        marks,
    })
}

fn parse(text: &str, plan: &str) -> Result<(Tally, Sample), String> {
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

/// The share of copies beyond which logs are refused. An arm of 1 % has few lines, and copies of some of them change it.
const COPIES_MAX: f64 = 0.001;
/// The lines of a sample.
const SAMPLE: usize = 4096;

/// The number of a line, by what tells its connection from others.
fn identity(numbers: &[f64], text: &str) -> u64 {
    let numbers = numbers.iter().map(|number| number.to_bits());
    let all = numbers.chain(text.bytes().map(u64::from));
    all.fold(0, |hash, one| SplitMix64::stream(hash, one).at(0))
}

/// A sample of the lines, those with the smallest numbers, each with how often it came, and its epoch.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sample(BTreeMap<u64, (u64, u32)>);

impl Sample {
    fn add(&mut self, number: u64, epoch: u32) {
        self.0.entry(number).or_insert((0, epoch)).0 += 1;
        if self.0.len() > SAMPLE {
            self.0.pop_last();
        }
    }

    /// Adds the lines of another part.
    fn merge(&mut self, other: &Self) {
        for (number, (count, epoch)) in &other.0 {
            let (ours, _) = self.0.entry(*number).or_insert((0, *epoch));
            *ours = ours.saturating_add(*count);
        }
        while self.0.len() > SAMPLE {
            self.0.pop_last();
        }
    }

    /// The smallest number of a line of these epochs.
    fn smallest(&self, epochs: &[Epoch]) -> Option<u64> {
        let is_known = |known: u32| epochs.iter().any(|epoch| epoch.number == known);
        let mut lines = self.0.iter().filter(|(_, (_, epoch))| is_known(*epoch));
        lines.next().map(|(number, _)| *number)
    }

    /// Whether the line with this number is not among the lines. The lines beyond the sample are not known.
    pub(super) fn lacks(&self, number: u64) -> bool {
        let last = self.0.last_key_value().filter(|_| self.0.len() >= SAMPLE);
        let is_sampled = last.is_none_or(|(last, _)| number <= *last);
        is_sampled && !self.0.contains_key(&number)
    }

    /// Returns an error if too many lines are copies of others.
    fn check(&self) -> Result<(), Failure> {
        let all: u64 = self
            .0
            .values()
            .fold(0, |all, (count, _)| all.saturating_add(*count));
        let copies = all.saturating_sub(self.0.len() as u64);
        let share = copies as f64 / all.max(1) as f64;
        let digits = if share < 0.01 { 2 } else { 0 };
        let sentence = format!(
            "about {:.digits$} % of the lines are copies of others",
            share * 100.0
        );
        if copies > 1 && share > COPIES_MAX {
            return Err(Failure::Run(format!(
                "{sentence} (expected each connection once: give each log once; the shares stay)"
            )));
        }
        if copies > 0 {
            notice(format!("note: {sentence}; above 0.1 % is an error"));
        }
        Ok(())
    }
}
