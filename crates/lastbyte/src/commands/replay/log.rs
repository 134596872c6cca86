//! The lines of the log: read by the query engine, a random sample of each arm.
//!
//! The sample has the lines with the smallest hashes, so that of several parts is the same as that of all their lines.

use core::ops::ControlFlow;
use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_query::{Options, Query, Value};
use lastbyte_record::connection_log::{keys, tcp::TRANSPORT};
use lastbyte_replay::{Column, KEYS, Line, LogLine};
use lastbyte_report::comparison::h2o_arm;
use lastbyte_units::SplitMix64;

use crate::{commands::report, failure::Failure, terminal::notice};

/// The columns before the numbers.
const HEAD: usize = 9;
/// The last columns of them: time, connection and seed.
const IDENTITY: usize = 3;
/// The sizes of the bank, in bytes.
pub(crate) const SIZES: core::ops::Range<f64> = 50e3..12.8e6;
/// More arms than this are a mistake.
const ARMS_MAX: usize = 16;
/// The share of copies beyond which a log is refused.
const COPIES_MAX: f64 = 0.01;

/// A log.
#[derive(Default)]
pub(super) struct Log {
    /// A sample of the usable lines of each arm.
    pub(super) lines: Vec<LogLine>,
    /// The number of usable lines by arm.
    pub(super) usable: BTreeMap<String, u64>,
    /// Lines that are not JSON.
    pub(super) not_json: u64,
    /// Lines without an arm.
    pub(super) without_arm: u64,
    /// Incomplete transfers.
    pub(super) incomplete: u64,
    /// Complete transfers without a usable time.
    pub(super) without_time: u64,
    /// Lines of connections over TCP, or without statistics.
    pub(super) without_statistics: u64,
    /// Connections that started at the rate of an earlier one.
    pub(super) resumed: u64,
    /// Objects smaller or larger than those of the bank.
    pub(super) other_sizes: u64,
    pub(super) experiment: Option<String>,
    /// The share of the sampled lines that are copies of others.
    pub(super) copies: f64,
    /// The names of the files.
    pub(super) names: Vec<String>,
}

impl Log {
    /// The failure of a log without usable lines.
    fn nothing(&self, lines: u64) -> Failure {
        Failure::Run(format!(
            "no usable lines: {lines} lines, {} without statistics of QUIC, {} incomplete, {} without a time, {} of objects below 50 kB or \
             from 12.8 MB on, {} without an arm (expected complete lines with `ttlb`, of `serve --log`, `ab` or H2O)",
            self.without_statistics,
            self.incomplete,
            self.without_time,
            self.other_sizes,
            self.without_arm
        ))
    }
}

/// The place of a line in a sample: its number, and 0 if that is of its connection. Lines of the same numbers that do not say which
/// connection they are of are counted from 1.
pub(super) type Place = (u64, u64);

/// Lines of an arm, drawn at random: those with the smallest numbers, whatever their order, each with how often it came.
#[derive(Default)]
pub(super) struct Sample(pub(super) BTreeMap<Place, (LogLine, u64)>);

impl Sample {
    pub(super) fn add(&mut self, place: Place, line: LogLine, count: u64, most: usize) {
        let place = match place {
            (_, 0) => place,
            (number, _) => {
                let mut same = self.0.range((number, 1)..=(number, u64::MAX));
                (
                    number,
                    same.next_back().map_or(1, |((_, last), _)| last + 1),
                )
            }
        };
        self.0.entry(place).or_insert((line, 0)).1 += count;
        if self.0.len() > most {
            self.0.pop_last();
        }
    }
}

/// What was read of a part of a log: all that a prediction needs of it.
#[derive(Default)]
pub(super) struct Part {
    /// The counts; without lines.
    pub(super) counts: Log,
    pub(super) samples: BTreeMap<String, Sample>,
    /// The number of lines.
    pub(super) lines: u64,
}

impl Part {
    /// Adds a part, whose lines follow.
    ///
    /// # Errors
    ///
    /// Returns what is wrong if the parts are not of one experiment, or have too many arms.
    pub(super) fn add(&mut self, other: Self, most: usize) -> Result<(), String> {
        let Log {
            usable,
            not_json,
            without_arm,
            incomplete,
            without_time,
            without_statistics,
            resumed,
            other_sizes,
            experiment,
            names,
            ..
        } = other.counts;
        let counts = &mut self.counts;
        if let Some(experiment) = experiment {
            let known = counts.experiment.get_or_insert_with(|| experiment.clone());
            if *known != experiment {
                return Err(format!(
                    "it is of the experiment `{experiment}`, and an earlier one is of `{known}` (expected one)"
                ));
            }
        }
        counts.not_json += not_json;
        counts.without_arm += without_arm;
        counts.incomplete += incomplete;
        counts.without_time += without_time;
        counts.without_statistics += without_statistics;
        counts.resumed += resumed;
        counts.other_sizes += other_sizes;
        counts.names.extend(names);
        self.lines += other.lines;
        for (arm, lines) in usable {
            *counts.usable.entry(arm).or_default() += lines;
        }
        if counts.usable.len() > ARMS_MAX {
            return Err(format!(
                "there are {} arms with its own (expected at most {ARMS_MAX})",
                counts.usable.len()
            ));
        }
        for (arm, sample) in other.samples {
            let all = self.samples.entry(arm).or_default();
            for (place, (line, count)) in sample.0 {
                all.add(place, line, count, most);
            }
        }
        Ok(())
    }

    /// The log.
    ///
    /// # Errors
    ///
    /// Returns a [`Failure`] if there is no usable line, or lines are copies of others.
    pub(super) fn finish(self) -> Result<Log, Failure> {
        let mut log = self.counts;
        log.copies = copies(self.samples.values());
        if log.copies > COPIES_MAX {
            return Err(Failure::Usage(format!(
                "about {:.0} % of the lines are copies of others (expected each connection once): give each log once, or remove the copies",
                100.0 * log.copies
            )));
        }
        let samples = self.samples.into_values();
        let lines = samples.flat_map(|sample| sample.0.into_values());
        log.lines = lines.map(|(line, _)| line).collect();
        if log.lines.is_empty() {
            return Err(log.nothing(self.lines));
        }
        Ok(log)
    }
}

/// The share of the lines that are copies of others.
fn copies<'a>(samples: impl Iterator<Item = &'a Sample>) -> f64 {
    let counts = samples.flat_map(|sample| sample.0.values());
    let (all, different) = counts.fold((0, 0_u64), |(all, different), (_, count)| {
        (all + count, different + 1)
    });
    (all - different) as f64 / all.max(1) as f64
}

fn query() -> String {
    let of = |key: &str| format!("_[\"{key}\"]");
    let module = of(keys::MODULE.name());
    let arm = of(keys::ARM.name());
    // H2O's lines have no arm, but what they ran.
    let flags = [keys::NUM_RAPID_START, keys::JUMPSTART_CWND]
        .map(|key| format!("{} != nil", of(key.name())))
        .join(" && ");
    let h2o = format!("({module} == \"h2o\" && {flags}) ? ({}) : nil", h2o_arm());
    let mut columns = vec![
        format!("{arm} || ({h2o})"),
        of(keys::SITE.name()),
        of(keys::EXPERIMENT_NAME.name()),
        of(keys::COMPLETE.name()),
        of(TRANSPORT.name()),
        of(keys::JUMPSTART_PREV_RATE.name()),
        // Which connection it is.
        of(keys::TIME.name()),
        of(keys::CONN_ID.name()),
        of(keys::SEED.name()),
    ];
    columns.extend(KEYS.iter().map(|key| of(key)));
    format!("[{}]", columns.join(", "))
}

/// The place of a line: a copy of it has the same one, if the line says which connection it is of.
fn place(seed_of_sample: u64, head: &[Value], cells: &[Value]) -> Place {
    let is_known = match head {
        [.., time, connection, seed] => {
            !seed.is_null() || (!time.is_null() && !connection.is_null())
        }
        _ => false,
    };
    let number = |cell: &Value| cell.as_f64().unwrap_or(-1.0).to_bits();
    let words = head.iter().rev().take(IDENTITY).rev().chain(cells);
    let which = words.fold(0, |hash, cell| SplitMix64::stream(hash, number(cell)).at(0));
    let which = if is_known {
        which
    } else {
        let site = head.get(1).and_then(Value::as_str).unwrap_or_default();
        SplitMix64::stream(which, super::bank::hash(site)).at(0)
    };
    (
        SplitMix64::stream(seed_of_sample, which).at(0),
        u64::from(!is_known),
    )
}

/// Reads logs, and keeps at most `most` lines of an arm, drawn at random.
pub(super) fn read(
    paths: &[PathBuf],
    most: usize,
    threads: usize,
    seed: u64,
) -> Result<Part, Failure> {
    let options = Options {
        threads,
        // As of a server that was killed, or is writing.
        skip_bad_lines: true,
        ..Options::default()
    };
    let query = Query::compile(&query(), &[], options).map_err(Failure::run)?;
    let mut log = Log::default();
    let mut samples: BTreeMap<String, Sample> = BTreeMap::new();
    let mut failure = None;
    let mut row_number = 0_u64;
    let outcome = query.for_each(report::inputs(paths)?, |row| {
        row_number += 1;
        let (head, cells) = row.split_at(row.len().min(HEAD));
        let text = |at: usize| head.get(at).and_then(Value::as_str);
        if text(4).is_some() {
            log.without_statistics += 1;
            return ControlFlow::Continue(());
        }
        if let Some(experiment) = text(2) {
            let known = log.experiment.get_or_insert_with(|| experiment.to_owned());
            if known.as_str() != experiment {
                failure = Some(Failure::Usage(format!(
                    "row {row_number} is of the experiment `{experiment}`, and earlier lines are of `{known}` (expected one; \
                     `lastbyte query 'select(_[\"experiment\"] == \"{experiment}\")'` selects lines)"
                )));
                return ControlFlow::Break(());
            }
        }
        let line = Line::of_cells(cells);
        let is_complete = head.get(3).and_then(Value::as_bool) != Some(false);
        if line.loss().is_none() {
            log.without_statistics += 1;
        } else if !is_complete {
            log.incomplete += 1;
        } else if line.log_ttlb().is_none() {
            log.without_time += 1;
        } else if head.get(5).and_then(Value::as_f64) > Some(0.0) {
            log.resumed += 1;
        } else if line.get(Column::Size).is_some_and(|size| !SIZES.contains(&size)) {
            log.other_sizes += 1;
        } else if let Some(arm) = text(0) {
            if !log.usable.contains_key(arm) && log.usable.len() >= ARMS_MAX {
                failure = Some(Failure::Usage(format!(
                    "row {row_number} has the arm `{arm}`, and there are {ARMS_MAX} others (expected at most {ARMS_MAX})"
                )));
                return ControlFlow::Break(());
            }
            *log.usable.entry(arm.to_owned()).or_default() += 1;
            let line = LogLine {
                arm: arm.to_owned(),
                site: text(1).map(str::to_owned),
                line,
            };
            let sample = samples.entry(arm.to_owned()).or_default();
            // A copy has the place of its original, so that the sample shows both or neither.
            sample.add(place(seed, head, cells), line, 1, most);
        } else {
            log.without_arm += 1;
        }
        ControlFlow::Continue(())
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    if let Some(skipped) = &outcome.skipped {
        log.not_json = skipped.count as u64;
        notice(format!("warning: {skipped}"));
    }
    outcome.into_result().map_err(Failure::run)?;
    log.names = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Ok(Part {
        counts: log,
        samples,
        lines: row_number,
    })
}
