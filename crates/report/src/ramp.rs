//! A ramp of an experiment: where it stands, and the sequences of its looks.
//!
//! The caller reads the decisions and computes what is drawn; the page draws it. One self-contained page without a script, light and
//! dark. Each chart is drawn twice, for screens and for phones.

use core::fmt::Write as _;

pub use crate::load::Tile;
use crate::{
    chart::{Chart, Size},
    document,
    drawing::MUTED,
    load,
    scale::{Unit, ticks},
    scene::{Color, Place, Scene},
    svg::escaped,
};

#[cfg(test)]
mod tests;

const BLUE: Color = Color::solid(0x00_5fa8);
const ORANGE: Color = Color::solid(0xc9_7b00);
const RED: Color = Color::solid(0xc8_102e);

/// The page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The title.
    pub title: String,
    /// Where the ramp stands, and why.
    pub standing: String,
    /// The last look in short.
    pub tiles: Vec<Tile>,
    /// Charts over time.
    pub sequences: Vec<Sequence>,
    /// Decisions: hours since the start, and the name.
    pub decisions: Vec<(f64, String)>,
    /// Hours until the last look.
    pub hours: f64,
    /// Tables.
    pub tables: Vec<Table>,
    /// Sentences on the method.
    pub notes: Vec<String>,
    /// Names and values for the list at the end.
    pub facts: Vec<(String, String)>,
    /// The command that made the page.
    pub command: String,
}

/// A value by looks, with its bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence {
    /// The title of the chart.
    pub title: String,
    /// A sentence below it.
    pub text: String,
    /// Whether values are percent. Otherwise they have no unit.
    pub is_percent: bool,
    /// Whether a value holds until the next look: steps in place of a line.
    pub is_stepped: bool,
    /// Looks. A look without a value, such as the first of a stage, is a gap.
    pub points: Vec<Point>,
    /// Values that decide, with their names.
    pub boundaries: Vec<(f64, String)>,
}

/// A look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Hours since the start.
    pub hours: f64,
    /// The value as it was seen.
    pub value: Option<f64>,
    /// The lower bound.
    pub low: Option<f64>,
    /// The upper bound.
    pub high: Option<f64>,
    /// A second lower bound.
    pub second: Option<f64>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The title.
    pub title: String,
    /// The header.
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Page {
    /// The page.
    #[must_use]
    pub fn html(&self) -> String {
        let mut body = document::header(&self.title, &self.standing, &[]);
        load::headline(&self.tiles, &self.command, &mut body);
        for sequence in &self.sequences {
            let title = escaped(&sequence.title);
            load::drawn(&title, |size| sequence.draw(self, size), &mut body);
            load::notes(core::slice::from_ref(&sequence.text), &mut body);
        }
        for table in &self.tables {
            let _ = writeln!(body, "<section><h2>{}</h2>", escaped(&table.title));
            document::table(&table.header, &table.rows, &mut body);
            body.push_str("</section>\n");
        }
        load::notes(&self.notes, &mut body);
        document::facts(&self.facts, &mut body);
        document::page(&self.title, &[document::STYLE, load::STYLE], &body, None)
    }
}

impl Sequence {
    /// The values that the axis covers: all that were seen and the boundaries, and bounds as far as they are not much farther.
    fn domain(&self) -> Option<(f64, f64)> {
        let finite = |value: &f64| value.is_finite();
        let seen = self.points.iter().filter_map(|point| point.value);
        let seen: Vec<f64> = seen.filter(finite).collect();
        if seen.is_empty() {
            return None;
        }
        let limits = self.boundaries.iter().map(|(value, _)| *value);
        let all = seen.iter().copied().chain(limits).filter(finite);
        let (low, high) = all.fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let room = (high - low).max(1e-9);
        let bounds = |of: fn(&Point) -> Option<f64>| {
            let bounds = self.points.iter().filter_map(of);
            bounds.filter(finite)
        };
        let lowest = bounds(|point| point.low).fold(low, f64::min);
        let highest = bounds(|point| point.high).fold(high, f64::max);
        let (low, high) = (lowest.max(low - room), highest.min(high + room));
        let margin = 0.04 * (high - low);
        Some((low - margin, high + margin))
    }

    fn draw(&self, page: &Page, size: Size) -> Option<Scene> {
        let domain = self.domain()?;
        let hours = page.hours.max(1e-3);
        let marks = ticks(domain, 5, Unit::Percent);
        let marks = marks.into_iter().map(|(value, label)| {
            let label = label.replace('-', "−");
            let label = label.trim_end_matches(" %");
            let unit = if self.is_percent { " %" } else { "" };
            (value, format!("{label}{unit}"))
        });
        let marks: Vec<(f64, String)> = marks.collect();
        let has = |of: fn(&Point) -> Option<f64>| self.points.iter().any(|one| of(one).is_some());
        let mut legend = vec![("seen", BLUE)];
        if has(|one| one.low.or(one.high)) {
            legend.push(("bounds at all looks", BLUE.with_opacity(0.35)));
        }
        if has(|one| one.second) {
            legend.push(("lower bound for futility", ORANGE));
        }
        legend.extend(self.boundaries.iter().map(|(_, name)| (name.as_str(), RED)));
        legend.push(("decisions", MUTED));
        let axes = ((0.0, hours), domain);
        let description = self.text.clone();
        let mut chart = Chart::new(size, &self.title, description, axes, &marks, &legend);
        let clamped = |value: f64| value.clamp(domain.0, domain.1);
        for stretch in self.stretches(|point| point.low.or(point.high).map(|_| *point)) {
            let edge = |point: &Point, bound: Option<f64>, end: f64| {
                chart.place(point.hours, clamped(bound.unwrap_or(end)))
            };
            let low = stretch.iter().map(|one| edge(one, one.low, domain.0));
            let high = stretch
                .iter()
                .rev()
                .map(|one| edge(one, one.high, domain.1));
            let outline = low.chain(high).collect();
            chart.area(outline, BLUE.with_opacity(0.18));
        }
        for (at, _) in &page.decisions {
            let line = [domain.0, domain.1].map(|value| chart.place(*at, value));
            chart.line(line.to_vec(), MUTED, 1.0);
        }
        for (value, _) in &self.boundaries {
            let line = [0.0, hours].map(|at| chart.place(at, *value));
            chart.line(line.to_vec(), RED, 1.2);
        }
        let second = self.stretches(|point| point.second.map(|value| (point.hours, value)));
        let place = |(at, value): &(f64, f64)| chart.place(*at, clamped(*value));
        let second = second.iter().map(|one| one.iter().map(place).collect());
        let second: Vec<Vec<Place>> = second.collect();
        chart.lines(second, ORANGE, 1.2);
        let seen = self.stretches(|point| point.value.map(|value| (point.hours, value)));
        let lines = seen.iter().map(|stretch| {
            let mut line: Vec<Place> = Vec::new();
            for (at, value) in stretch {
                let place = chart.place(*at, clamped(*value));
                if let (true, Some((_, before))) = (self.is_stepped, line.last()) {
                    line.push((place.0, *before));
                }
                line.push(place);
            }
            line
        });
        let lines: Vec<Vec<Place>> = lines.collect();
        chart.lines(lines, BLUE, 2.0);
        chart.names(&page.decisions);
        chart.bottom(&times(hours, size));
        Some(chart.scene())
    }

    /// What there is at looks in a row, without the gaps between.
    fn stretches<T>(&self, of: impl Fn(&Point) -> Option<T>) -> Vec<Vec<T>> {
        let mut stretches = vec![Vec::new()];
        for point in &self.points {
            match (of(point), stretches.last_mut()) {
                (Some(one), Some(stretch)) => stretch.push(one),
                _ => stretches.push(Vec::new()),
            }
        }
        stretches.retain(|stretch| !stretch.is_empty());
        stretches
    }
}

/// The ticks of a time axis: minutes, hours or days.
fn times(hours: f64, size: Size) -> Vec<(f64, String)> {
    let wanted = if size == Size::Wide { 9 } else { 4 };
    let (factor, unit) = match hours {
        72.0.. => (24.0, "d"),
        2.0.. => (1.0, "h"),
        _ => (1.0 / 60.0, "min"),
    };
    ticks((0.0, hours / factor), wanted, Unit::Percent)
        .into_iter()
        .map(|(value, label)| {
            let label = label.trim_end_matches(" %");
            (value * factor, format!("{label} {unit}"))
        })
        .collect()
}
