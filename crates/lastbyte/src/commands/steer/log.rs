//! The lines of the connection logs: read by the query engine, and counted.

use core::{num::NonZeroUsize, ops::ControlFlow};
use std::{collections::BTreeMap, path::PathBuf};

use lastbyte_query::{Options, Query, Value};
use lastbyte_record::connection_log::{keys, tcp::TRANSPORT};
use lastbyte_steer::{
    Epoch, Subject,
    tally::{Line, Tally},
};
use lastbyte_units::SplitMix64;

use crate::{commands::report, failure::Failure};

/// Counts the lines of each of these times, which ascend: those up to the first, those after it up to the second, and so on. Later
/// lines do not count.
pub(super) fn tally(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    epochs: &[Epoch],
    times_ms: &[u64],
) -> Result<Vec<Tally>, Failure> {
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
        let text = |at: usize| value(at).and_then(Value::as_str);
        let number = |at: usize| value(at).and_then(Value::as_f64);
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
            is_complete: value(6).and_then(Value::as_bool),
            ttlb_ms: number(7),
            sent: number(8),
            lost: number(9),
        };
        // A connection over TCP has no arm.
        if text(10).is_none() {
            let time = line.time_ms.unwrap_or(0).min(last);
            let place = times_ms.partition_point(|until| *until < time);
            if let Some(tally) = tallies.get_mut(place) {
                tally.add(&line, subject, epochs, last);
            }
            let numbers = [4, 11, 7, 8, 9].map(|at| number(at).unwrap_or(-1.0));
            if numbers[0] >= 0.0 && numbers[1] >= 0.0 {
                copies.add(&numbers);
            }
        }
        ControlFlow::Continue(())
    });
    outcome.into_result().map_err(Failure::run)?;
    let share = copies.share();
    if share > COPIES_MAX {
        return Err(Failure::Run(format!(
            "about {:.0} % of the lines are copies of others (expected each connection once: give each log once; the shares stay)",
            share * 100.0
        )));
    }
    Ok(tallies)
}

/// The share of copies beyond which logs are refused.
const COPIES_MAX: f64 = 0.01;
/// The lines that are looked at for copies.
const SAMPLE: usize = 4096;

/// A sample of the lines, those with the smallest numbers, each with how often it came.
#[derive(Default)]
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

    /// The share of the lines that are copies of others.
    fn share(&self) -> f64 {
        let all: u64 = self.0.values().sum();
        (all - self.0.len() as u64) as f64 / all.max(1) as f64
    }
}
