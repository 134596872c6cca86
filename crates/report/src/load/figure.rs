//! The charts of a run.

use super::data::{Interval, Run};
use crate::{
    font::Fonts,
    scale::{Linear, Unit, ticks},
    scene::{Anchor, Color, Place, Scene, Shape, Stroke},
};

const INK: Color = Color::solid(0x1a_1a1a);
const MUTED: Color = Color::solid(0x5c_6068);
const GRID: Color = Color::solid(0xe8_e9ec);
const FRAME: Color = Color::solid(0xb9_bdc4);
const BLUE: Color = Color::solid(0x00_5fa8);
const ORANGE: Color = Color::solid(0xc9_7b00);
const GREEN: Color = Color::solid(0x00_8a65);
const RED: Color = Color::solid(0xc8_102e);

/// How a chart is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// For screens and paper.
    Wide,
    /// For phones.
    Narrow,
}

/// Draws a chart; `None` without data.
pub(super) type Draw = fn(&Run, Size) -> Option<Scene>;

/// A time in ms, as the axes write it.
pub(super) fn time(ms: f64) -> String {
    Unit::Milliseconds.format(ms)
}

fn width_of(fonts: Option<&Fonts>, text: &str, size: f32) -> f32 {
    fonts.map_or(0.0, |fonts| fonts.width(text, size, false))
}

/// A chart that is being drawn.
struct Chart {
    scene: Scene,
    fonts: Option<Fonts>,
    font: f32,
    /// Left, top, right and bottom edge of the plot.
    edges: (f32, f32, f32, f32),
    x: Linear,
    y: Linear,
}

impl Chart {
    /// A chart with a frame and a vertical axis of these ticks, which are values and labels.
    fn new(
        size: Size,
        title: &str,
        description: String,
        x: (f64, f64),
        y: (f64, f64),
        marks: &[(f64, String)],
    ) -> Self {
        let (width, height, font) = match size {
            Size::Wide => (1100.0, 300.0, 13.0),
            Size::Narrow => (370.0, 260.0, 12.5),
        };
        let fonts = Fonts::new();
        let labels = marks
            .iter()
            .map(|(_, label)| width_of(fonts.as_ref(), label, font));
        let left = labels.fold(20.0, f32::max) + 12.0;
        let edges = (left, 34.0, width - 14.0, height - 30.0);
        let mut chart = Self {
            scene: Scene {
                width,
                height,
                title: title.to_owned(),
                description,
                shapes: Vec::new(),
            },
            fonts,
            font,
            edges,
            x: Linear::new(x, (f64::from(edges.0), f64::from(edges.2))),
            y: Linear::new(y, (f64::from(edges.3), f64::from(edges.1))),
        };
        for (value, label) in marks {
            let place = chart.y.place(*value) as f32;
            chart.line(vec![(edges.0, place), (edges.2, place)], GRID, 1.0);
            chart.text((edges.0 - 8.0, place + 4.5), Anchor::End, MUTED, label);
        }
        chart.line(vec![(edges.0, edges.3), (edges.2, edges.3)], FRAME, 1.0);
        chart
    }

    fn width(&self, text: &str) -> f32 {
        width_of(self.fonts.as_ref(), text, self.font)
    }

    fn text(&mut self, at: Place, anchor: Anchor, fill: Color, text: &str) {
        self.scene.shapes.push(Shape::Text {
            at,
            anchor,
            size: self.font,
            bold: false,
            fill,
            text: text.to_owned(),
        });
    }

    fn line(&mut self, line: Vec<Place>, color: Color, width: f32) {
        self.lines(vec![line], color, width);
    }

    fn lines(&mut self, lines: Vec<Vec<Place>>, color: Color, width: f32) {
        self.scene.shapes.push(Shape::Lines {
            lines,
            stroke: Stroke {
                color,
                width,
                dashed: false,
            },
        });
    }

    /// Ticks of the horizontal axis.
    fn bottom(&mut self, marks: &[(f64, String)]) {
        let (left, _, right, bottom) = self.edges;
        for (value, label) in marks {
            let place = self.x.place(*value) as f32;
            self.line(vec![(place, bottom), (place, bottom + 4.0)], FRAME, 1.0);
            let half = self.width(label) / 2.0;
            let inside = place.min(right + 12.0 - half).max(left + half - 8.0);
            self.text((inside, bottom + 19.0), Anchor::Middle, MUTED, label);
        }
    }

    /// Names of the series, above the plot.
    fn legend(&mut self, entries: &[(&str, Color)]) {
        let mut at = self.edges.0;
        for (name, color) in entries {
            self.line(vec![(at, 17.0), (at + 16.0, 17.0)], *color, 3.0);
            self.text((at + 22.0, 21.5), Anchor::Start, INK, name);
            at += 22.0 + self.width(name) + 20.0;
        }
    }

    /// A series with a value or a gap per interval, as steps.
    fn steps(&mut self, run: &Run, color: Color, of: impl Fn(&Interval) -> Option<f64>) {
        let mut lines: Vec<Vec<Place>> = vec![Vec::new()];
        for (index, interval) in run.intervals.iter().enumerate() {
            let Some(value) = of(interval) else {
                lines.push(Vec::new());
                continue;
            };
            let y = self.y.place(value) as f32;
            let edge = |index: usize| self.x.place(index as f64 * run.width_ms) as f32;
            if let Some(line) = lines.last_mut() {
                line.extend([(edge(index), y), (edge(index + 1), y)]);
            }
        }
        lines.retain(|line| !line.is_empty());
        self.lines(lines, color, 1.6);
    }
}

/// The ticks of a time axis up to `end` ms.
fn time_marks(end: f64, size: Size) -> Vec<(f64, String)> {
    let wanted = if size == Size::Wide { 9 } else { 4 };
    ticks((0.0, end), wanted, Unit::Milliseconds)
}

fn largest(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    values.flatten().fold(None, |most: Option<f64>, value| {
        Some(most.map_or(value, |most| most.max(value)))
    })
}

/// P50, P99 and maximum of each interval.
pub(super) fn latency(run: &Run, size: Size) -> Option<Scene> {
    let top = largest(run.intervals.iter().map(|it| it.max_ms))?;
    let end = run.intervals.len() as f64 * run.width_ms;
    let marks = ticks((0.0, top), 5, Unit::Milliseconds);
    let description = format!("Longest latency {}", time(top));
    let title = "Latency over time";
    let mut chart = Chart::new(size, title, description, (0.0, end), (0.0, top), &marks);
    chart.bottom(&time_marks(end, size));
    chart.steps(run, MUTED.with_opacity(0.6), |it| it.max_ms);
    chart.steps(run, ORANGE, |it| it.p99_ms);
    chart.steps(run, BLUE, |it| it.p50_ms);
    let mut legend = vec![("P50", BLUE), ("P99", ORANGE)];
    if run.intervals.iter().all(|it| it.p99_ms.is_none()) {
        legend.pop();
    }
    legend.push(("maximum", MUTED.with_opacity(0.6)));
    chart.legend(&legend);
    Some(chart.scene)
}

/// Responses and errors per second.
pub(super) fn rate(run: &Run, size: Size) -> Option<Scene> {
    let per_second = |count: u64| count as f64 * 1e3 / run.width_ms;
    let all = run.intervals.iter();
    let top = largest(all.map(|it| Some(per_second(it.done.max(it.errored)))))?;
    let end = run.intervals.len() as f64 * run.width_ms;
    let marks: Vec<(f64, String)> = ticks((0.0, top), 5, Unit::PerSecond);
    let description = format!("Up to {}", Unit::PerSecond.format(top));
    let title = "Responses and errors over time";
    let mut chart = Chart::new(size, title, description, (0.0, end), (0.0, top), &marks);
    chart.bottom(&time_marks(end, size));
    chart.steps(run, GREEN, |it| Some(per_second(it.done)));
    let mut legend = vec![("responses", GREEN)];
    if run.intervals.iter().any(|it| it.errored > 0) {
        chart.steps(run, RED, |it| Some(per_second(it.errored)));
        legend.push(("errors", RED));
    }
    chart.legend(&legend);
    Some(chart.scene)
}

/// The place of a share on the axis of percentiles: the number of nines.
fn nines(share: f64) -> f64 {
    -(1.0 - share).max(1e-12).log10()
}

/// Latency by percentile; each further nine has the same width.
pub(super) fn percentiles(run: &Run, size: Size) -> Option<Scene> {
    let all: Vec<(f64, f64)> = run
        .distributions
        .iter()
        .flat_map(|it| it.points.iter().copied())
        .collect();
    let top = largest(all.iter().map(|(_, ms)| Some(*ms)))?;
    let end = largest(all.iter().map(|(share, _)| Some(nines(*share))))?.max(1.0);
    let marks = ticks((0.0, top), 5, Unit::Milliseconds);
    let title = "Latency by percentile";
    let description = format!("Up to {}", time(top));
    let mut chart = Chart::new(size, title, description, (0.0, end), (0.0, top), &marks);
    let names = [
        (0.5, "P50"),
        (0.9, "P90"),
        (0.99, "P99"),
        (0.999, "P99.9"),
        (0.9999, "P99.99"),
        (0.999_99, "P99.999"),
    ];
    let within = names
        .iter()
        .filter(|(share, _)| nines(*share) <= end + 1e-9);
    let names: Vec<(f64, String)> = within
        .map(|(share, name)| (nines(*share), (*name).to_owned()))
        .collect();
    chart.bottom(&names);
    let colors = [BLUE, GREEN];
    let mut legend = Vec::new();
    for (distribution, color) in run.distributions.iter().zip(colors) {
        let line = distribution.points.iter();
        let line = line.map(|(share, ms)| {
            let place = (chart.x.place(nines(*share)), chart.y.place(*ms));
            (place.0 as f32, place.1 as f32)
        });
        let line: Vec<Place> = line.collect();
        chart.line(line, color, 1.8);
        legend.push((distribution.name.as_str(), color));
    }
    chart.legend(&legend);
    Some(chart.scene)
}
