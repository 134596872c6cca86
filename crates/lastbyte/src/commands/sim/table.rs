//! The table of `lastbyte sim`: one row per arm and kind of handshake, for each network and size.

use core::{fmt::Write, time::Duration};

use lastbyte_scenario::Handshake;
use lastbyte_sim::row::{CompletionTimes, Row};
use lastbyte_units as units;

use crate::table::Table;

/// Tables of rows, which stand in order of network, size, arm, handshake and seed. `path` describes a network by its name.
pub(super) fn tables(rows: &[Row], path: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    let groups = rows.chunk_by(|one, next| {
        one.label.network == next.label.network && one.label.size_bytes == next.label.size_bytes
    });
    for group in groups {
        let Some(first) = group.first() else {
            continue;
        };
        if !text.is_empty() {
            text.push('\n');
        }
        let size = units::show_bytes(first.label.size_bytes);
        text.push_str(&size);
        text.push_str(" over ");
        text.push_str(&first.label.network);
        text.push_str(": ");
        text.push_str(&path(&first.label.network));
        let runs = runs(group);
        if runs > 1 {
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "; medians of {runs} runs, seeds {} to {}",
                first.label.seed,
                group
                    .last()
                    .map_or(first.label.seed, |last| last.label.seed)
            );
        }
        text.push('\n');
        text.push_str(&table(group));
        text.push('\n');
        text.push_str(&completions(group));
    }
    text
}

/// Flow-completion times of cross traffic that arrives at random, a line for each arm, seed and class of sizes.
fn completions(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| row.flow == 0) {
        for arrivals in &row.arrivals {
            let (arm, seed) = (&row.label.arm, row.label.seed);
            let done = arrivals.completions.len();
            let (open, refused) = (arrivals.open, arrivals.refused);
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "arrivals beside {arm}, seed {seed}: {done} complete, {open} open, {refused} refused"
            );
            for class in CompletionTimes::by_size(arrivals) {
                let [mean, p50] = [class.mean, class.p50].map(ms);
                let p99 = class.p99.map(|p99| format!(", p99 {:.1} ms", ms(p99)));
                let _ = writeln!(
                    text,
                    "  {}: {} transfers, mean {mean:.1} ms, p50 {p50:.1} ms{}",
                    class.name(),
                    class.count,
                    p99.unwrap_or_default()
                );
            }
        }
    }
    text
}

/// Number of runs of each arm.
fn runs(rows: &[Row]) -> usize {
    let Some(first) = rows.first() else {
        return 0;
    };
    let is_same = |row: &&Row| {
        row.flow == first.flow
            && row.label.arm == first.label.arm
            && row.label.handshake == first.label.handshake
    };
    rows.iter().filter(is_same).count()
}

fn table(rows: &[Row]) -> String {
    let arms: Vec<&[Row]> = rows
        .chunk_by(|one, next| {
            one.label.arm == next.label.arm && one.label.handshake == next.label.handshake
        })
        .collect();
    let columns = Columns::of(rows, &arms);
    let mut table = Table::new(columns.head());
    let mut baseline: Vec<Option<f64>> = Vec::new();
    for arm in arms {
        let flows = arm.iter().map(|row| row.flow).max().unwrap_or(0) + 1;
        for flow in 0..flows {
            let runs: Vec<&Row> = arm.iter().filter(|row| row.flow == flow).collect();
            let ttlb = median(runs.iter().map(|row| row.ttlb.map(ms)));
            if baseline.len() <= flow {
                baseline.push(ttlb);
            }
            let base = baseline.get(flow).copied().flatten();
            table.row(cells(&runs, ttlb, base, &columns));
        }
    }
    table.text()
}

/// Which columns there are, beside those of all tables.
struct Columns {
    has_handshakes: bool,
    has_flows: bool,
    has_runs: bool,
    /// Whether there are responses after the first.
    has_later: bool,
    /// Of the progress.
    marks: Vec<u64>,
}

impl Columns {
    fn of(rows: &[Row], arms: &[&[Row]]) -> Self {
        Self {
            has_handshakes: rows
                .iter()
                .any(|row| row.label.handshake != Handshake::Full),
            has_flows: rows.iter().any(|row| row.flow > 0),
            has_runs: arms.iter().any(|rows| runs(rows) > 1),
            has_later: rows.iter().any(|row| !row.next_ttlb.is_empty()),
            marks: rows.first().map_or_else(Vec::new, |row| {
                row.progress.iter().map(|mark| mark.bytes).collect()
            }),
        }
    }

    fn head(&self) -> Vec<String> {
        let marks = self
            .marks
            .iter()
            .map(|bytes| format!("{} ms", units::show_bytes(*bytes)));
        let named = |name: &str, is_there: bool| is_there.then(|| name.to_owned());
        let always = |name: &str| named(name, true);
        [
            always("arm"),
            named("handshake", self.has_handshakes),
            named("flow", self.has_flows),
            always("TTLB ms"),
            always("change"),
            named("min…max", self.has_runs),
            named("request RTT", self.has_handshakes),
            always("TTFB ms"),
            always("TTFB RTT"),
            named("later ms", self.has_later),
        ]
        .into_iter()
        .flatten()
        .chain(marks)
        .chain(ENDS.map(str::to_owned))
        .collect()
    }
}

/// The columns at the end of each table.
const ENDS: [&str; 8] = [
    "sent",
    "lost",
    "loss",
    "episodes",
    "startup ends ms",
    "window kB",
    "link idle ms",
    "used",
];

fn cells(runs: &[&Row], ttlb: Option<f64>, base: Option<f64>, columns: &Columns) -> Vec<String> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let of_runs = |of: &dyn Fn(&Row) -> Option<f64>| median(runs.iter().map(|row| of(row)));
    let counted = |of: &dyn Fn(&Row) -> u64| {
        let value = of_runs(&|row| Some(of(row) as f64));
        // The median of an even number of runs may lie between two counts.
        figure(
            value,
            usize::from(value.is_some_and(|value| value.fract() != 0.0)),
        )
    };
    let mut cells = vec![first.label.arm.clone()];
    if columns.has_handshakes {
        cells.push(first.label.handshake.name().to_owned());
    }
    if columns.has_flows {
        cells.push((first.flow + 1).to_string());
    }
    cells.push(figure(ttlb, 1));
    let change = match (ttlb, base) {
        (Some(ttlb), Some(base)) if base > 0.0 => format!("{:+.1} %", (ttlb / base - 1.0) * 100.0),
        _ => ABSENT.to_owned(),
    };
    cells.push(change);
    if columns.has_runs {
        let all = || runs.iter().filter_map(|row| row.ttlb.map(ms));
        let least = all().fold(f64::INFINITY, f64::min);
        let most = all().fold(f64::NEG_INFINITY, f64::max);
        cells.push(if most >= least {
            format!("{least:.1}…{most:.1}")
        } else {
            ABSENT.to_owned()
        });
    }
    let in_rtts = |of: &dyn Fn(&Row) -> Option<Duration>| {
        figure(of_runs(&|row| row.in_round_trips(of(row)?)), 2)
    };
    if columns.has_handshakes {
        cells.push(in_rtts(&|row| row.first_request));
    }
    cells.push(figure(of_runs(&|row| row.ttfb.map(ms)), 1));
    cells.push(in_rtts(&|row| row.ttfb));
    if columns.has_later {
        let later = runs.iter().flat_map(|row| &row.next_ttlb);
        cells.push(figure(median(later.map(|one| one.map(ms))), 1));
    }
    for mark in 0..columns.marks.len() {
        let after = of_runs(&|row| row.progress.get(mark)?.after.map(ms));
        cells.push(figure(after, 1));
    }
    cells.push(counted(&|row| row.packets_sent));
    cells.push(counted(&|row| row.packets_lost));
    let loss = of_runs(&|row| {
        let sent = (row.packets_sent > 0).then_some(row.packets_sent as f64)?;
        Some(row.packets_lost as f64 / sent * 100.0)
    });
    cells.push(loss.map_or_else(|| ABSENT.to_owned(), |loss| format!("{loss:.2} %")));
    cells.push(counted(&|row| row.loss_episodes));
    cells.push(figure(of_runs(&|row| row.startup_exit.map(ms)), 1));
    cells.push(figure(
        of_runs(&|row| row.startup_exit_window.map(|bytes| bytes as f64 / 1e3)),
        0,
    ));
    cells.push(figure(of_runs(&|row| Some(ms(row.idle_gap_max))), 1));
    cells.push(match of_runs(&|row| row.utilisation) {
        Some(share) => format!("{:.0} %", share * 100.0),
        None => ABSENT.to_owned(),
    });
    cells
}

/// Shown for an event that did not happen.
const ABSENT: &str = "–";

fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| format!("{value:.digits$}"))
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The middle of the values, if there are all of them.
fn median(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect::<Option<_>>()?;
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values.get(middle)?;
    if values.len().is_multiple_of(2) {
        let lower = values.get(middle.checked_sub(1)?)?;
        return Some(f64::midpoint(*lower, *upper));
    }
    Some(*upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_value() {
        let of = |values: &[Option<f64>]| median(values.iter().copied());
        assert_eq!(of(&[Some(3.0), Some(1.0), Some(2.0)]), Some(2.0));
        assert_eq!(of(&[Some(4.0), Some(1.0)]), Some(2.5));
        assert_eq!(of(&[Some(4.0), None]), None);
        assert_eq!(of(&[]), None);
    }
}
