//! The static picture: columns of arms, rows of panels, and shared axes.

use crate::{
    drawing::{Drawing, FRAME, GRID, INK, MUTED},
    scale::{Linear, Unit, ticks},
    scene::{Anchor, Color, Place, Scene, Shape, Stroke, Style},
};

use super::{
    Arm, Picture, Point, clean,
    panel::{self, Kind, Row, Series},
    thin,
};

const FAINT: Color = Color::solid(0x8a_8f98);
const RECOVERY: Color = Color::solid(0xc8_102e).with_opacity(0.08);
const BLOCKED: Color = Color::solid(0x7b_4fa3).with_opacity(0.14);
const HALO: Color = Color::solid(0xff_ffff).with_opacity(0.8);

const MARGIN: f32 = 24.0;
/// The width of the labels of the vertical axis.
const GUTTER: f32 = 58.0;
const GAP: f32 = 20.0;
const HEADING: f32 = 27.0;
const LANE: f32 = 15.0;
/// Notes over data, and ticks.
const NOTE: Style = Style::plain(11.5, MUTED);
const LEGEND: Style = Style::plain(12.5, MUTED);
const ROW_GAP: f32 = 14.0;
const BLOCK_GAP: f32 = 22.0;
const AXIS: f32 = 44.0;
const COLUMNS_MAX: usize = 4;

/// The scene of a clean picture.
pub(super) fn scene(picture: &Picture) -> Scene {
    let columns = columns(picture.arms.len());
    let width = [980.0, 1240.0, 1420.0, 1560.0][columns - 1];
    let end = picture.arms.iter().map(clean::end).fold(0.0, f64::max);
    let mut figure = Figure {
        rows: panel::rows(picture),
        picture,
        time: (0.0, if end > 0.0 { end * 1.02 } else { 1.0 }),
        columns,
        column: (width - 2.0 * MARGIN - GUTTER - GAP * (columns - 1) as f32) / columns as f32,
        y: MARGIN,
        drawing: Drawing::new(),
    };
    figure.title(width);
    let blocks = picture.arms.chunks(columns);
    if blocks.len() == 0 {
        figure.block(&[Arm::default()]);
    }
    for (index, block) in blocks.enumerate() {
        figure.y += if index > 0 { BLOCK_GAP } else { 0.0 };
        figure.block(block);
    }
    Scene {
        width,
        height: figure.y + MARGIN - 6.0,
        title: picture.title.clone(),
        description: picture.subtitle.clone(),
        shapes: figure.drawing.shapes,
    }
}

/// The stroke of a line.
const fn stroke(series: &Series, width: f32) -> Stroke {
    match series.kind {
        Kind::Dashed => Stroke::dashed(series.color, width),
        _ => Stroke::solid(series.color, width),
    }
}

/// The number of columns that fills the blocks evenly.
fn columns(arms: usize) -> usize {
    let blocks = arms.div_ceil(COLUMNS_MAX).max(1);
    arms.div_ceil(blocks).max(1)
}

struct Figure<'a> {
    picture: &'a Picture,
    rows: Vec<(&'static Row, Vec<&'static Series>)>,
    time: (f64, f64),
    columns: usize,
    /// Width of a column.
    column: f32,
    /// The current height, from the top.
    y: f32,
    drawing: Drawing,
}

/// The place of a panel and its scales.
#[derive(Clone, Copy)]
struct Panel {
    left: f32,
    top: f32,
    right: f32,
    bottom: f32,
    x: Linear,
    y: Linear,
}

impl Figure<'_> {
    fn title(&mut self, width: f32) {
        let room = width - 2.0 * MARGIN;
        let style = Style::bold(18.0, INK);
        let title = self.drawing.fitted(&self.picture.title, style, room);
        self.y += 16.0;
        self.text((MARGIN, self.y), Anchor::Start, style, title);
        let summaries = self.picture.summaries();
        let texts = summaries.iter().map(|text| (INK, text.as_str()));
        for (fill, text) in texts.chain([(MUTED, self.picture.subtitle.as_str())]) {
            let style = Style::plain(13.0, fill);
            for line in self.drawing.wrapped(text, style, room) {
                self.y += 20.0;
                self.text((MARGIN, self.y), Anchor::Start, style, line);
            }
        }
        self.y += 14.0;
    }

    /// Arms side by side.
    fn block(&mut self, arms: &[Arm]) {
        self.names(arms);
        let lanes: Vec<Vec<Label>> = arms.iter().map(|arm| self.lanes(arm)).collect();
        let rows = self.rows.len();
        let mut panels = Vec::new();
        for index in 0..rows {
            let (row, series) = (self.rows[index].0, self.rows[index].1.clone());
            self.heading(row, &series, index == 0);
            if index == 0 {
                let depth = lanes.iter().flatten().map(|label| label.lane + 1).max();
                self.y += depth.unwrap_or(0) as f32 * LANE;
            }
            panels.push((self.y, self.y + row.height));
            let values = Linear::new(
                panel::extent(self.picture, row, &series),
                (f64::from(self.y + row.height), f64::from(self.y)),
            );
            for (column, arm) in arms.iter().enumerate() {
                let left = self.left(column);
                let panel = Panel {
                    left,
                    top: self.y,
                    right: left + self.column,
                    bottom: self.y + row.height,
                    x: self.time_scale(column),
                    y: values,
                };
                self.panel(row, &series, arm, panel, column == 0);
            }
            self.y += row.height + ROW_GAP;
        }
        self.y -= ROW_GAP;
        for (column, labels) in lanes.iter().enumerate() {
            self.events(labels, column, &panels);
        }
        self.time_axis(arms.len());
    }

    fn names(&mut self, arms: &[Arm]) {
        let notes = arms.iter().any(|arm| !arm.note.is_empty());
        let labels = arms.iter().any(|arm| !arm.label.is_empty());
        if !(notes || labels) {
            return;
        }
        self.y += 20.0;
        for (column, arm) in arms.iter().enumerate() {
            let left = self.left(column);
            let style = Style::bold(15.0, INK);
            let label = self.drawing.fitted(&arm.label, style, self.column);
            self.text((left, self.y), Anchor::Start, style, label);
            if notes {
                let note = self.drawing.fitted(&arm.note, LEGEND, self.column);
                let at = (left, self.y + 18.0);
                self.text(at, Anchor::Start, LEGEND, note);
            }
        }
        self.y += if notes { 24.0 } else { 6.0 };
    }

    /// The name of a row and its legend, above its panels.
    fn heading(&mut self, row: &Row, series: &[&Series], first: bool) {
        let baseline = self.y + HEADING - 9.0;
        let mut x = self.left(0);
        let style = Style::bold(13.0, INK);
        self.text((x, baseline), Anchor::Start, style, row.title);
        x += self.drawing.width(row.title, style) + 18.0;
        for series in series {
            let middle = baseline - 4.0;
            self.swatch(series, x, middle);
            x += if series.kind == Kind::Dots {
                12.0
            } else {
                21.0
            };
            self.text((x, baseline), Anchor::Start, LEGEND, series.label);
            x += self.drawing.width(series.label, LEGEND) + 16.0;
        }
        for (fill, opacity, name, of) in SHADES {
            if first && self.picture.arms.iter().any(|arm| !of(arm).is_empty()) {
                let at = (x, baseline - 10.0);
                self.drawing
                    .rect(at, (16.0, 12.0), fill.with_opacity(opacity));
                let at = (x + 22.0, baseline);
                self.text(at, Anchor::Start, LEGEND, name);
                x += self.drawing.width(name, LEGEND) + 38.0;
            }
        }
        self.y += HEADING;
    }

    fn swatch(&mut self, series: &Series, x: f32, middle: f32) {
        match series.kind {
            Kind::Dots => self
                .drawing
                .dots(vec![(x + 3.0, middle)], 3.5, series.color),
            Kind::Crosses => self.drawing.shapes.push(Shape::Crosses {
                places: vec![(x + 8.0, middle)],
                arm: 3.0,
                stroke: Stroke::solid(series.color, 1.6),
            }),
            Kind::Steps | Kind::Dashed | Kind::Area => {
                let mut y = middle;
                if series.kind == Kind::Area {
                    y -= 1.0;
                    let fill = series.color.with_opacity(0.25);
                    self.drawing.rect((x, y), (16.0, 6.0), fill);
                }
                let stroke = stroke(series, 1.8);
                self.drawing.line((x, y), (x + 16.0, y), stroke);
            }
        }
    }

    fn panel(&mut self, row: &Row, series: &[&Series], arm: &Arm, panel: Panel, first: bool) {
        for (fill, _, _, of) in SHADES {
            for (from, to) in of(arm) {
                let (from, to) = (panel.x.place(*from) as f32, panel.x.place(*to) as f32);
                let size = ((to - from).max(0.5), panel.bottom - panel.top);
                self.drawing.rect((from, panel.top), size, fill);
            }
        }
        self.grid(row, panel, first);
        // Labels are below the data, so that they hide none.
        let data = Data { arm, series, panel };
        self.guide(row, &data, first);
        for series in series {
            self.series(row, series, arm, panel);
        }
        if series.iter().all(|series| (series.of)(arm).is_empty()) {
            let at = (
                f32::midpoint(panel.left, panel.right),
                f32::midpoint(panel.top, panel.bottom) + 4.0,
            );
            self.noted(at, Anchor::Middle, NO_DATA);
        }
        let corner = vec![
            (panel.left, panel.top),
            (panel.left, panel.bottom),
            (panel.right, panel.bottom),
        ];
        self.lines(vec![corner], Stroke::solid(FRAME, 1.0));
    }

    fn grid(&mut self, row: &Row, panel: Panel, first: bool) {
        let mut lines = Vec::new();
        for (ms, _) in self.time_ticks() {
            let x = panel.x.place(ms) as f32;
            if x > panel.left + 1.0 {
                lines.push(vec![(x, panel.top), (x, panel.bottom)]);
            }
        }
        let wanted = (row.height / 23.0) as usize;
        for (value, label) in ticks(panel.y.domain(), wanted.clamp(2, 7), row.unit) {
            let y = panel.y.place(value) as f32;
            if y < panel.bottom - 1.0 {
                lines.push(vec![(panel.left, y), (panel.right, y)]);
            }
            if first {
                let at = (panel.left - 8.0, y + 4.0);
                self.text(at, Anchor::End, NOTE, label);
            }
        }
        self.lines(lines, Stroke::solid(GRID, 1.0));
    }

    fn series(&mut self, row: &Row, series: &Series, arm: &Arm, panel: Panel) {
        let points = (series.of)(arm);
        if points.is_empty() {
            return;
        }
        let end = arm.line_end(series.key, clean::end(arm));
        match series.kind {
            Kind::Dots => {
                let places = thin::dots(points, &panel.x, &panel.y);
                let radius = if row.key == "bytes" { 1.3 } else { 1.1 };
                self.drawing.dots(places, radius, series.color);
            }
            Kind::Crosses => self.drawing.shapes.push(Shape::Crosses {
                places: thin::crosses(points, &panel.x, &panel.y),
                arm: 2.5,
                stroke: Stroke::solid(series.color, 1.1),
            }),
            Kind::Steps | Kind::Dashed | Kind::Area => {
                let mut corners = thin::steps(points, end, &panel.x, &panel.y);
                if series.key.ends_with("_limit") {
                    let seen = inside(&corners, panel.top);
                    self.lines(seen, Stroke::solid(series.color, 1.5));
                    return;
                }
                for corner in &mut corners {
                    corner.1 = corner.1.max(panel.top);
                }
                if let (Kind::Area, Some(first), Some(last)) =
                    (series.kind, corners.first(), corners.last())
                {
                    let floor = panel.y.place(panel.y.domain().0.max(0.0)) as f32;
                    let mut outline = vec![(first.0, floor)];
                    outline.extend(&corners);
                    outline.push((last.0, floor));
                    let fill = series.color.with_opacity(0.22);
                    self.drawing.area(outline, fill);
                }
                let width = if series.kind == Kind::Area { 1.0 } else { 1.5 };
                self.lines(vec![corners], stroke(series, width));
            }
        }
    }

    /// The guide lines, dashed, with a label in the first column.
    fn guide(&mut self, row: &Row, data: &Data<'_>, first: bool) {
        let panel = data.panel;
        let stroke = Stroke::dashed(MUTED, 1.0);
        if let Some((value, label)) = panel::level(row, &self.picture.guides) {
            let (lo, hi) = panel.y.domain();
            if value < lo || value > hi {
                return;
            }
            let y = panel.y.place(value) as f32;
            self.lines(vec![vec![(panel.left, y), (panel.right, y)]], stroke);
            if first {
                let width = self.drawing.width(&label, NOTE);
                let free = panel.right - panel.left - width - 12.0;
                let lefts = PLACES.map(|share| panel.left + 6.0 + free * share);
                let places = [y - 5.0, y + 13.0]
                    .into_iter()
                    .flat_map(|y| lefts.map(|x| (x, y)));
                self.free_note(places, &label, data);
            }
        }
        if row.key == "bytes"
            && let Some((from, slope)) = panel::slope(data.arm, &self.picture.guides)
        {
            let ms = (panel.y.domain().1 / slope).min(panel.x.domain().1 - from.ms);
            let place = |ms: f64| {
                (
                    panel.x.place(from.ms + ms) as f32,
                    panel.y.place(ms * slope) as f32,
                )
            };
            let (start, end) = (place(0.0), place(ms));
            if end.0 <= start.0 {
                return;
            }
            self.lines(vec![vec![start, end]], stroke);
            if first {
                let rate = Unit::BitsPerSecond.format(slope * 8000.0);
                let width = self.drawing.width(&rate, NOTE);
                let places = [1.0, 0.8, 0.6, 0.4].into_iter().flat_map(|share| {
                    let at = place(ms * share);
                    [(at.0 - 8.0 - width, at.1 + 12.0), (at.0 + 8.0, at.1 + 12.0)]
                });
                self.free_note(places, &rate, data);
            }
        }
    }

    /// A note at the first of these places that lies in the panel and covers the fewest data.
    fn free_note(&mut self, places: impl Iterator<Item = Place>, text: &str, data: &Data<'_>) {
        let width = self.drawing.width(text, NOTE);
        let panel = data.panel;
        let is_inside = |(x, y): &Place| {
            *x >= panel.left
                && x + width <= panel.right
                && y - 10.0 >= panel.top
                && y + 3.0 <= panel.bottom
        };
        let best = places
            .filter(is_inside)
            .min_by_key(|(x, y)| data.covered((x - 2.0, y - 10.0), (x + width + 2.0, y + 3.0)));
        if let Some(at) = best {
            self.noted(at, Anchor::Start, text);
        }
    }

    /// The places of the names of an arm's events above its first panel. Each name starts at its line, in the lowest lane where
    /// it overlaps neither a name nor the line of a name above it.
    fn lanes(&self, arm: &Arm) -> Vec<Label> {
        let x = self.time_scale(0);
        let room = (self.left(0), self.left(0) + self.column);
        let mut labels: Vec<Label> = Vec::new();
        for (ms, name) in arm.events.iter().rev() {
            let place = x.place(*ms) as f32;
            let text = format!("{name} {}", Unit::Milliseconds.format(*ms));
            let text = self.drawing.fitted(&text, NOTE, self.column * 0.7);
            let width = self.drawing.width(&text, NOTE) + 8.0;
            let flipped = place + width > room.1 + GAP * 0.5;
            let (from, to) = if flipped {
                (place - width, place)
            } else {
                (place, place + width)
            };
            let apart = |lane: usize, label: &Label| {
                label.lane != lane || label.to <= from || to <= label.from
            };
            let crossed = |lane: usize, label: &Label| {
                (label.lane > lane && from < label.x && label.x < to)
                    || (label.lane < lane && label.from < place && place < label.to)
            };
            let free = |lane: &usize| labels.iter().all(|label| apart(*lane, label));
            // A lane above all others is always free.
            let lane = (0..=labels.len())
                .filter(free)
                .min_by_key(|lane| {
                    let crossings = labels.iter().filter(|label| crossed(*lane, label)).count();
                    (crossings, *lane)
                })
                .unwrap_or(0);
            labels.push(Label {
                x: place,
                from,
                to,
                lane,
                flipped,
                text,
            });
        }
        labels
    }

    fn events(&mut self, labels: &[Label], column: usize, panels: &[(f32, f32)]) {
        let top = panels.first().map_or(0.0, |panel| panel.0);
        let shift = self.left(column) - self.left(0);
        let baseline = |label: &Label| top - 4.0 - label.lane as f32 * LANE;
        let mut lines = Vec::new();
        for label in labels {
            let x = label.x + shift;
            lines.push(vec![(x, baseline(label) - 9.0), (x, top)]);
            lines.extend(
                panels
                    .iter()
                    .map(|(top, bottom)| vec![(x, *top), (x, *bottom)]),
            );
        }
        let stroke = Stroke::dashed(FAINT, 1.0);
        self.lines(lines, stroke);
        for label in labels {
            let (anchor, gap) = if label.flipped {
                (Anchor::End, -4.0)
            } else {
                (Anchor::Start, 4.0)
            };
            let at = (label.x + shift + gap, baseline(label));
            self.noted(at, anchor, &label.text);
        }
    }

    fn time_axis(&mut self, columns: usize) {
        for column in 0..columns {
            let x = self.time_scale(column);
            for (ms, label) in self.time_ticks() {
                let (place, right) = (x.place(ms) as f32, self.left(column) + self.column);
                // The last one must leave room for the first of the next column.
                let over = place + self.drawing.width(&label, NOTE) / 2.0 > right + GAP / 2.0;
                let (place, anchor) = if over {
                    (right + GAP / 2.0, Anchor::End)
                } else {
                    (place, Anchor::Middle)
                };
                self.text((place, self.y + 17.0), anchor, NOTE, label);
            }
            let at = (self.left(column) + self.column, self.y + 36.0);
            if column + 1 == columns {
                let caption = self.picture.since();
                self.text(at, Anchor::End, Style::plain(11.5, FAINT), caption);
            }
        }
        self.y += AXIS;
    }

    fn time_ticks(&self) -> Vec<(f64, String)> {
        let wanted = (self.column / 66.0).min(12.0) as usize;
        ticks(self.time, wanted.max(2), Unit::Milliseconds)
    }

    fn time_scale(&self, column: usize) -> Linear {
        let left = f64::from(self.left(column));
        Linear::new(self.time, (left, left + f64::from(self.column)))
    }

    fn left(&self, column: usize) -> f32 {
        debug_assert!(column < self.columns);
        MARGIN + GUTTER + column as f32 * (self.column + GAP)
    }

    fn lines(&mut self, lines: Vec<Vec<Place>>, stroke: Stroke) {
        if !lines.is_empty() {
            self.drawing.lines(lines, stroke);
        }
    }

    /// Small text over data, on its own background.
    fn noted(&mut self, at: Place, anchor: Anchor, text: &str) {
        let width = self.drawing.width(text, NOTE);
        let left = anchor.left(at, width);
        let corner = (left - 2.0, at.1 - 10.0);
        self.drawing.rect(corner, (width + 4.0, 13.0), HALO);
        self.text(at, anchor, NOTE, text);
    }

    fn text(&mut self, at: Place, anchor: Anchor, style: Style, text: impl Into<String>) {
        let text = text.into();
        if !text.is_empty() {
            self.drawing.text(at, anchor, style, text);
        }
    }
}

/// The shades of periods: fill, opacity in the legend, name, and periods.
type Shade = (Color, f32, &'static str, fn(&Arm) -> &Vec<(f64, f64)>);
const SHADES: [Shade; 2] = [
    (RECOVERY, 0.16, "recovery", |arm| &arm.recovery),
    (BLOCKED, 0.28, "blocked by flow control", |arm| &arm.blocked),
];

/// Where the label of a level may be, as shares of the width, in the order of preference.
const PLACES: [f32; 9] = [0.0, 0.5, 1.0, 0.25, 0.75, 0.125, 0.375, 0.625, 0.875];

/// In place of the series of a panel, if a file has none of them.
const NO_DATA: &str = "no data";

/// What a panel shows.
struct Data<'a> {
    arm: &'a Arm,
    series: &'a [&'a Series],
    panel: Panel,
}

impl Data<'_> {
    /// The number of points, steps and lines of events in a rectangle.
    fn covered(&self, from: Place, to: Place) -> usize {
        let place = |point: &Point| {
            (
                self.panel.x.place(point.ms) as f32,
                self.panel.y.place(point.value) as f32,
            )
        };
        let events = self.arm.events.iter();
        let events = events.map(|(ms, _)| self.panel.x.place(*ms) as f32);
        let mut covered = events.filter(|x| (from.0..=to.0).contains(x)).count();
        for series in self.series {
            let points = (series.of)(self.arm);
            let start = points.partition_point(|point| place(point).0 < from.0);
            let is_held = matches!(series.kind, Kind::Steps | Kind::Dashed | Kind::Area);
            let mut held = points[..start]
                .last()
                .filter(|_| is_held)
                .map(|point| place(point).1);
            if held.is_some_and(|y| from.1 <= y && y <= to.1) {
                covered += 1;
            }
            let seen = points[start..].iter().map(place);
            for (_, y) in seen.take_while(|(x, _)| *x <= to.0) {
                let before = held.filter(|_| is_held).unwrap_or(y);
                covered += usize::from(before.min(y) <= to.1 && before.max(y) >= from.1);
                held = Some(y);
            }
        }
        covered
    }
}

/// The name of an event and its place in the first column.
struct Label {
    x: f32,
    from: f32,
    to: f32,
    lane: usize,
    flipped: bool,
    text: String,
}

/// The parts of a line that are below `top`. The scale is that of the data: a limit above it leaves the picture at the upper edge.
fn inside(corners: &[Place], top: f32) -> Vec<Vec<Place>> {
    let is_inside = |at: usize| corners.get(at).is_some_and(|corner| corner.1 >= top);
    let seen = corners.iter().enumerate().map(|(at, corner)| {
        let is_seen = is_inside(at) || is_inside(at + 1) || is_inside(at.wrapping_sub(1));
        is_seen.then(|| (corner.0, corner.1.max(top)))
    });
    let seen: Vec<Option<Place>> = seen.collect();
    let parts = seen.split(Option::is_none);
    let parts = parts.map(|part| part.iter().flatten().copied().collect::<Vec<Place>>());
    parts.filter(|part| part.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::inside;

    /// A limit that is raised beyond the scale does not end in the middle of the picture.
    #[test]
    fn a_line_leaves_the_picture_at_its_edge() {
        let corners = [
            (0.0, 50.0),
            (4.0, 50.0),
            (4.0, -9.0),
            (8.0, -9.0),
            (8.0, -20.0),
        ];
        let expected = vec![vec![(0.0, 50.0), (4.0, 50.0), (4.0, 10.0)]];
        assert_eq!(inside(&corners, 10.0), expected);
        assert!(inside(&corners[2..], 10.0).is_empty());
        assert_eq!(inside(&corners[..2], 10.0), [corners[..2].to_vec()]);
    }
}
