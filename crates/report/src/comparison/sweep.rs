//! The chart of a sweep: the change of the median over the values of a setting, a panel per combination of the other settings.

use core::fmt::Write;

use super::{
    analysis::{Analysis, Group},
    figure::{Size, color},
    format::percent,
    queries::Subgroup,
    settings::Sweep,
    text::of_metric,
};
use crate::{
    drawing::{Drawing, FRAME, GRID, INK, MUTED},
    scale::{Changes, Extent},
    scene::{Anchor, Place, Scene, Stroke, Style},
    statistics::bootstrap::Interval,
};

const HEIGHT: f32 = 190.0;
const HEAD: f32 = 26.0;
const FOOT: f32 = 30.0;
const LEFT: f32 = 50.0;
const RIGHT: f32 = 14.0;
/// The opacity of what does not differ significantly.
const PALE: f32 = 0.35;
/// The place of P50 in [`Group::curves`].
const MEDIAN: usize = 49;

/// The change of the median of an arm on a network; `None` if there is none.
pub(super) fn cell<'a>(analysis: &'a Analysis, network: &str, arm: usize) -> Option<&'a Interval> {
    group(analysis, network)?.curves[arm].get(MEDIAN)
}

/// A point of an arm: the change of the median, and whether the arm differs by the corrected test.
type Point<'a> = Option<(&'a Interval, bool)>;

fn point<'a>(analysis: &'a Analysis, network: &str, arm: usize) -> Point<'a> {
    let is_significant = group(analysis, network)?.differs(arm);
    Some((cell(analysis, network, arm)?, is_significant))
}

/// The connections over a network.
pub(super) fn group<'a>(analysis: &'a Analysis, network: &str) -> Option<&'a Group> {
    analysis
        .groups
        .iter()
        .find(|group| matches!(&group.subgroup, Subgroup::Site(name) if name == network))
}

/// The range of all changes with their intervals, in percent: see [`Extent`].
pub(super) fn domain(analysis: &Analysis, sweep: &Sweep) -> (f64, f64) {
    let mut extent = Extent::new();
    let networks = sweep.panels.iter().flat_map(|panel| &panel.networks);
    for network in networks {
        for arm in 1..analysis.arms.len() {
            if let Some(cell) = cell(analysis, network, arm) {
                let (from, to) = cell.alone.unzip();
                extent.add(cell.estimate, from.into_iter().chain(to));
            }
        }
    }
    extent.domain()
}

/// All panels, with one scale.
pub(super) fn chart(analysis: &Analysis, sweep: &Sweep, size: Size) -> Scene {
    let (width, columns) = match (size, sweep.panels.len()) {
        (Size::Wide, 1) => (1000.0, 1),
        (Size::Wide, 2 | 4) => (1000.0, 2),
        (Size::Wide, _) => (1000.0, 3),
        (Size::Narrow | Size::Small, _) => (390.0, 1),
    };
    let font = size.font();
    let (plain, bold) = (Style::plain(font, INK), Style::bold(font, INK));
    let mut drawing = Drawing::new();
    let top = legend(&mut drawing, analysis, width, font);
    let room = width / columns as f32;
    let domain = domain(analysis, sweep);
    let mut is_cut = false;
    for (place, panel) in sweep.panels.iter().enumerate() {
        let left = (place % columns) as f32 * room;
        let top = top + (place / columns) as f32 * (HEAD + HEIGHT + FOOT);
        let title = drawing.fitted(&panel.title, bold, room - LEFT - RIGHT);
        let at = (left + LEFT, top + font + 2.0);
        drawing.text(at, Anchor::Start, bold, title);
        let y = Changes::new(
            domain,
            (f64::from(top + HEAD + HEIGHT), f64::from(top + HEAD)),
        );
        let edges = (left + LEFT, left + room - RIGHT);
        axes(&mut drawing, sweep, domain, &y, edges, font);
        for arm in 1..analysis.arms.len() {
            let cells = panel.networks.iter();
            let cells: Vec<Point<'_>> =
                cells.map(|network| point(analysis, network, arm)).collect();
            is_cut |= line(
                &mut drawing,
                &cells,
                arm,
                analysis.arms.len(),
                domain,
                &y,
                edges,
            );
        }
    }
    let rows = sweep.panels.len().div_ceil(columns) as f32;
    let mut height = top + rows * (HEAD + HEIGHT + FOOT) + font + 8.0;
    let at = (width / 2.0, height - 6.0);
    drawing.text(at, Anchor::Middle, plain, sweep.axis.clone());
    if is_cut {
        let at = (LEFT, height + font - 4.0);
        let text = "arrows mark intervals that are longer than the axis";
        drawing.text(at, Anchor::Start, Style::plain(font - 1.0, MUTED), text);
        height += font + 4.0;
    }
    Scene {
        width,
        height,
        title: format!(
            "Change of the median{} by {}",
            of_metric(analysis),
            sweep.axis
        ),
        description: described(analysis, sweep),
        shapes: drawing.shapes,
    }
}

/// The names of the arms, in lines as wide as the chart. Returns where they end.
fn legend(drawing: &mut Drawing, analysis: &Analysis, width: f32, font: f32) -> f32 {
    let (mut left, mut top) = (6.0, 6.0);
    let style = Style::plain(font, INK);
    for (arm, one) in analysis.arms.iter().enumerate().skip(1) {
        let name = drawing.fitted(&one.name, style, width - 30.0);
        let length = drawing.width(&name, style) + 36.0;
        if left + length > width && left > 6.0 {
            (left, top) = (6.0, top + 20.0);
        }
        drawing.dots(vec![(left + 6.0, top + 6.0)], 4.5, color(arm));
        let at = (left + 16.0, top + 10.5);
        drawing.text(at, Anchor::Start, style, name);
        left += length;
    }
    top + 26.0
}

fn axes(
    drawing: &mut Drawing,
    sweep: &Sweep,
    domain: (f64, f64),
    y: &Changes,
    (left, right): (f32, f32),
    font: f32,
) {
    let marks = Changes::ticks(domain, 5);
    for (value, _) in &marks {
        let at = y.place(*value) as f32;
        let (color, width) = if *value == 0.0 {
            (INK, 1.3)
        } else {
            (GRID, 1.0)
        };
        drawing.line((left, at), (right, at), Stroke::solid(color, width));
    }
    let bottom = y.place(domain.0) as f32;
    let frame = Stroke::solid(FRAME, 1.0);
    drawing.line((left, bottom), (right, bottom), frame);
    let style = Style::plain(font - 1.0, MUTED);
    for (value, label) in marks {
        let at = (left - 6.0, y.place(value) as f32 + font * 0.35);
        drawing.text(at, Anchor::End, style, label);
    }
    let room = (right - left) / sweep.values.len().max(1) as f32;
    for (place, value) in sweep.values.iter().enumerate() {
        let value = drawing.fitted(value, style, room - 2.0);
        let at = (left + (place as f32 + 0.5) * room, bottom + font + 5.0);
        drawing.text(at, Anchor::Middle, style, value);
    }
}

/// The medians of an arm with their intervals, beside those of the other arms. Points that do not differ significantly are pale.
/// Returns whether an interval is longer than the axis.
fn line(
    drawing: &mut Drawing,
    cells: &[Point<'_>],
    arm: usize,
    arms: usize,
    (low, high): (f64, f64),
    y: &Changes,
    (left, right): (f32, f32),
) -> bool {
    let room = (right - left) / cells.len().max(1) as f32;
    let beside = (arm as f32 - arms as f32 / 2.0) * (room * 0.5 / arms as f32).min(10.0);
    let mut pieces: Vec<Vec<Place>> = vec![Vec::new()];
    let (mut bars, mut solid, mut pale) = (Vec::new(), Vec::new(), Vec::new());
    let mut cut = Vec::new();
    for (place, cell) in cells.iter().enumerate() {
        let x = left + (place as f32 + 0.5) * room + beside;
        let at = |value: f64| (x, y.place((value * 100.0).clamp(low, high)) as f32);
        match cell.and_then(|(cell, is_significant)| Some((cell.estimate?, is_significant))) {
            Some((value, is_significant)) => {
                if let Some(piece) = pieces.last_mut() {
                    piece.push(at(value));
                }
                let points = if is_significant {
                    &mut solid
                } else {
                    &mut pale
                };
                points.push(at(value));
            }
            None => pieces.push(Vec::new()),
        }
        if let Some((from, to)) = cell.and_then(|(cell, _)| cell.alone) {
            bars.push(vec![at(from), at(to)]);
            let ends = [
                (from * 100.0 < low, low, 5.0),
                (to * 100.0 > high, high, -5.0),
            ];
            cut.extend(
                ends.into_iter()
                    .filter(|(is_cut, ..)| *is_cut)
                    .map(|(_, end, tip)| {
                        let edge = y.place(end) as f32;
                        vec![(x - 4.0, edge), (x, edge + tip), (x + 4.0, edge)]
                    }),
            );
        }
    }
    let stroke = |width: f32, opacity| Stroke::solid(color(arm).with_opacity(opacity), width);
    drawing.lines(bars, stroke(4.0, 0.3));
    let is_cut = !cut.is_empty();
    for outline in cut {
        drawing.area(outline, color(arm).with_opacity(0.6));
    }
    let is_pale = solid.is_empty();
    for (places, fill) in [(solid, color(arm)), (pale, color(arm).with_opacity(PALE))] {
        if !places.is_empty() {
            drawing.dots(places, 3.2, fill);
        }
    }
    pieces.retain(|piece| piece.len() > 1);
    drawing.lines(pieces, stroke(2.0, if is_pale { PALE } else { 1.0 }));
    is_cut
}

/// For screen readers: the median change of each arm on each network.
fn described(analysis: &Analysis, sweep: &Sweep) -> String {
    let mut text = format!(
        "Horizontal axis: {}. Vertical axis: change of the median of {} relative to {}, in percent.",
        sweep.axis, analysis.settings.metric.name, analysis.arms[0].name
    );
    for network in sweep.panels.iter().flat_map(|panel| &panel.networks) {
        for (arm, one) in analysis.arms.iter().enumerate().skip(1) {
            let at = point(analysis, network, arm);
            let value = at.and_then(|(cell, _)| cell.estimate);
            let value = value.map_or_else(|| "unknown".to_owned(), percent);
            let verdict = match at {
                Some((_, false)) => ", not significant",
                _ => "",
            };
            // Writing to a `String` cannot fail.
            let _ = write!(text, " {network}, {}: {value}{verdict}.", one.name);
        }
    }
    text
}
