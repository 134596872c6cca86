//! The lines of the log: read by the query engine, a random sample of each arm.

use core::ops::ControlFlow;
use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_query::{Options, Query, Value};
use lastbyte_record::connection_log::{keys, tcp::TRANSPORT};
use lastbyte_replay::{Column, KEYS, Line, LogLine};
use lastbyte_units::SplitMix64;

use crate::{commands::report, failure::Failure};

/// The columns before the numbers.
const HEAD: usize = 6;
/// The sizes of the bank, in bytes.
const SIZES: core::ops::Range<f64> = 50e3..12.8e6;
/// More arms than this are a mistake.
const ARMS_MAX: usize = 16;

/// A log.
pub(super) struct Log {
    /// A sample of the usable lines of each arm.
    pub(super) lines: Vec<LogLine>,
    /// The number of usable lines by arm.
    pub(super) usable: BTreeMap<String, u64>,
    /// Lines without an arm.
    pub(super) without_arm: u64,
    /// Incomplete transfers.
    pub(super) incomplete: u64,
    /// Lines of connections over TCP, or without statistics.
    pub(super) without_statistics: u64,
    /// Connections that started at the rate of an earlier one.
    pub(super) resumed: u64,
    /// Objects smaller or larger than those of the bank.
    pub(super) other_sizes: u64,
    pub(super) experiment: Option<String>,
}

fn query() -> String {
    let of = |key: &str| format!("_[\"{key}\"]");
    let rapid = of(keys::NUM_RAPID_START.name());
    let jump = of(keys::JUMPSTART_CWND.name());
    let module = of(keys::MODULE.name());
    let arm = of(keys::ARM.name());
    // H2O's lines have no arm, but what they ran.
    let h2o = format!(
        r#"{rapid} > 0 ? ({jump} > 0 ? "rapid-start-jump" : "rapid-start") : ({jump} > 0 ? "jumpstart" : "slow-start")"#
    );
    let h2o = format!("({module} == \"h2o\" && {rapid} != nil && {jump} != nil) ? ({h2o}) : nil");
    let mut columns = vec![
        format!("{arm} || ({h2o})"),
        of(keys::SITE.name()),
        of(keys::EXPERIMENT_NAME.name()),
        of(keys::COMPLETE.name()),
        of(TRANSPORT.name()),
        of(keys::JUMPSTART_PREV_RATE.name()),
    ];
    columns.extend(KEYS.iter().map(|key| of(key)));
    format!("[{}]", columns.join(", "))
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
    let mut log = Log {
        lines: Vec::new(),
        usable: BTreeMap::new(),
        without_arm: 0,
        incomplete: 0,
        without_statistics: 0,
        resumed: 0,
        other_sizes: 0,
        experiment: None,
    };
    let mut samples: BTreeMap<String, BTreeMap<(u64, u64), LogLine>> = BTreeMap::new();
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
        } else if !is_complete || line.log_ttlb().is_none() {
            log.incomplete += 1;
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
            let count = log.usable.entry(arm.to_owned()).or_default();
            let place = SplitMix64::stream(seed, row_number).at(0);
            let sample = samples.entry(arm.to_owned()).or_default();
            let line = LogLine {
                arm: arm.to_owned(),
                site: text(1).map(str::to_owned),
                line,
            };
            // The lines with the smallest numbers, whatever their order.
            *count += 1;
            sample.insert((place, row_number), line);
            if sample.len() > most {
                sample.pop_last();
            }
        } else {
            log.without_arm += 1;
        }
        ControlFlow::Continue(())
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    outcome.into_result().map_err(Failure::run)?;
    log.lines = samples
        .into_values()
        .flat_map(BTreeMap::into_values)
        .collect();
    if log.lines.is_empty() {
        return Err(Failure::Run(format!(
            "no usable lines: {row_number} lines, {} without statistics of QUIC, {} incomplete, {} of objects below 50 kB or from 12.8 MB on, {} without an arm (expected lines of \
             `serve --log`, `ab` or H2O)",
            log.without_statistics, log.incomplete, log.other_sizes, log.without_arm
        )));
    }
    Ok(log)
}
