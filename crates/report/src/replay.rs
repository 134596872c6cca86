//! A prediction of what another algorithm would have done to the connections of a log: the check first, then the answer.
//!
//! The caller computes it; the page draws it. One self-contained page without a script, light and dark.

use core::fmt::Write as _;

pub use crate::load::Tile;
use crate::{
    document,
    figure::{Axis, Figure, Look, Mark, Point, Scale, Series},
    load,
    svg::escaped,
};

#[cfg(test)]
mod tests;

/// The page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The title.
    pub title: String,
    /// What the page is.
    pub subtitle: String,
    /// Why nothing can be said. The sections of the answer are left out if there is a reason.
    pub reasons: Vec<String>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// The answer in short.
    pub tiles: Vec<Tile>,
    /// Sections of the check.
    pub checks: Vec<Section>,
    /// Sections of the answer.
    pub answers: Vec<Section>,
    /// Sentences on the method.
    pub notes: Vec<String>,
    /// Names and values for the list at the end.
    pub facts: Vec<(String, String)>,
    /// The command that made the page.
    pub command: String,
}

/// A chart with a sentence and a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The title.
    pub title: String,
    /// A sentence.
    pub text: String,
    /// Curves of changes, in percent, by percentile. No chart without them.
    pub curves: Vec<Curve>,
    /// The header of the table.
    pub header: Vec<String>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// Changes by percentile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// The name.
    pub name: String,
    /// Percentile, change, and the interval of the change, all in percent.
    pub points: Vec<(f64, f64, f64, f64)>,
}

impl Page {
    /// The page.
    pub fn html(&self) -> String {
        let mut body = document::header(&self.title, &self.subtitle, &self.reasons);
        load::headline(&self.tiles, &self.command, &mut body);
        let mut warnings = self.warnings.clone();
        if !self.reasons.is_empty() {
            warnings.insert(0, "For these reasons there is no prediction.".to_owned());
        }
        load::notes(&warnings, &mut body);
        let answers = if self.reasons.is_empty() {
            self.answers.as_slice()
        } else {
            &[]
        };
        for section in self.checks.iter().chain(answers) {
            section.write(&mut body);
        }
        load::notes(&self.notes, &mut body);
        document::facts(&self.facts, &mut body);
        document::page(&self.title, &[document::STYLE, load::STYLE], &body, None)
    }
}

impl Section {
    fn write(&self, body: &mut String) {
        if self.curves.iter().any(|curve| !curve.points.is_empty()) {
            load::chart(&escaped(&self.title), Some(&self.figure()), body);
        } else {
            let _ = writeln!(body, "<section><h2>{}</h2></section>", escaped(&self.title));
        }
        if !self.text.is_empty() {
            let _ = writeln!(body, "<p>{}</p>", document::with_code(&self.text));
        }
        if !self.rows.is_empty() {
            document::table(&self.header, &self.rows, body);
        }
    }

    /// Changes on the horizontal axis, percentiles on the vertical one, as on the page of an experiment.
    fn figure(&self) -> Figure {
        let points = self.curves.iter().flat_map(|curve| &curve.points);
        let values = points.flat_map(|(_, value, low, high)| [*value, *low, *high]);
        let values = values.filter(|value| value.is_finite());
        let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let margin = 0.04 * (high - low).max(1.0);
        let x = Axis {
            scale: Scale::Changes,
            domain: (low - margin, high + margin),
        };
        let series = self.curves.iter().enumerate().map(|(place, curve)| {
            let known = curve.points.iter().filter(|point| point.1.is_finite());
            let points = known.map(|(share, value, low, high)| Point {
                x_bounds: Some((*low, *high)),
                ..Point::new(*value, *share)
            });
            Series {
                name: curve.name.clone(),
                look: Look::of(place),
                mark: Mark::Line,
                points: points.collect(),
            }
        });
        let axes = (x, Axis::percentiles());
        let mut figure = Figure::single("replay", &self.title, ("", ""), axes, series.collect());
        figure.description.clone_from(&self.text);
        figure.panels[0].guides = vec![[(0.0, 0.0), (0.0, 100.0)]];
        figure
    }
}
