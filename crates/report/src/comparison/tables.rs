//! Tables of the page.

use core::fmt::Write;

use super::{
    analysis::{Analysis, Group, LossGroup, MeasureTable, TABLE},
    format::{
        self, ABSENT, count, counted, hundredths, mean_value, p_value, percent, percent_range,
        points, points_range, share, share_range, signed,
    },
    parts::Parts,
    paths::Paths,
    queries::PARTS,
    text::{self, Significance},
};
use crate::{
    figure::Look,
    statistics::{
        Counts, Z_95,
        bootstrap::Interval,
        tests_of::{self, Estimate},
    },
    svg::escaped,
};

/// A table being written.
pub(super) struct Table {
    text: String,
}

impl Table {
    pub(super) fn new(caption: &str, columns: &[&str]) -> Self {
        let mut text = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
            escaped(caption)
        );
        for column in columns {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "<th scope=\"col\">{}</th>", escaped(column));
        }
        text.push_str("</tr></thead><tbody>\n");
        Self { text }
    }

    /// A row: its head, the index of its arm for the colour, and cells of markup.
    pub(super) fn row(&mut self, head: &str, arm: Option<usize>, cells: &[String]) {
        let _ = write!(self.text, "<tr><th scope=\"row\">{}</th>", named(head, arm));
        for cell in cells {
            if cell.starts_with("<td") {
                self.text.push_str(cell);
            } else {
                let _ = write!(self.text, "<td>{cell}</td>");
            }
        }
        self.text.push_str("</tr>\n");
    }

    /// A row that is a heading for those below it.
    pub(super) fn part(&mut self, head: &str, columns: usize) {
        let _ = writeln!(
            self.text,
            "<tr class=\"part\"><th scope=\"rowgroup\" colspan=\"{columns}\">{}</th></tr>",
            escaped(head)
        );
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</tbody></table></div>\n");
        self.text
    }
}

/// A name with the mark of its arm's colour.
pub(super) fn named(name: &str, arm: Option<usize>) -> String {
    match arm {
        Some(arm) => format!(
            "<i class=\"dot a{}\" aria-hidden=\"true\"></i>{}",
            dot(arm),
            escaped(name)
        ),
        None => escaped(name),
    }
}

/// The number of an arm's colour: 0 is the baseline's.
pub(super) fn dot(arm: usize) -> usize {
    match arm.checked_sub(1) {
        None => 0,
        Some(place) => place % Look::COUNT + 1,
    }
}

/// A change with its interval, coloured if it is significant by the joint band.
pub(super) fn change(cell: &Interval) -> String {
    let range = text::range_or_why(cell);
    let Some(estimate) = cell.estimate else {
        return format!("{ABSENT} <small>{range}</small>");
    };
    let class = match text::significance(cell) {
        Significance::Faster => " class=\"faster\"",
        Significance::Slower => " class=\"slower\"",
        Significance::None => "",
    };
    format!(
        "<td{class}>{} <small>{range}</small></td>",
        percent(estimate)
    )
}

/// An estimate with its interval, coloured if it is significant; `is_better` is that of an increase.
pub(super) fn judged(
    value: Option<Estimate>,
    is_better: bool,
    write: impl Fn(f64) -> String,
    range: impl Fn((f64, f64)) -> String,
) -> String {
    let Some(one) = value else {
        return ABSENT.to_owned();
    };
    let class = match (one.excludes_zero(), (one.value > 0.0) == is_better) {
        (false, _) => "",
        (true, true) => " class=\"faster\"",
        (true, false) => " class=\"slower\"",
    };
    format!(
        "<td{class}>{} <small>{}</small></td>",
        write(one.value),
        range(one.interval)
    )
}

/// A value, or the sign of an absent one.
pub(super) fn known<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| ABSENT.to_owned(), write)
}

/// A p without its equals sign.
fn bare_p(p: f64) -> String {
    p_value(p).trim_start_matches("=\u{a0}").to_owned()
}

/// An estimate with its interval.
pub(super) fn estimate(
    value: Option<Estimate>,
    write: fn(f64) -> String,
    range: fn((f64, f64)) -> String,
) -> String {
    known(value, |value| {
        let (value, range) = (write(value.value), range(value.interval));
        format!("{value} <small>{range}</small>")
    })
}

/// TTLB: mean and percentiles, a row per arm.
pub(super) fn times(analysis: &Analysis, group: &Group, caption: &str) -> String {
    let columns: Vec<&str> = ["arm", "mean"]
        .into_iter()
        .chain(TABLE.iter().map(|(_, name)| *name))
        .collect();
    let mut table = Table::new(caption, &columns);
    for (arm, one) in analysis.arms.iter().enumerate() {
        let times = &group.times[arm];
        let unit = &analysis.settings.metric.unit;
        let mut cells = vec![mean_value(times.mean(), unit)];
        if arm > 0 {
            cells[0] = estimate(group.means[arm], percent, percent_range);
        }
        for (percentile, _) in TABLE {
            cells.push(if arm == 0 {
                format::value(times.percentile(percentile as f64 / 100.0), unit)
            } else {
                change(&group.curves[arm][percentile - 1])
            });
        }
        table.row(&one.name, Some(arm), &cells);
    }
    table.finish()
}

/// Completed transfers by arm, with percentiles of all connections and of the completed ones.
pub(super) fn finished_only(analysis: &Analysis) -> String {
    let group = &analysis.groups[0];
    let columns = [
        "arm",
        "connections",
        "completed",
        "share",
        "difference",
        "P50, all",
        "P50, completed",
        "P95, all",
        "P95, completed",
    ];
    let mut table = Table::new(
        "Completed transfers, and the effect of leaving out the others",
        &columns,
    );
    let ended: Vec<Counts> = group.times.iter().map(Counts::finished_only).collect();
    for (arm, one) in analysis.arms.iter().enumerate() {
        let times = &group.times[arm];
        let completed = tests_of::share(times.finished(), times.total(), Z_95);
        let mut cells = vec![
            count(times.total()),
            count(times.finished()),
            known(completed, |share| {
                format!("{:.2}\u{a0}%", share.value * 100.0)
            }),
            if arm == 0 {
                String::new()
            } else {
                let difference = text::success_difference(analysis, arm, Z_95);
                let scaled = difference.map(|one| Estimate {
                    value: one.value * 100.0,
                    interval: (one.interval.0 * 100.0, one.interval.1 * 100.0),
                });
                estimate(scaled, points, points_range)
            },
        ];
        for share in [0.5, 0.95] {
            for counts in [&group.times, &ended] {
                let micros = counts[arm].percentile(share);
                cells.push(match (arm, micros, counts[0].percentile(share)) {
                    (0, micros, _) => format::value(micros, "ms"),
                    (_, Some(micros), Some(base)) if base > 0 => {
                        percent(micros as f64 / base as f64 - 1.0)
                    }
                    _ => ABSENT.to_owned(),
                });
            }
        }
        table.row(&one.name, Some(arm), &cells);
    }
    table.finish()
}

/// The mean parts of times, and their differences.
pub(super) fn parts(analysis: &Analysis, parts: &Parts) -> String {
    let mut columns = vec!["arm", "transfers"];
    columns.extend(PARTS.iter().map(|(_, name)| *name));
    let caption = format!(
        "Mean parts of the TTLB of {} in ms, and the difference of the other arms",
        analysis.arms[0].name
    );
    let mut table = Table::new(&caption, &columns);
    let all = parts.means.first().into_iter().flatten();
    for ((arm, one), times) in analysis.arms.iter().enumerate().zip(all) {
        let mut cells = vec![count(parts.counts[arm])];
        for (part, (time, difference)) in times.iter().zip(parts.differences[arm]).enumerate() {
            cells.push(if arm == 0 && parts.is_known(part) {
                format!("{time:.1}")
            } else {
                let one = |value| signed(value, 1);
                let range = |(low, high)| format!("{} to\u{a0}{}", one(low), one(high));
                judged(difference, false, one, range)
            });
        }
        table.row(&one.name, Some(arm), &cells);
    }
    table.finish()
}

/// The change of each path: shares of slower and faster paths, and percentiles of the change.
pub(super) fn paths(analysis: &Analysis, paths: &Paths) -> String {
    let percentiles = [5, 25, 50, 75, 90, 95];
    let heads = percentiles.map(|percentile| format!("P{percentile}"));
    let metric = &analysis.settings.metric;
    let sides = [metric.more(), metric.less()].map(|side| format!("{side} by > 5 %"));
    let mut columns = vec!["arm", "paths", &sides[0], &sides[1]];
    columns.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(
        &format!("Change of {} over the same path", metric.name),
        &columns,
    );
    for (arm, one) in analysis.arms.iter().enumerate().skip(1) {
        let mut cells = vec![
            count(paths.counts[arm]),
            estimate(paths.slower[arm], share, share_range),
            estimate(paths.faster[arm], share, share_range),
        ];
        for percentile in percentiles {
            cells.push(change(&paths.curves[arm][percentile - 1]));
        }
        table.row(&one.name, Some(arm), &cells);
    }
    table.finish()
}

/// Subgroups: connections and tests of each arm.
pub(super) fn subgroups(analysis: &Analysis, groups: &[&Group], caption: &str) -> String {
    let metric = &analysis.settings.metric;
    let less_in = format!("{} in", metric.less());
    let columns = [
        "arm",
        "connections",
        "baseline",
        "mean",
        "P25",
        "P50",
        "P90",
        &less_in,
        "p (Holm)",
    ];
    let mut table = Table::new(caption, &columns);
    for group in groups {
        let base = group.times[0].percentile(0.5);
        let head = format!(
            "{} · {} P50 {}",
            group.title,
            analysis.arms[0].name,
            format::value(base, &metric.unit)
        );
        table.part(&head, columns.len());
        for (arm, one) in analysis.arms.iter().enumerate().skip(1) {
            let rank = group.ranks[arm];
            let p = known(group.adjusted[arm], bare_p);
            let class = match rank.filter(|_| group.differs(arm)) {
                Some(rank) if rank.share_less > 0.5 => " class=\"faster\"",
                Some(rank) if rank.share_less < 0.5 => " class=\"slower\"",
                _ => "",
            };
            let small = if group.is_small(arm) {
                " <small>small</small>"
            } else {
                ""
            };
            let mut cells = vec![
                format!("{}{small}", count(group.times[arm].total())),
                count(group.times[0].total()),
                estimate(group.means[arm], percent, percent_range),
            ];
            for percentile in [25, 50, 90] {
                let cell = Interval {
                    together: None,
                    ..group.curves[arm][percentile - 1]
                };
                cells.push(change(&cell));
            }
            cells.push(known(rank, |rank| {
                format!("{:.0}\u{a0}%", rank.share_less * 100.0)
            }));
            cells.push(format!("<td{class}>{p}</td>"));
            table.row(&one.name, Some(arm), &cells);
        }
    }
    table.finish()
}

/// Packet loss, by arm and site.
pub(super) fn losses(analysis: &Analysis, groups: &[LossGroup], caption: &str) -> String {
    let columns = [
        "arm",
        "connections",
        "mean",
        "P50",
        "P90",
        "P99",
        "difference of means",
        "difference of P90",
    ];
    let mut table = Table::new(caption, &columns);
    let loss = |value: Option<f64>| known(value, |value| format!("{:.2}\u{a0}%", value / 100.0));
    for group in groups {
        if groups.len() > 1 {
            table.part(&group.title, columns.len());
        }
        for (arm, one) in analysis.arms.iter().enumerate() {
            let counts = &group.loss[arm];
            let at = |share: f64| loss(counts.percentile(share).map(|value| value as f64));
            let mut cells = vec![
                count(counts.total()),
                loss(counts.mean()),
                at(0.5),
                at(0.9),
                at(0.99),
            ];
            if arm > 0 {
                cells.push(estimate(
                    hundredths(group.differences[arm]),
                    points,
                    points_range,
                ));
                let cell = group.percentiles[arm].get(1).copied().unwrap_or_default();
                cells.push(match (cell.estimate, cell.alone) {
                    (Some(value), Some((low, high))) => {
                        format!(
                            "{} <small>{}</small>",
                            points(value / 100.0),
                            points_range((low / 100.0, high / 100.0))
                        )
                    }
                    (Some(value), None) => {
                        format!("{} <small>too few</small>", points(value / 100.0))
                    }
                    _ => ABSENT.to_owned(),
                });
            } else {
                cells.extend([String::new(), String::new()]);
            }
            table.row(&one.name, Some(arm), &cells);
        }
    }
    table.finish()
}

/// Handshake, first byte, episodes and the like.
pub(super) fn measures(analysis: &Analysis, table: &MeasureTable) -> String {
    let first = match (&table.share_of, table.unit) {
        (Some(_), _) => "share",
        (None, "") => "at least 1",
        _ => "connections",
    };
    let columns = [
        "arm",
        first,
        "mean",
        "P50",
        "P90",
        "P99",
        "difference of means",
    ];
    let caption = format!("{}: {}", table.title, table.note);
    let mut out = Table::new(&caption, &columns);
    let unit = |text: String| {
        if table.unit.is_empty() {
            text
        } else {
            format!("{text}\u{a0}{}", table.unit)
        }
    };
    let decimals = if table.unit.is_empty() { 2 } else { 0 };
    for (arm, one) in analysis.arms.iter().enumerate() {
        let counts = &table.values[arm];
        let share = match &table.share_of {
            Some(known) if known[arm] > 0 => Some(counts.total() as f64 / known[arm] as f64),
            Some(_) => None,
            None => counts.share_from(1),
        };
        let share = known(share, |share| format!("{:.1}\u{a0}%", share * 100.0));
        let mut cells = vec![
            if first == "connections" {
                count(counts.total())
            } else {
                share
            },
            known(counts.mean(), |mean| unit(format!("{mean:.decimals$}"))),
        ];
        for share in [0.5, 0.9, 0.99] {
            cells.push(known(counts.percentile(share), |value| unit(count(value))));
        }
        cells.push(match table.differences[arm] {
            None if arm == 0 => String::new(),
            None => ABSENT.to_owned(),
            Some(one) => {
                let decimals = if table.unit.is_empty() { 2 } else { 1 };
                format!(
                    "{} <small>{} to\u{a0}{}</small>",
                    unit(signed(one.value, decimals)),
                    signed(one.interval.0, decimals),
                    signed(one.interval.1, decimals)
                )
            }
        });
        out.row(&one.name, Some(arm), &cells);
    }
    out.finish()
}

/// Counts and shares.
pub(super) fn ratio(analysis: &Analysis) -> String {
    let mut table = Table::new(
        "Connections by arm",
        &[
            "arm",
            "intended share",
            "expected",
            "connections",
            "difference",
        ],
    );
    let whole: f64 = analysis.arms.iter().map(|arm| arm.share).sum();
    let total: u64 = analysis.groups[0].times.iter().map(Counts::total).sum();
    for (arm, one) in analysis.arms.iter().enumerate() {
        let here = analysis.groups[0].times[arm].total();
        let expected = total as f64 * one.share / whole;
        table.row(
            &one.name,
            Some(arm),
            &[
                format!("{:.1}\u{a0}%", one.share / whole * 100.0),
                count(expected.round() as u64),
                count(here),
                if expected > 0.0 {
                    percent(here as f64 / expected - 1.0)
                } else {
                    ABSENT.to_owned()
                },
            ],
        );
    }
    table.finish()
}

/// The tests of the numbers of connections.
pub(super) fn balance(analysis: &Analysis) -> String {
    let columns = [
        "by",
        "strata",
        "chi-squared",
        "degrees of freedom",
        "p",
        "p (Holm)",
        "farthest from expected",
    ];
    let mut table = Table::new("Balance of the arms", &columns);
    for test in &analysis.balance {
        let cell = &test.farthest;
        let head = match test.left_out {
            0 => test.by.name().to_owned(),
            some => format!(
                "{} ({} without one left out)",
                test.by.name(),
                counted(some, "connection", "connections")
            ),
        };
        table.row(
            &head,
            None,
            &[
                test.strata.to_string(),
                format!("{:.2}", test.statistic),
                test.degrees.to_string(),
                bare_p(test.p),
                bare_p(test.adjusted),
                format!(
                    "{} <small>{}: {} of {}, expected {:.0}</small>",
                    escaped(&cell.stratum),
                    escaped(&analysis.arms[cell.arm].name),
                    count(cell.count),
                    count(cell.total),
                    cell.expected
                ),
            ],
        );
    }
    table.finish()
}

/// The data of a chart as a table.
pub(super) fn curve(analysis: &Analysis, group: &Group) -> String {
    let mut columns = vec!["percentile", analysis.arms[0].name.as_str()];
    columns.extend(analysis.arms.iter().skip(1).map(|arm| arm.name.as_str()));
    let mut table = Table::new(
        &format!(
            "{} and its change: {}",
            analysis.settings.metric.name, group.title
        ),
        &columns,
    );
    for percentile in (5..=95).step_by(5).chain([97, 99]) {
        let mut cells = vec![format::value(
            group.times[0].percentile(percentile as f64 / 100.0),
            &analysis.settings.metric.unit,
        )];
        for arm in 1..analysis.arms.len() {
            cells.push(change(&group.curves[arm][percentile - 1]));
        }
        table.row(&format!("P{percentile}"), None, &cells);
    }
    table.finish()
}
