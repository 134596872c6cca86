//! The table of `lastbyte sim`: a row an arm and kind of handshake, for each network and size.

use core::time::Duration;

use comfy_table::{Cell, CellAlignment, Table, presets};
use lastbyte_sim::{Handshake, row::Row, units};

/// Tables of rows, which stand in order of network, size, arm, handshake and seed.
pub(super) fn tables(rows: &[Row]) -> String {
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
        text.push('\n');
        text.push_str(&table(group));
        text.push('\n');
    }
    text
}

fn table(rows: &[Row]) -> String {
    let arms: Vec<&[Row]> = rows
        .chunk_by(|one, next| {
            one.label.arm == next.label.arm && one.label.handshake == next.label.handshake
        })
        .collect();
    let columns = Columns::of(rows, &arms);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let head = columns.head();
    table.set_header(head.iter().map(Cell::new));
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
            table.add_row(cells(&runs, ttlb, base, &columns));
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 1));
    }
    table.trim_fmt()
}

/// Which columns there are, beside those of all tables.
struct Columns {
    has_handshakes: bool,
    has_flows: bool,
    has_runs: bool,
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
            has_runs: arms
                .iter()
                .any(|rows| rows.iter().filter(|row| row.flow == 0).count() > 1),
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
            named("least…most", self.has_runs),
            named("asked RTT", self.has_handshakes),
            always("TTFB ms"),
            always("TTFB RTT"),
        ]
        .into_iter()
        .flatten()
        .chain(marks)
        .chain(ENDS.map(str::to_owned))
        .collect()
    }
}

/// What each table ends with.
const ENDS: [&str; 8] = [
    "sent",
    "lost",
    "loss",
    "episodes",
    "startup ends ms",
    "window kB",
    "idle ms",
    "used",
];

fn cells(runs: &[&Row], ttlb: Option<f64>, base: Option<f64>, columns: &Columns) -> Vec<Cell> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let mean =
        |of: &dyn Fn(&Row) -> f64| runs.iter().map(|row| of(row)).sum::<f64>() / runs.len() as f64;
    let of_runs = |of: &dyn Fn(&Row) -> Option<f64>| median(runs.iter().map(|row| of(row)));
    let sent = mean(&|row| row.packets_sent as f64);
    let lost = mean(&|row| row.packets_lost as f64);
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
        cells.push(in_rtts(&|row| row.asked));
    }
    cells.push(figure(of_runs(&|row| row.ttfb.map(ms)), 1));
    cells.push(in_rtts(&|row| row.ttfb));
    for mark in 0..columns.marks.len() {
        let after = of_runs(&|row| row.progress.get(mark)?.after.map(ms));
        cells.push(figure(after, 1));
    }
    let is_whole = runs.len() == 1;
    cells.push(figure(Some(sent), usize::from(!is_whole)));
    cells.push(figure(Some(lost), usize::from(!is_whole)));
    cells.push(format!(
        "{:.2} %",
        if sent > 0.0 { lost / sent * 100.0 } else { 0.0 }
    ));
    cells.push(figure(
        Some(mean(&|row| row.loss_episodes as f64)),
        usize::from(!is_whole),
    ));
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
    cells.into_iter().map(Cell::new).collect()
}

/// What did not happen.
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
    fn the_median_is_the_middle_of_all() {
        let of = |values: &[Option<f64>]| median(values.iter().copied());
        assert_eq!(of(&[Some(3.0), Some(1.0), Some(2.0)]), Some(2.0));
        assert_eq!(of(&[Some(4.0), Some(1.0)]), Some(2.5));
        assert_eq!(of(&[Some(4.0), None]), None);
        assert_eq!(of(&[]), None);
    }
}
