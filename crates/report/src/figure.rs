//! Figures for papers and slides: charts that are laid out for their width in print.
//!
//! A chart of a page is drawn for a screen, and its text is too small once a column of a paper has shrunk it. A [`Figure`] has
//! the same data without a layout; [`Figure::print`] lays it out for a [`Width`], as PDF and SVG:
//!
//! - all text has one height at this width, within the page, and never cut: long names are broken into lines;
//! - there is no title, which is the caption's task;
//! - lines differ by their dashes besides their colours, so that they can be told apart in greyscale, up to eight of them;
//! - text is outlines of the embedded font, so that the figure looks the same everywhere;
//! - the same data give the same bytes, without the time or the program that made them.
//!
//! [`csv`] writes what figures show, a row per point. The figures come from [`comparison`](crate::comparison),
//! [`transfer`](crate::transfer), [`compare`](crate::compare), [`loss`](crate::loss), [`load`](crate::load) and
//! [`front`](crate::front). Pages draw theirs with the same code, [`ramp`](crate::ramp) and [`replay`](crate::replay) as well.
//!
//! | file | owns |
//! |---|---|
//! | `figure/axis.rs` | from values to shares of an axis, and ticks |
//! | `figure/layout.rs` | where everything is |
//! | `pdf.rs`, `svg.rs` | the files |

use core::{fmt::Write as _, str::FromStr};

pub(crate) mod axis;
mod layout;

pub(crate) use self::axis::{Axis, Scale};
use crate::{
    pdf,
    scene::{Color, Dash, PIXELS_PER_INCH, Scene},
    svg,
};

#[cfg(test)]
pub(crate) mod tests;

/// The width of a figure in print.
///
/// ```
/// use lastbyte_report::figure::Width;
///
/// let column: Width = "3.33in".parse()?;
/// assert_eq!("84.582mm".parse::<Width>()?.inches(), column.inches());
/// assert!("3.33".parse::<Width>().is_err());
/// # Ok::<(), lastbyte_report::figure::WidthError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Width {
    inches: f64,
}

impl Width {
    /// The least width, in inches.
    pub const MIN: f64 = 1.5;
    /// The greatest width, in inches.
    pub const MAX: f64 = 24.0;

    /// The width in inches.
    pub const fn inches(self) -> f64 {
        self.inches
    }
}

/// Units of a width, per inch.
const UNITS: [(&str, f64); 4] = [("in", 1.0), ("mm", 25.4), ("cm", 2.54), ("pt", 72.0)];

impl FromStr for Width {
    type Err = WidthError;

    fn from_str(text: &str) -> Result<Self, WidthError> {
        let of = |(unit, per_inch): &(&str, f64)| {
            let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
            // Of a thousandth of a point, so that a width is the same in all units.
            Some((number / per_inch * 72e3).round() / 72e3)
        };
        let inches = UNITS.iter().find_map(of).ok_or(WidthError::Unit)?;
        if (Self::MIN..=Self::MAX).contains(&inches) {
            Ok(Self { inches })
        } else {
            Err(WidthError::Range)
        }
    }
}

/// Why a text is not a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WidthError {
    /// It is not a number with a unit of length.
    #[error("expected a number with one of the units in, mm, cm and pt: `3.33in`")]
    Unit,
    /// It is too narrow for text, or wider than any page.
    #[error("expected 1.5in to 24in")]
    Range,
}

/// Where a figure of a page is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// On screens and paper.
    Wide,
    /// On phones.
    Narrow,
}

/// A chart for print: one or more panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The name for a file, without extension.
    pub name: String,
    /// What it shows, for screen readers; neither is drawn.
    pub(crate) title: String,
    pub(crate) description: String,
    /// The captions of all horizontal and all vertical axes.
    pub(crate) captions: (String, String),
    pub(crate) arrangement: Arrangement,
    pub(crate) panels: Vec<Panel>,
}

/// How panels are arranged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Arrangement {
    /// One below the other, with one horizontal axis.
    Stacked,
    /// As many in a row as have this width in pixels.
    Grid(f32),
}

/// A plot with its axes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    /// What is above it. May be empty.
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// The height of the plot as a share of its width.
    pub(crate) height: f32,
    /// In the order of drawing.
    pub(crate) series: Vec<Series>,
    /// Thin lines from one point to another, which are not data.
    pub(crate) guides: Vec<[(f64, f64); 2]>,
    /// Vertical lines with names, in their order, which are not data.
    pub(crate) marks: Vec<(f64, String)>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Its name, in the legend and in the data.
    pub(crate) name: String,
    pub(crate) look: Look,
    pub(crate) mark: Mark,
    pub(crate) points: Vec<Point>,
}

/// What is drawn of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A line, and a band between the bounds if there are any.
    Line,
    /// Thin lines at the bounds. They are not in the legend.
    Bounds,
    /// A line that holds each value until the next.
    Steps,
    /// A small dot per point.
    Dots,
    /// A small cross per point.
    Crosses,
    /// A marker per point, with lines to its bounds.
    Estimates,
    /// A bar per point, from the lower to the upper bound on the horizontal axis.
    Bars,
}

/// The colour of a series, and its dashes and marks, which do without colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Look {
    pub(crate) color: Color,
    pub(crate) dash: Dash,
    /// Circle, square, triangle or diamond, and from 4 on the same without a filling.
    pub(crate) marker: usize,
}

impl Look {
    /// The number of looks that differ.
    pub(crate) const COUNT: usize = COLORS.len();

    /// The look of the arm with this index, the baseline of a comparison not counted.
    pub(crate) fn of(arm: usize) -> Self {
        Self {
            color: Color::solid(COLORS[arm % COLORS.len()]),
            dash: DASHES[arm % DASHES.len()],
            marker: arm % 8,
        }
    }

    pub(crate) const fn solid(rgb: u32) -> Self {
        Self {
            color: Color::solid(rgb),
            dash: DASHES[0],
            marker: 0,
        }
    }
}

/// The colours of arms, which colour-blind readers can tell apart (Okabe and Ito), darkened to be read on white.
pub(crate) const COLORS: [u32; 8] = [
    0xc9_7b00, 0x00_8a65, 0x00_5fa8, 0xc8_102e, 0x7b_4fa3, 0x2b_8cc4, 0x8a_5a00, 0x5c_6068,
];

/// The dashes of arms, in pixels: strokes and gaps.
const DASHES: [Dash; 8] = [
    &[],
    &[7.0, 3.0],
    &[2.0, 2.0],
    &[8.0, 2.5, 2.0, 2.5],
    &[14.0, 4.0],
    &[8.0, 2.0, 2.0, 2.0, 2.0, 2.0],
    &[4.0, 4.0],
    &[14.0, 3.0, 4.0, 3.0],
];

/// A point of a series, with the bounds of what it estimates. A point that is not a number is a gap; one that is infinite is drawn
/// at the edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) x_bounds: Option<(f64, f64)>,
    pub(crate) y_bounds: Option<(f64, f64)>,
}

impl Point {
    pub(crate) const GAP: Self = Self::new(f64::NAN, f64::NAN);

    /// Steps from ranges of `x` with a value of `y` each, which end where no other starts.
    pub(crate) fn steps(ranges: impl IntoIterator<Item = (f64, f64, f64)>) -> Vec<Self> {
        let mut points: Vec<Self> = Vec::new();
        let mut last = None;
        let close = |points: &mut Vec<Self>, last: Option<(f64, f64)>| {
            points.extend(last.map(|(end, value)| Self::new(end, value)));
        };
        for (start, end, value) in ranges {
            if last.is_some_and(|(before, _)| before < start) {
                close(&mut points, last);
                points.push(Self::GAP);
            }
            points.push(Self::new(start, value));
            last = Some((end, value));
        }
        close(&mut points, last);
        points
    }

    pub(crate) const fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            y,
            x_bounds: None,
            y_bounds: None,
        }
    }
}

impl Figure {
    /// A figure of one panel.
    pub(crate) fn single(
        name: &str,
        title: &str,
        captions: (&str, &str),
        (x, y): (Axis, Axis),
        series: Vec<Series>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            description: String::new(),
            captions: (captions.0.to_owned(), captions.1.to_owned()),
            arrangement: Arrangement::Stacked,
            panels: vec![Panel {
                title: String::new(),
                x,
                y,
                height: 0.62,
                series,
                guides: Vec::new(),
                marks: Vec::new(),
            }],
        }
    }

    /// The figure for a page: on screens or on phones.
    pub(crate) fn screen(&self, size: Size) -> Scene {
        let width = match size {
            Size::Wide => 1000.0,
            Size::Narrow => 350.0,
        };
        layout::scene(self, width)
    }

    /// The figure, laid out for a width.
    ///
    /// # Errors
    ///
    /// Returns [`TooHigh`] if there are so many panels that no page is as high.
    pub fn print(&self, width: Width) -> Result<Print, TooHigh> {
        let scene = layout::scene(self, width.inches as f32 * PIXELS_PER_INCH);
        let inches = (scene.height / PIXELS_PER_INCH).ceil() as u32;
        if inches > HEIGHT_MAX {
            return Err(TooHigh { inches });
        }
        Ok(Print { scene })
    }
}

/// The height of a page that readers of PDF accept, in inches (ISO 32000-1, annex C.2).
const HEIGHT_MAX: u32 = 200;

/// The error of a figure that is higher than any page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the figure would be {inches} inches high (expected at most 200: make it wider, or draw less)"
)]
pub struct TooHigh {
    inches: u32,
}

/// A figure that is laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Print {
    pub(crate) scene: Scene,
}

impl Print {
    /// A PDF of one page, which is as large as the figure.
    pub fn pdf(&self) -> Vec<u8> {
        pdf::document(&self.scene)
    }

    /// The same page as SVG.
    pub fn svg(&self) -> String {
        svg::print(&self.scene)
    }
}

/// The points that figures show, as CSV with a header: `chart`, `panel`, `series`, `x`, `y`, and the bounds of `x` and `y`.
///
/// A point beyond an axis is not drawn and has no row. Bounds are as they are, even where they are drawn at the edge. Values are
/// rounded to a millionth.
pub fn csv(figures: &[Figure]) -> String {
    let mut text = "chart,panel,series,x,y,x_low,x_high,y_low,y_high\n".to_owned();
    for figure in figures {
        for panel in &figure.panels {
            for series in &panel.series {
                for point in series.points.iter().filter(|point| panel.shows(point)) {
                    let names = [&figure.name, &panel.title, &series.name];
                    let names = names.map(|name| quoted(name)).join(",");
                    let (x, y) = (panel.x.show(point.x), panel.y.show(point.y));
                    // Writing to a `String` cannot fail.
                    let _ = write!(text, "{names},{x},{y}");
                    for (axis, bounds) in [(&panel.x, point.x_bounds), (&panel.y, point.y_bounds)] {
                        let (low, high) = bounds.unzip();
                        for bound in [low, high] {
                            let bound = bound.map(|bound| axis.show(bound));
                            let _ = write!(text, ",{}", bound.unwrap_or_default());
                        }
                    }
                    text.push('\n');
                }
            }
        }
    }
    text
}

/// A field of CSV (RFC 4180 §2).
pub(crate) fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

impl Panel {
    /// Whether a point is within the axes.
    fn shows(&self, point: &Point) -> bool {
        self.x.contains(point.x) && self.y.contains(point.y)
    }
}
