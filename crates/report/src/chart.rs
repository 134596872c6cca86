//! A chart with a frame, a grid and a legend, to which series are added.

use crate::{
    drawing::{Drawing, FRAME, GRID, INK, MUTED},
    scale::Linear,
    scene::{Anchor, Color, Place, Scene, Stroke, Style},
};

/// The height of a row of the legend.
const ROW: f32 = 20.0;

/// The layout of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// For screens and paper.
    Wide,
    /// For phones.
    Narrow,
}

/// A chart that is being drawn.
pub(crate) struct Chart {
    /// The scene, without its shapes.
    scene: Scene,
    drawing: Drawing,
    font: f32,
    /// Left, top, right and bottom edge of the plot.
    edges: (f32, f32, f32, f32),
    x: Linear,
    y: Linear,
}

impl Chart {
    /// A chart with a frame, a vertical axis of these ticks, which are values and labels, and the names of the series above the
    /// plot, in as many rows as they take.
    pub(crate) fn new(
        size: Size,
        title: &str,
        description: String,
        (x, y): ((f64, f64), (f64, f64)),
        marks: &[(f64, String)],
        legend: &[(&str, Color)],
    ) -> Self {
        let (width, height, font) = match size {
            Size::Wide => (1100.0, 300.0, 13.0),
            Size::Narrow => (370.0, 260.0, 12.5),
        };
        let drawing = Drawing::new();
        let width_of = |text: &str| drawing.width(text, Style::plain(font, INK));
        let labels = marks.iter().map(|(_, label)| width_of(label));
        let left = labels.fold(20.0, f32::max) + 12.0;
        let right = width - 14.0;
        let (mut across, mut down) = (left, 0.0);
        let mut places = Vec::new();
        for (name, _) in legend {
            let width = 22.0 + width_of(name);
            if across > left && across + width > right {
                (across, down) = (left, down + ROW);
            }
            places.push((across, down));
            across += width + 20.0;
        }
        let edges = (left, 34.0 + down, right, height + down - 30.0);
        let mut chart = Self {
            scene: Scene {
                width,
                height: height + down,
                title: title.to_owned(),
                description,
                shapes: Vec::new(),
            },
            drawing,
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
        for ((name, color), (across, down)) in legend.iter().zip(places) {
            let middle = down + 17.0;
            chart.line(vec![(across, middle), (across + 16.0, middle)], *color, 3.0);
            chart.text((across + 22.0, middle + 4.5), Anchor::Start, INK, name);
        }
        chart
    }

    /// Where values are.
    pub(crate) fn place(&self, x: f64, y: f64) -> Place {
        (self.x.place(x) as f32, self.y.place(y) as f32)
    }

    /// The finished chart.
    pub(crate) fn scene(self) -> Scene {
        let shapes = self.drawing.shapes;
        Scene {
            shapes,
            ..self.scene
        }
    }

    fn text(&mut self, at: Place, anchor: Anchor, fill: Color, text: &str) {
        let style = Style::plain(self.font, fill);
        self.drawing.text(at, anchor, style, text);
    }

    pub(crate) fn line(&mut self, line: Vec<Place>, color: Color, width: f32) {
        self.lines(vec![line], color, width);
    }

    pub(crate) fn lines(&mut self, lines: Vec<Vec<Place>>, color: Color, width: f32) {
        self.drawing.lines(lines, Stroke::solid(color, width));
    }

    pub(crate) fn area(&mut self, outline: Vec<Place>, fill: Color) {
        self.drawing.area(outline, fill);
    }

    /// Names of vertical lines, within the plot at its top, each to the right of its line, or to the left where it would not fit. A
    /// name that would touch the one before is left out.
    pub(crate) fn names(&mut self, lines: &[(f64, String)]) {
        let (left, top, right, _) = self.edges;
        let mut free = left;
        for (value, name) in lines {
            let place = self.x.place(*value) as f32;
            let width = self.drawing.width(name, Style::plain(self.font, MUTED));
            let start = if place + 4.0 + width <= right {
                place + 4.0
            } else {
                place - 4.0 - width
            };
            if start >= free {
                self.text((start, top + self.font), Anchor::Start, MUTED, name);
                free = start + width + 4.0;
            }
        }
    }

    /// Ticks of the horizontal axis. A label that would touch the one before is left out.
    pub(crate) fn bottom(&mut self, marks: &[(f64, String)]) {
        let (left, _, right, bottom) = self.edges;
        let mut free = f32::NEG_INFINITY;
        for (value, label) in marks {
            let place = self.x.place(*value) as f32;
            self.line(vec![(place, bottom), (place, bottom + 4.0)], FRAME, 1.0);
            let half = self.drawing.width(label, Style::plain(self.font, MUTED)) / 2.0;
            let inside = place.min(right + 12.0 - half).max(left + half - 8.0);
            if inside - half >= free {
                self.text((inside, bottom + 19.0), Anchor::Middle, MUTED, label);
                free = inside + half + 4.0;
            }
        }
    }
}
