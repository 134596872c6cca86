//! A prediction of what another algorithm would have done to the connections of a log: the check first, then the answer.
//!
//! The caller computes it; the page draws it. One self-contained page without a script, light and dark.

use core::fmt::Write as _;

pub use crate::load::Tile;
use crate::{
    chart::{Chart, Size},
    document,
    drawing::MUTED,
    load,
    scale::Changes,
    scene::{Color, Scene},
    svg::escaped,
};

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

const COLORS: [u32; 4] = [0x00_5fa8, 0xc9_7b00, 0x00_8a65, 0xc8_102e];

impl Page {
    /// The page.
    #[must_use]
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
            load::drawn(&escaped(&self.title), |size| Some(self.draw(size)), body);
        } else {
            let _ = writeln!(body, "<section><h2>{}</h2></section>", escaped(&self.title));
        }
        if !self.text.is_empty() {
            let _ = writeln!(body, "<p>{}</p>", escaped(&self.text));
        }
        if !self.rows.is_empty() {
            document::table(&self.header, &self.rows, body);
        }
    }

    /// Changes on the horizontal axis, percentiles on the vertical one, as on the page of an experiment.
    fn draw(&self, size: Size) -> Scene {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let values = points().flat_map(|(_, value, low, high)| [*value, *low, *high]);
        let values = values.filter(|value| value.is_finite());
        let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let margin = 0.04 * (high - low).max(1.0);
        let domain = (low - margin, high + margin);
        let marks: Vec<(f64, String)> = [5.0, 25.0, 50.0, 75.0, 95.0]
            .map(|share| (share, format!("P{share}")))
            .to_vec();
        let colors = COLORS.map(Color::solid);
        let legend: Vec<(&str, Color)> = self
            .curves
            .iter()
            .zip(colors.iter().cycle())
            .map(|(curve, color)| (curve.name.as_str(), *color))
            .collect();
        let mut chart = Chart::new(
            size,
            &self.title,
            self.text.clone(),
            (domain, (0.0, 100.0)),
            &marks,
            &legend,
        );
        let zero = [chart.place(0.0, 0.0), chart.place(0.0, 100.0)];
        chart.line(zero.to_vec(), MUTED, 1.0);
        for (curve, color) in self.curves.iter().zip(colors.iter().cycle()) {
            let known = curve.points.iter().filter(|point| point.1.is_finite());
            let known: Vec<_> = known.collect();
            let lower = known.iter().map(|point| chart.place(point.2, point.0));
            let upper = known
                .iter()
                .rev()
                .map(|point| chart.place(point.3, point.0));
            let outline = lower.chain(upper).collect();
            chart.area(outline, color.with_opacity(0.18));
            let line = known.iter().map(|point| chart.place(point.1, point.0));
            let line = line.collect();
            chart.line(line, *color, 2.2);
        }
        let wanted = if size == Size::Wide { 9 } else { 4 };
        chart.bottom(&Changes::ticks(domain, wanted));
        chart.scene()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page {
            title: "a <log>".to_owned(),
            answers: vec![Section {
                title: "Answer".to_owned(),
                curves: vec![Curve {
                    name: "bbr".to_owned(),
                    points: vec![(5.0, -1.0, -2.0, 0.5), (95.0, f64::NAN, 0.0, 0.0)],
                }],
                header: vec!["arm".to_owned()],
                rows: vec![vec!["bbr".to_owned()]],
                ..Section::default()
            }],
            ..Page::default()
        }
    }

    #[test]
    fn a_page_with_a_reason_has_no_answer() {
        let mut page = page();
        assert!(page.html().contains("<th>bbr</th>"));
        page.reasons.push("the check failed".to_owned());
        let html = page.html();
        assert!(html.contains("the check failed") && !html.contains("<th>bbr</th>"));
    }

    #[test]
    fn texts_are_escaped_and_values_that_are_no_numbers_are_left_out() {
        let html = page().html();
        assert!(html.contains("a &lt;log&gt;") && !html.contains("NaN"));
    }
}
