//! Time to last byte against packet loss: a chart for each size, a line for each arm.
//!
//! One self-contained page without a script, light and dark. Each chart is drawn twice, for screens and for phones.

use core::fmt::Write as _;

use serde_json::{Value, json};

use crate::{
    document,
    figure::{Axis, Figure, Look, Mark, Point, Scale, Series, Size},
    scale::Unit,
    statistics::{Counts, bootstrap::apart},
    svg::{self, escaped},
};

#[cfg(test)]
mod tests;

/// Transfers of objects of some sizes over paths that lose some shares of the packets.
#[derive(Clone, Debug, Default)]
pub struct LossStudy {
    /// The title of the page.
    pub title: String,
    /// The line below it.
    pub subtitle: String,
    /// Notes shown before the charts.
    pub warnings: Vec<String>,
    /// The settings of the run, as names and values.
    pub facts: Vec<(String, String)>,
    /// Names of the arms, at most [`Self::ARMS_MAX`].
    pub arms: Vec<String>,
    /// Sizes of objects, in bytes.
    pub sizes: Vec<u64>,
    /// Shares of packets lost, 0 to 1, in ascending order.
    pub losses: Vec<f64>,
    /// Times to last byte in microseconds by size, arm and loss (the last index is the fastest); `None` for a transfer that was
    /// not complete in time.
    pub times: Vec<Vec<Option<u64>>>,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// The median of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Median {
    /// The number of transfers.
    pub transfers: u64,
    /// Those that were not complete in time.
    pub incomplete: u64,
    /// The median in ms, of all transfers; `None` if half of them or more are incomplete.
    pub median_ms: Option<f64>,
    /// Its 95 % interval (percentile bootstrap); `None` with fewer than [`LossStudy::INTERVAL_MIN`] transfers, or if an end of it is
    /// an incomplete transfer.
    pub interval_ms: Option<(f64, f64)>,
}

const REPLICATES: usize = 2000;

impl LossStudy {
    /// Maximum number of arms: the number of colours.
    pub const ARMS_MAX: usize = Look::COUNT;
    /// The fewest transfers of a cell with an interval.
    pub const INTERVAL_MIN: u64 = 10;

    /// The place of a cell in [`Self::times`].
    pub const fn place(&self, size: usize, arm: usize, loss: usize) -> usize {
        (size * self.arms.len() + arm) * self.losses.len() + loss
    }

    /// The median of a cell, with its interval.
    pub fn median(&self, size: usize, arm: usize, loss: usize) -> Median {
        let place = self.place(size, arm, loss);
        let Some(times) = self.times.get(place).filter(|times| !times.is_empty()) else {
            return Median::default();
        };
        let counts = Counts::of(times.iter().copied());
        let millis = |micros: u64| micros as f64 / 1e3;
        let interval = || {
            let seed = self.seed.wrapping_add(place as u64);
            let resampled = apart(&[&counts], &[0.5], REPLICATES, seed);
            let mut medians: Vec<u64> = resampled
                .iter()
                .map(|replicate| replicate[0][0].unwrap_or(u64::MAX))
                .collect();
            medians.sort_unstable();
            let at = |share: f64| medians[(share * REPLICATES as f64) as usize];
            let (low, high) = (at(0.025), at(0.975));
            (high < u64::MAX).then(|| (millis(low), millis(high)))
        };
        Median {
            transfers: counts.total(),
            incomplete: counts.unfinished(),
            median_ms: counts.percentile(0.5).map(millis),
            interval_ms: (counts.total() >= Self::INTERVAL_MIN)
                .then(interval)
                .flatten(),
        }
    }

    /// The medians as JSON: `schema`, `arms`, and `cells` with `size`, `loss`, `arm`, `transfers`, `incomplete`, `ttlb_ms_median`
    /// and `ttlb_ms_ci95`, which are absent if unknown.
    pub fn json(&self) -> Value {
        let mut cells = Vec::new();
        for (size, bytes) in self.sizes.iter().enumerate() {
            for (loss, share) in self.losses.iter().enumerate() {
                for (arm, name) in self.arms.iter().enumerate() {
                    let median = self.median(size, arm, loss);
                    let mut cell = json!({
                        "size": bytes,
                        "loss": share,
                        "arm": name,
                        "transfers": median.transfers,
                        "incomplete": median.incomplete,
                    });
                    if let Some(ms) = median.median_ms {
                        cell["ttlb_ms_median"] = json!(ms);
                    }
                    if let Some((low, high)) = median.interval_ms {
                        cell["ttlb_ms_ci95"] = json!([low, high]);
                    }
                    cells.push(cell);
                }
            }
        }
        json!({"schema": "lastbyte-compare-loss-1", "arms": self.arms, "cells": cells})
    }

    /// The chart of a size, as SVG.
    pub fn svg(&self, size: usize) -> String {
        svg::document(&self.figure(size).screen(Size::Wide))
    }

    fn size_name(&self, size: usize) -> String {
        lastbyte_units::show_bytes(self.sizes.get(size).copied().unwrap_or_default())
    }

    /// Whether a median of a size has an interval.
    pub fn has_intervals(&self, size: usize) -> bool {
        let mut arms = 0..self.arms.len();
        arms.any(|arm| {
            let mut losses = 0..self.losses.len();
            losses.any(|loss| self.median(size, arm, loss).interval_ms.is_some())
        })
    }

    /// The chart of a size for print.
    pub fn figure(&self, size: usize) -> Figure {
        let share = |loss: usize| self.losses[loss] * 100.0;
        let arms = self.arms.iter().enumerate().map(|(arm, name)| {
            let points = (0..self.losses.len()).map(|loss| {
                let cell = self.median(size, arm, loss);
                Point {
                    y_bounds: cell.interval_ms,
                    // A median that is not known is a gap.
                    ..Point::new(share(loss), cell.median_ms.unwrap_or(f64::NAN))
                }
            });
            Series {
                name: name.clone(),
                look: Look::of(arm),
                mark: Mark::Estimates,
                points: points.collect(),
            }
        });
        let series: Vec<Series> = arms.collect();
        let points = || series.iter().flat_map(|one| &one.points);
        let bounds = points().flat_map(|point| {
            let (low, high) = point.y_bounds.unwrap_or((point.y, point.y));
            [point.y, low, high]
        });
        let all: Vec<f64> = bounds.filter(|ms| *ms > 0.0).collect();
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(0.0, f64::max);
        let domain = if low > high {
            (100.0, 1000.0)
        } else {
            (low / 1.1, high * 1.1)
        };
        let end = self.losses.last().copied().unwrap_or_default().max(1e-6) * 100.0;
        let x = Axis {
            scale: Scale::Linear(Unit::Percent),
            domain: (0.0, end * 1.02),
        };
        let y = Axis {
            scale: Scale::Logarithmic(Unit::Milliseconds),
            domain,
        };
        let title = format!("Time to last byte of {} against loss", self.size_name(size));
        let interval = if self.has_intervals(size) {
            ", with its 95 % interval"
        } else {
            ""
        };
        let time = format!(
            "median time to last byte of {}{interval}",
            self.size_name(size)
        );
        let captions = ("packets lost", time.as_str());
        Figure {
            description: format!("Median{interval}; the vertical axis is logarithmic"),
            ..Figure::single(&self.size_name(size), &title, captions, (x, y), series)
        }
    }

    /// The page.
    pub fn html(&self) -> String {
        let mut body = document::header(&self.title, &self.subtitle, &self.warnings);
        for size in 0..self.sizes.len() {
            let _ = writeln!(
                body,
                "<section><h2>{}: median time to last byte{}</h2>",
                self.size_name(size),
                if self.has_intervals(size) {
                    ", with its 95 % interval"
                } else {
                    ""
                }
            );
            for (layout, class) in [(Size::Wide, "wide"), (Size::Narrow, "narrow")] {
                let drawn = svg::inline(&self.figure(size).screen(layout));
                let _ = writeln!(body, "<div class=\"plot {class}\">{drawn}</div>");
            }
            self.table(size, &mut body);
            body.push_str("</section>\n");
        }
        document::facts(&self.facts, &mut body);
        document::page(&self.title, &[document::STYLE], &body, None)
    }

    fn table(&self, size: usize, body: &mut String) {
        body.push_str("<div class=\"scroll\"><table><thead><tr><th>loss</th>");
        for arm in &self.arms {
            let _ = write!(body, "<th>{}</th>", escaped(arm));
        }
        body.push_str("</tr></thead><tbody>\n");
        for (loss, share) in self.losses.iter().enumerate() {
            let _ = write!(body, "<tr><th>{} %</th>", share * 100.0);
            for arm in 0..self.arms.len() {
                let _ = write!(body, "<td>{}</td>", self.median(size, arm, loss).text());
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div>\n");
    }
}

impl Median {
    /// The median, its interval, and how many transfers were incomplete. A unit that all have is written once.
    pub fn text(&self) -> String {
        let time = |ms: f64| Unit::Milliseconds.format(ms);
        let mut text = self.median_ms.map_or_else(|| "–".to_owned(), time);
        if let Some((low, high)) = self.interval_ms {
            let bounds = [time(low), time(high)];
            let unit = text.find(' ').map_or("", |at| &text[at..]);
            let [low, high] = match bounds.each_ref().map(|bound| bound.strip_suffix(unit)) {
                [Some(low), Some(high)] => [low, high],
                _ => bounds.each_ref().map(String::as_str),
            };
            let interval = format!(" ({low}–{high})");
            text.push_str(&interval);
        }
        if self.incomplete > 0 {
            let _ = write!(text, ", {} incomplete", self.incomplete);
        }
        text
    }
}
