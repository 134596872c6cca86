//! The layout of figures: the legend, panels in rows, and around each plot its title, ticks and captions.

use core::f32::consts::FRAC_PI_2;

use super::{Arrangement, Axis, Figure, Look, Mark, Panel, Point, Scale, Series};
use crate::{
    drawing::{Drawing, FRAME, GRID, INK, MUTED},
    scene::{Anchor, Color, Place, Scene, Shape, Stroke, Style},
};

/// The size of all text, in pixels.
pub(super) const FONT: f32 = 12.0;
/// The height of a line of text.
const LINE: f32 = 15.0;
const MARGIN: f32 = 3.0;
/// Between panels.
const GAP: f32 = 10.0;
/// The length of a line in the legend: all dashes differ within it.
const SAMPLE: f32 = 34.0;
/// The height of a row of names.
const BAR: f32 = 18.0;
/// The least height of a plot, and the width beyond which it grows no higher, unless it is square.
const LEAST: f32 = 64.0;
const MOST: f32 = 484.0;
/// The greatest share of a panel that labels of its vertical axis take.
const GUTTER_MAX: f32 = 0.42;
const GROUND: Color = Color::solid(0xff_ffff);
const TEXT: Style = Style::plain(FONT, INK);
const BOLD: Style = Style::bold(FONT, INK);

/// The scene of a figure that is this wide, in pixels.
pub(super) fn scene(figure: &Figure, width: f32) -> Scene {
    let mut layout = Layout {
        figure,
        width,
        y: MARGIN,
        drawing: Drawing::new(),
    };
    let shared = layout.shared_legend();
    if let Some(series) = &shared {
        layout.legend(series, MARGIN, width - MARGIN);
    }
    layout.paragraph(
        &figure.captions.1,
        TEXT,
        Anchor::Start,
        (MARGIN, width - MARGIN),
    );
    let columns = layout.columns();
    let count = figure.panels.len().div_ceil(columns);
    for (row, panels) in figure.panels.chunks(columns).enumerate() {
        let has_ticks = figure.arrangement != Arrangement::Stacked || row + 1 == count;
        layout.row(panels, columns, shared.is_none(), has_ticks);
    }
    layout.paragraph(
        &figure.captions.0,
        TEXT,
        Anchor::Middle,
        (MARGIN, width - MARGIN),
    );
    Scene {
        width,
        height: layout.y + MARGIN,
        title: figure.title.clone(),
        description: figure.description.clone(),
        shapes: layout.drawing.shapes,
    }
}

struct Layout<'a> {
    figure: &'a Figure,
    width: f32,
    /// The current height, from the top.
    y: f32,
    drawing: Drawing,
}

/// The edges of a plot.
#[derive(Clone, Copy)]
struct Plot {
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
}

impl Plot {
    fn place(self, panel: &Panel, x: f64, y: f64) -> Place {
        let (across, up) = (panel.x.share(x) as f32, panel.y.share(y) as f32);
        // An infinite value is at the edge, and a finite one stays within what files can hold.
        let (across, up) = (across.clamp(-9.0, 9.0), up.clamp(-9.0, 9.0));
        (
            self.left
                + if x.is_infinite() {
                    across.clamp(0.0, 1.0)
                } else {
                    across
                } * (self.right - self.left),
            self.bottom
                - if y.is_infinite() {
                    up.clamp(0.0, 1.0)
                } else {
                    up
                } * (self.bottom - self.top),
        )
    }

    /// The place of the nearest point of the plot.
    fn inside(self, (x, y): Place) -> Place {
        (
            x.clamp(self.left, self.right),
            y.clamp(self.top, self.bottom),
        )
    }
}

impl Layout<'_> {
    fn columns(&self) -> usize {
        let most = match self.figure.arrangement {
            Arrangement::Stacked => 1,
            Arrangement::Grid(least) => ((self.width / least) as usize).max(1),
        };
        // As many in each row.
        let panels = self.figure.panels.len().max(1);
        panels.div_ceil(panels.div_ceil(most))
    }

    /// The legend of all panels, if one of them has the names of all.
    fn shared_legend(&self) -> Option<Vec<Series>> {
        let mut legends: Vec<Vec<Series>> = self.figure.panels.iter().map(entries).collect();
        legends.sort_by_key(Vec::len);
        let all = legends.pop()?;
        let has = |one: &Series| {
            all.iter()
                .any(|other| other.name == one.name && other.look == one.look)
        };
        legends.iter().flatten().all(has).then_some(all)
    }

    /// A text in lines, none of which is wider than there is room.
    fn paragraph(&mut self, text: &str, style: Style, anchor: Anchor, (left, right): (f32, f32)) {
        let at = match anchor {
            Anchor::Start => left,
            Anchor::Middle => f32::midpoint(left, right),
            Anchor::End => right,
        };
        for line in self.drawing.wrapped(text, style, right - left) {
            self.y += LINE;
            self.drawing.text((at, self.y - 3.5), anchor, style, line);
        }
    }

    /// Samples and names, in as many rows as they take.
    fn legend(&mut self, entries: &[Series], left: f32, right: f32) {
        let mut across = left;
        let mut bottom = self.y;
        for series in entries {
            let sample = if matches!(series.mark, Mark::Line | Mark::Steps) {
                SAMPLE
            } else {
                FONT
            };
            let room = right - left - sample - 5.0;
            let lines = self.drawing.wrapped(&series.name, TEXT, room);
            let widths = lines.iter().map(|line| self.drawing.width(line, TEXT));
            let width = sample + 5.0 + widths.fold(0.0, f32::max);
            if across > left && across + width > right {
                (across, self.y) = (left, bottom);
            }
            let middle = self.y + 0.5 * LINE;
            self.sample(series, (across, middle), sample);
            for (row, line) in lines.iter().enumerate() {
                let at = (
                    across + sample + 5.0,
                    self.y + LINE * (row + 1) as f32 - 3.5,
                );
                self.drawing.text(at, Anchor::Start, TEXT, line.as_str());
            }
            bottom = bottom.max(self.y + LINE * lines.len() as f32);
            across += width + 12.0;
        }
        self.y = bottom;
    }

    fn sample(&mut self, series: &Series, (left, middle): Place, width: f32) {
        let color = series.look.color;
        match series.mark {
            Mark::Line | Mark::Steps | Mark::Bounds => {
                let ends = [(left, middle), (left + width, middle)];
                self.drawing
                    .lines(vec![ends.to_vec()], stroke(series.look, 1.8));
            }
            Mark::Dots => {
                let at = vec![(left + width / 2.0, middle)];
                self.drawing.dots(at, 3.0, color);
            }
            Mark::Crosses => self.crosses(vec![(left + width / 2.0, middle)], 3.0, color),
            Mark::Estimates => self.marker((left + width / 2.0, middle), series.look),
            Mark::Bars => {
                let at = (left + 1.0, middle - 4.5);
                self.drawing.rect(at, (width - 2.0, 9.0), color);
            }
        }
    }

    /// Panels side by side.
    fn row(&mut self, panels: &[Panel], columns: usize, has_legends: bool, has_ticks: bool) {
        let cell = (self.width - 2.0 * MARGIN + GAP) / columns as f32 - GAP;
        let edges = |column: usize| {
            let left = MARGIN + column as f32 * (cell + GAP);
            (left, left + cell)
        };
        let top = self.y;
        let mut heads = top;
        for (column, panel) in panels.iter().enumerate() {
            self.y = top + if panel.title.is_empty() { 0.0 } else { 3.0 };
            self.paragraph(&panel.title, BOLD, Anchor::Start, edges(column));
            let entries = entries(panel);
            if has_legends && entries.len() > 1 {
                self.legend(&entries, edges(column).0, edges(column).1);
            }
            heads = heads.max(self.y);
        }
        // The labels of all panels of a figure take the same room, so that plots are in line.
        let height = |panel: &Panel, width: f32| match (&panel.y.scale, panel.height) {
            (Scale::Names(names), _) => BAR * names.len() as f32,
            (_, 1.0) => width,
            (_, share) => (width * share).clamp(LEAST, MOST * share),
        };
        let wanted = |panel: &Panel| ((height(panel, cell * 0.8) / 26.0) as usize).clamp(2, 7);
        let all = self.figure.panels.iter();
        let labels = all.flat_map(|panel| self.labels(&panel.y, wanted(panel), cell * GUTTER_MAX));
        let widths = labels.flat_map(|(_, lines)| lines);
        let widths = widths.map(|line| self.drawing.width(&line, TEXT));
        let gutter = widths.fold(0.0, f32::max) + 6.0;
        let mut end = heads;
        for (column, panel) in panels.iter().enumerate() {
            let (left, right) = edges(column);
            let (left, right, top) = (left + gutter, right - 4.0, heads + 6.0);
            let bottom = top + height(panel, right - left);
            let plot = Plot {
                left,
                top,
                right,
                bottom,
            };
            let labels = self.labels(&panel.y, wanted(panel), cell * GUTTER_MAX);
            self.vertical(panel, plot, &labels);
            self.y = bottom;
            self.horizontal(panel, plot, edges(column), has_ticks);
            self.data(panel, plot);
            let frame = vec![(left, top), (left, bottom), (right, bottom)];
            self.drawing.lines(vec![frame], Stroke::solid(FRAME, 1.0));
            end = end.max(self.y);
        }
        self.y = end + if has_ticks { 4.0 } else { GAP };
    }

    /// The ticks of a vertical axis, each with the lines of its label.
    fn labels(&self, axis: &Axis, wanted: usize, room: f32) -> Vec<(f64, Vec<String>)> {
        let ticks = axis.ticks(wanted).into_iter();
        ticks
            .map(|(value, label)| (value, self.drawing.wrapped(&label, TEXT, room)))
            .collect()
    }

    /// The grid and the labels of the vertical axis. A label that would touch another is left out, unless it is a name.
    fn vertical(&mut self, panel: &Panel, plot: Plot, labels: &[(f64, Vec<String>)]) {
        let is_named = matches!(panel.y.scale, Scale::Names(_));
        let mut free = f32::INFINITY;
        for (value, lines) in labels {
            let at = plot.bottom - panel.y.share(*value) as f32 * (plot.bottom - plot.top);
            if !is_named {
                self.drawing
                    .line((plot.left, at), (plot.right, at), Stroke::solid(GRID, 1.0));
            }
            let half = 0.5 * LINE * lines.len() as f32;
            let middle = at.max(plot.top - 3.0 + half);
            if middle + half > free + 2.0 {
                continue;
            }
            free = middle - half;
            for (row, line) in lines.iter().enumerate() {
                let baseline = middle - half + LINE * (row as f32 + 1.0) - 3.5;
                let at = (plot.left - 6.0, baseline);
                self.drawing.text(at, Anchor::End, TEXT, line.as_str());
            }
        }
    }

    /// The grid and the labels of the horizontal axis, within the panel.
    fn horizontal(
        &mut self,
        panel: &Panel,
        plot: Plot,
        (left, right): (f32, f32),
        has_ticks: bool,
    ) {
        let room = plot.right - plot.left;
        let is_named = matches!(panel.x.scale, Scale::Names(_));
        let ticks = panel.x.ticks(((room / 58.0) as usize).clamp(2, 9));
        let slot = if is_named {
            room / ticks.len().max(1) as f32 - 3.0
        } else {
            room
        };
        let mut free = f32::NEG_INFINITY;
        let (top, mut end) = (plot.bottom + 4.0, self.y);
        for (value, label) in ticks {
            let at = plot.left + panel.x.share(value) as f32 * room;
            if !is_named {
                self.drawing
                    .line((at, plot.top), (at, plot.bottom), Stroke::solid(GRID, 1.0));
            }
            let lines = self.drawing.wrapped(&label, TEXT, slot.max(FONT));
            let widths = lines.iter().map(|line| self.drawing.width(line, TEXT));
            let half = widths.fold(0.0, f32::max) / 2.0;
            let middle = at.min(right - half).max(left + half);
            if !has_ticks || middle - half < free {
                continue;
            }
            free = middle + half + 6.0;
            for (row, line) in lines.iter().enumerate() {
                let at = (middle, top + LINE * (row as f32 + 1.0) - 3.5);
                self.drawing.text(at, Anchor::Middle, TEXT, line.as_str());
                end = end.max(top + LINE * (row as f32 + 1.0));
            }
        }
        self.y = end;
    }

    fn data(&mut self, panel: &Panel, plot: Plot) {
        for guide in &panel.guides {
            let line = guide.map(|(x, y)| plot.place(panel, x, y));
            let seen = clipped(&line, plot);
            let thin = Stroke {
                dash: &[1.0, 2.5],
                ..Stroke::solid(MUTED, 1.2)
            };
            self.lines(seen, thin);
        }
        self.marks(panel, plot);
        for series in panel.series.iter().filter(|one| one.mark == Mark::Line) {
            self.band(panel, plot, series);
        }
        for series in &panel.series {
            match series.mark {
                Mark::Line => {
                    let lines = lines(panel, plot, &series.points);
                    self.lines(lines, stroke(series.look, 1.6));
                }
                Mark::Bounds => {
                    for side in [|bounds: (f64, f64)| bounds.0, |bounds: (f64, f64)| bounds.1] {
                        let points: Vec<Point> =
                            series.points.iter().map(|point| at(point, side)).collect();
                        let faint = Look {
                            color: series.look.color.with_opacity(0.7),
                            ..series.look
                        };
                        self.lines(lines(panel, plot, &points), stroke(faint, 0.7));
                    }
                }
                Mark::Steps => {
                    let corners = corners(&series.points);
                    let lines = lines(panel, plot, &corners);
                    self.lines(lines, stroke(series.look, 1.4));
                }
                Mark::Dots | Mark::Crosses => {
                    let shown = series.points.iter().filter(|point| panel.shows(point));
                    let places = shown
                        .map(|point| plot.place(panel, point.x, point.y))
                        .collect();
                    let color = series.look.color.with_opacity(0.75);
                    if series.mark == Mark::Dots {
                        self.dots(places, 1.6, color);
                    } else {
                        self.crosses(places, 2.2, color);
                    }
                }
                Mark::Estimates => self.estimates(panel, plot, series),
                Mark::Bars => {
                    let rows = plot.bottom - plot.top;
                    let thick = (rows * panel.y.share(panel.y.domain.0 + 0.7) as f32).min(12.0);
                    for point in series.points.iter().filter(|point| panel.shows(point)) {
                        let Some((from, to)) = point.x_bounds else {
                            continue;
                        };
                        let (left, middle) = plot.place(panel, from, point.y);
                        let (right, _) = plot.inside(plot.place(panel, to, point.y));
                        // A gap tells bars of similar shades apart.
                        let size = ((right - left - 0.8).max(0.4), thick);
                        self.drawing
                            .rect((left, middle - thick / 2.0), size, series.look.color);
                    }
                }
            }
        }
    }

    /// Vertical lines, each with its name to the right at the top, or to the left where it would not fit. A name that would touch
    /// the one before is left out.
    fn marks(&mut self, panel: &Panel, plot: Plot) {
        let style = Style::plain(FONT, MUTED);
        let mut free = plot.left;
        for (value, name) in &panel.marks {
            let at = plot.left + panel.x.share(*value) as f32 * (plot.right - plot.left);
            self.drawing
                .line((at, plot.top), (at, plot.bottom), Stroke::solid(MUTED, 1.0));
            let width = self.drawing.width(name, style);
            let start = if at + 4.0 + width <= plot.right {
                at + 4.0
            } else {
                at - 4.0 - width
            };
            if start >= free {
                let place = (start, plot.top + FONT);
                self.drawing
                    .text(place, Anchor::Start, style, name.as_str());
                free = start + width + 4.0;
            }
        }
    }

    /// The band between the bounds of a line, to the edges of the plot.
    fn band(&mut self, panel: &Panel, plot: Plot, series: &Series) {
        let bounded = |point: &Point| point.x_bounds.or(point.y_bounds).is_some();
        for run in series.points.split(|point| !bounded(point)) {
            let edge = |point: &Point, side: fn((f64, f64)) -> f64| {
                let bound = at(point, side);
                plot.inside(plot.place(panel, bound.x, bound.y))
            };
            let low = run.iter().map(|point| edge(point, |bounds| bounds.0));
            let high = run.iter().rev().map(|point| edge(point, |bounds| bounds.1));
            let outline: Vec<Place> = low.chain(high).collect();
            if run.len() > 1 {
                self.drawing
                    .area(outline, series.look.color.with_opacity(0.16));
            }
        }
    }

    /// Dots with lines to their bounds.
    fn estimates(&mut self, panel: &Panel, plot: Plot, series: &Series) {
        let shown: Vec<&Point> = series
            .points
            .iter()
            .filter(|point| panel.shows(point))
            .collect();
        let mut bars = Vec::new();
        for point in &shown {
            if let Some((low, high)) = point.x_bounds {
                bars.push(vec![(low, point.y), (high, point.y)]);
            }
            if let Some((low, high)) = point.y_bounds {
                bars.push(vec![(point.x, low), (point.x, high)]);
            }
        }
        let bars = bars.into_iter().map(|ends| {
            let ends = ends.into_iter();
            ends.map(|(x, y)| plot.inside(plot.place(panel, x, y)))
                .collect()
        });
        let faint = Stroke::solid(series.look.color.with_opacity(0.6), 1.0);
        self.lines(bars.collect(), faint);
        let joined = lines(panel, plot, &series.points);
        self.lines(joined, stroke(series.look, 1.4));
        for point in shown {
            self.marker(plot.place(panel, point.x, point.y), series.look);
        }
    }

    fn marker(&mut self, (x, y): Place, look: Look) {
        // Corners, the direction of the first one, and a radius that makes all as large.
        let (corners, turn, radius) =
            [(16, 0.0, 3.4), (4, 0.5, 4.0), (3, -1.0, 4.4), (4, 0.0, 4.2)][look.marker % 4];
        let corner = |index: i32| {
            let angle = (turn + 4.0 * index as f32 / corners as f32) * FRAC_PI_2;
            (
                x + radius * libm::cosf(angle),
                y + radius * libm::sinf(angle),
            )
        };
        let outline: Vec<Place> = (0..=corners).map(corner).collect();
        if look.marker < 4 {
            self.drawing.area(outline, look.color);
        } else {
            self.drawing.area(outline.clone(), GROUND);
            self.drawing
                .lines(vec![outline], Stroke::solid(look.color, 1.3));
        }
    }

    fn lines(&mut self, lines: Vec<Vec<Place>>, stroke: Stroke) {
        if !lines.is_empty() {
            self.drawing.lines(lines, stroke);
        }
    }

    fn crosses(&mut self, places: Vec<Place>, arm: f32, color: Color) {
        let stroke = Stroke::solid(color, 1.1);
        if !places.is_empty() {
            self.drawing.shapes.push(Shape::Crosses {
                places,
                arm,
                stroke,
            });
        }
    }

    fn dots(&mut self, places: Vec<Place>, radius: f32, color: Color) {
        if !places.is_empty() {
            self.drawing.dots(places, radius, color);
        }
    }
}

fn stroke(look: Look, width: f32) -> Stroke {
    Stroke {
        dash: look.dash,
        ..Stroke::solid(look.color, width)
    }
}

/// The series of a panel that its legend names.
fn entries(panel: &Panel) -> Vec<Series> {
    let named = panel
        .series
        .iter()
        .filter(|series| series.mark != Mark::Bounds);
    let entries = named.map(|series| Series {
        points: Vec::new(),
        ..series.clone()
    });
    entries.collect()
}

/// A point at one of its bounds; a gap without them.
fn at(point: &Point, side: fn((f64, f64)) -> f64) -> Point {
    match (point.x_bounds, point.y_bounds) {
        (Some(bounds), _) => Point {
            x: side(bounds),
            ..*point
        },
        (_, Some(bounds)) => Point {
            y: side(bounds),
            ..*point
        },
        _ => Point::GAP,
    }
}

/// The corners of steps: each value holds until the next.
fn corners(points: &[Point]) -> Vec<Point> {
    let mut corners: Vec<Point> = Vec::new();
    for point in points {
        if let Some(before) = corners.last().copied()
            && !before.y.is_nan()
        {
            corners.push(Point {
                x: point.x,
                ..before
            });
        }
        corners.push(*point);
    }
    corners
}

/// The parts of a line that are in the plot.
fn lines(panel: &Panel, plot: Plot, points: &[Point]) -> Vec<Vec<Place>> {
    let runs = points.split(|point| point.x.is_nan() || point.y.is_nan());
    let places = runs.map(|run| {
        let places = run.iter().map(|point| plot.place(panel, point.x, point.y));
        places.collect::<Vec<Place>>()
    });
    places.flat_map(|line| clipped(&line, plot)).collect()
}

/// The parts of a line that are in the plot, to its edges (Liang and Barsky's clipping of each of its segments).
fn clipped(line: &[Place], plot: Plot) -> Vec<Vec<Place>> {
    let mut pieces: Vec<Vec<Place>> = Vec::new();
    for pair in line.windows(2) {
        let ((x, y), (to_x, to_y)) = (pair[0], pair[1]);
        let (dx, dy) = (to_x - x, to_y - y);
        let (mut from, mut to) = (0.0_f32, 1.0_f32);
        for (step, room) in [
            (-dx, x - plot.left),
            (dx, plot.right - x),
            (-dy, y - plot.top),
            (dy, plot.bottom - y),
        ] {
            match step {
                _ if step < 0.0 => from = from.max(room / step),
                _ if step > 0.0 => to = to.min(room / step),
                _ if room < 0.0 => to = -1.0,
                _ => {}
            }
        }
        if from > to {
            continue;
        }
        let at = |share: f32| plot.inside((x + share * dx, y + share * dy));
        let (start, end) = (at(from), at(to));
        match pieces
            .last_mut()
            .filter(|piece| piece.last() == Some(&start))
        {
            Some(piece) => piece.push(end),
            None => pieces.push(vec![start, end]),
        }
    }
    pieces
}
