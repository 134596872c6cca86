//! The lines of the log: read by the query engine, a random sample of each arm.

use core::ops::ControlFlow;
use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_query::{Options, Query, Value};
use lastbyte_record::connection_log::{keys, tcp::TRANSPORT};
use lastbyte_replay::{Column, KEYS, Line, LogLine};
use lastbyte_report::comparison::h2o_arm;
use lastbyte_units::SplitMix64;

use crate::{commands::report, failure::Failure};

/// The columns before the numbers.
const HEAD: usize = 9;
/// The sizes of the bank, in bytes.
const SIZES: core::ops::Range<f64> = 50e3..12.8e6;
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
}

impl Log {
    /// The failure of a log without usable lines.
    fn nothing(&self, lines: u64) -> Failure {
        Failure::Run(format!(
            "no usable lines: {lines} lines, {} without statistics of QUIC, {} incomplete, {} without a time, {} of objects below 50 kB or \
             from 12.8 MB on, {} without an arm (expected lines of `serve --log`, `ab` or H2O)",
            self.without_statistics,
            self.incomplete,
            self.without_time,
            self.other_sizes,
            self.without_arm
        ))
    }
}

/// Lines of an arm, drawn at random: those with the smallest numbers, whatever their order, each with how often it came.
#[derive(Default)]
struct Sample(BTreeMap<(u64, u64), (LogLine, u64)>);

impl Sample {
    fn add(&mut self, place: (u64, u64), line: LogLine, most: usize) {
        self.0.entry(place).or_insert((line, 0)).1 += 1;
        if self.0.len() > most {
            self.0.pop_last();
        }
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

/// A number of the connection, the same in a copy of its line. `None` if nothing in the line says which connection it is.
fn identity(head: &[Value], cells: &[Value]) -> Option<u64> {
    let [.., time, connection, seed] = head else {
        return None;
    };
    let number = |cell: &Value| cell.as_f64().unwrap_or(-1.0).to_bits();
    let is_known = !seed.is_null() || (!time.is_null() && !connection.is_null());
    is_known.then(|| {
        let numbers = [time, connection, seed].into_iter().chain(cells);
        numbers.fold(0, |hash, cell| SplitMix64::stream(hash, number(cell)).at(0))
    })
}

/// Reads logs, and keeps at most `most` lines of an arm, drawn at random.
pub(super) fn read(
    paths: &[PathBuf],
    most: usize,
    threads: usize,
    seed: u64,
) -> Result<Log, Failure> {
    let options = Options {
        threads,
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
                    "line {row_number} is of the experiment `{experiment}`, and earlier lines are of `{known}` (expected one; \
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
                    "line {row_number} has the arm `{arm}`, and there are {ARMS_MAX} others (expected at most {ARMS_MAX})"
                )));
                return ControlFlow::Break(());
            }
            *log.usable.entry(arm.to_owned()).or_default() += 1;
            // A copy has the place of its original, so that the sample shows both or neither.
            let (which, apart) =
                identity(head, cells).map_or((row_number, row_number), |which| (which, 0));
            let place = (SplitMix64::stream(seed, which).at(0), apart);
            let line = LogLine {
                arm: arm.to_owned(),
                site: text(1).map(str::to_owned),
                line,
            };
            let sample = samples.entry(arm.to_owned()).or_default();
            sample.add(place, line, most);
        } else {
            log.without_arm += 1;
        }
        ControlFlow::Continue(())
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    outcome.into_result().map_err(Failure::run)?;
    log.copies = copies(samples.values());
    if log.copies > COPIES_MAX {
        return Err(Failure::Usage(format!(
            "about {:.0} % of the lines are copies of others (expected each connection once): give each log once, or remove the copies",
            100.0 * log.copies
        )));
    }
    log.lines = samples
        .into_values()
        .flat_map(|sample| sample.0.into_values())
        .map(|(line, _)| line)
        .collect();
    if log.lines.is_empty() {
        return Err(log.nothing(row_number));
    }
    Ok(log)
}
