//! A ramp of an experiment: where it stands, and the sequences of its looks.
//!
//! The caller reads the decisions and computes what is drawn; the page draws it. One self-contained page without a script, light and
//! dark. Each chart is drawn twice, for screens and for phones.

use core::fmt::Write as _;

pub use crate::load::Tile;
use crate::{
    document,
    figure::{self, Axis, Figure, Look, Mark, Scale, Series},
    load,
    scale::Unit,
    scene::Color,
    svg::escaped,
};

#[cfg(test)]
mod tests;

const BLUE: u32 = 0x00_5fa8;
const ORANGE: u32 = 0xc9_7b00;
const RED: u32 = 0xc8_102e;

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
    pub fn html(&self) -> String {
        let mut body = document::header(&self.title, &self.standing, &[]);
        load::headline(&self.tiles, &self.command, &mut body);
        let (drawn, others): (Vec<_>, Vec<_>) =
            self.sequences.iter().partition(|one| one.has_course());
        for sequence in drawn {
            let figure = sequence.figure(self);
            load::chart(&escaped(&sequence.title), figure.as_ref(), &mut body);
            load::notes(core::slice::from_ref(&sequence.text), &mut body);
        }
        if !others.is_empty() {
            let names: Vec<&str> = others.iter().map(|one| one.title.as_str()).collect();
            let text = format!(
                "Without a chart, since fewer than two looks have a value: {}.",
                names.join(", ")
            );
            load::notes(&[text], &mut body);
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

impl Point {
    /// The bounds, of which one may be missing.
    fn bounds(&self) -> Option<(f64, f64)> {
        let (low, high) = (self.low, self.high);
        low.or(high)?;
        Some((
            low.unwrap_or(f64::NEG_INFINITY),
            high.unwrap_or(f64::INFINITY),
        ))
    }
}

impl Sequence {
    /// Whether there is a chart: one value has no course.
    fn has_course(&self) -> bool {
        let values = self.points.iter().filter_map(|point| point.value);
        values.filter(|value| value.is_finite()).count() > 1
    }

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
        // The names of decisions are at the top, above all that is drawn.
        Some((low - margin, high + 3.0 * margin))
    }

    /// The chart over time, in the unit that fits; `None` without a value.
    fn figure(&self, page: &Page) -> Option<Figure> {
        let domain = self.domain()?;
        let hours = page.hours.max(1e-3);
        let (length, unit) = match hours {
            72.0.. => (24.0, "days"),
            2.0.. => (1.0, "hours"),
            _ => (1.0 / 60.0, "minutes"),
        };
        let points = |of: fn(&Point) -> Option<f64>| {
            let points = self.points.iter();
            points
                .map(move |one| figure::Point::new(one.hours / length, of(one).unwrap_or(f64::NAN)))
        };
        let line = |name: &str, look, points| Series {
            name: name.to_owned(),
            look,
            mark: Mark::Line,
            points,
        };
        let mut series = Vec::new();
        for ((value, name), place) in self.boundaries.iter().zip(1..) {
            let ends = [0.0, hours / length].map(|at| figure::Point::new(at, *value));
            let look = Look {
                color: Color::solid(RED),
                ..Look::of(place)
            };
            series.push(line(name, look, ends.to_vec()));
        }
        if self.points.iter().any(|one| one.second.is_some()) {
            let second = points(|one| one.second).collect();
            series.push(line(
                "lower bound for futility",
                Look::solid(ORANGE),
                second,
            ));
        }
        let bounded = points(|one| one.value).zip(&self.points);
        let bounded = bounded.map(|(point, of)| figure::Point {
            y_bounds: of.bounds(),
            ..point
        });
        let has_bounds = self.points.iter().any(|one| one.bounds().is_some());
        series.push(Series {
            mark: if self.is_stepped {
                Mark::Steps
            } else {
                Mark::Line
            },
            ..line(
                if has_bounds {
                    "seen, with bounds at all looks"
                } else {
                    "seen"
                },
                Look::solid(BLUE),
                bounded.collect(),
            )
        });
        let x = Axis {
            scale: Scale::Linear(Unit::Number),
            domain: (0.0, hours / length),
        };
        let y = Axis {
            scale: Scale::Linear(if self.is_percent {
                Unit::Percent
            } else {
                Unit::Number
            }),
            domain,
        };
        let captions = (&*format!("{unit} since the first look"), "");
        let mut figure = Figure::single("ramp", &self.title, captions, (x, y), series);
        figure.description.clone_from(&self.text);
        let decisions = page.decisions.iter();
        figure.panels[0].marks = decisions
            .map(|(at, name)| (at / length, name.clone()))
            .collect();
        Some(figure)
    }
}
