//! The lines of the connection logs: read by the query engine, and counted.

use core::{num::NonZeroUsize, ops::ControlFlow};
use std::path::PathBuf;

use lastbyte_query::{Options, Query, Value};
use lastbyte_record::connection_log::{keys, tcp::TRANSPORT};
use lastbyte_steer::{
    Epoch, Subject,
    tally::{Line, Tally},
};

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
    ];
    let columns = columns.map(|key| format!("_[\"{}\"]", key.name()));
    let query = format!("[{}]", columns.join(", "));
    let query = Query::compile(&query, &[], options).map_err(Failure::run)?;
    let mut tallies = vec![Tally::default(); times_ms.len()];
    let last = times_ms.last().copied().unwrap_or(0);
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
        }
        ControlFlow::Continue(())
    });
    outcome.into_result().map_err(Failure::run)?;
    Ok(tallies)
}
