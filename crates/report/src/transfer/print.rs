//! A picture as a figure for print: a panel per row, in which a line per arm, or all series of a single one.

use super::{
    Arm, Picture, clean,
    panel::{self, Kind, Row, Series as Drawn},
    thin,
};
use crate::figure::{Arrangement, Axis, Figure, Look, Mark, Panel, Point, Scale, Series};
use crate::scale::Unit;

/// Spans of time in which peaks are kept: about as many as dots of a printer's line.
const SPANS: usize = 400;

/// The figure of a clean picture.
pub(super) fn figure(picture: &Picture) -> Figure {
    let end = picture.arms.iter().map(clean::end).fold(0.0, f64::max);
    let end = if end > 0.0 { end } else { 1.0 };
    let rows = panel::rows(picture).into_iter().enumerate();
    let panels = rows.map(|(index, (row, all))| {
        let series: Vec<Series> = match &picture.arms[..] {
            [arm] => all
                .iter()
                .enumerate()
                .map(|(place, drawn)| alone(arm, drawn, place, end))
                .collect(),
            arms => overlaid(arms, &all, end),
        };
        let mut panel = Panel {
            title: row.title.to_owned(),
            x: Axis {
                scale: Scale::Linear(Unit::Milliseconds),
                domain: (0.0, end),
            },
            y: Axis {
                scale: Scale::Linear(row.unit),
                domain: panel::extent(picture, row, &all),
            },
            height: if index == 0 { 0.42 } else { 0.17 },
            series,
            guides: Vec::new(),
            marks: Vec::new(),
        };
        guide(picture, row, &mut panel);
        panel
    });
    Figure {
        name: "transfer".to_owned(),
        title: picture.title.clone(),
        description: String::new(),
        captions: (format!("time {}", picture.since()), String::new()),
        arrangement: Arrangement::Stacked,
        panels: panels.collect(),
    }
}

/// The level of a row as a dotted line, which the title names.
fn guide(picture: &Picture, row: &Row, panel: &mut Panel) {
    let level = panel::level(row, &picture.guides);
    if let Some((value, label)) = level.filter(|(value, _)| panel.y.contains(*value)) {
        let (start, end) = panel.x.domain;
        panel.guides.push([(start, value), (end, value)]);
        panel.title = format!("{} (dotted: {label})", panel.title);
    }
}

/// A line for each arm, of the series that tells most.
fn overlaid(arms: &[Arm], all: &[&Drawn], end: f64) -> Vec<Series> {
    let is_line = |drawn: &&&Drawn| drawn.kind != Kind::Crosses;
    let mut lines = all.iter().filter(is_line);
    let chosen = lines
        .clone()
        .find(|drawn| drawn.overlaid)
        .or_else(|| lines.next());
    let series = arms.iter().enumerate().filter_map(|(place, arm)| {
        let drawn = chosen?;
        let points = points(arm, drawn, end, true);
        (!points.is_empty()).then(|| Series {
            name: arm.label.clone(),
            look: Look::of(place),
            mark: Mark::Steps,
            points,
        })
    });
    series.collect()
}

/// A series of the only arm.
fn alone(arm: &Arm, drawn: &Drawn, place: usize, end: f64) -> Series {
    let is_line = !matches!(drawn.kind, Kind::Dots | Kind::Crosses);
    Series {
        name: drawn.label.to_owned(),
        look: Look {
            color: drawn.color,
            ..Look::of(if is_line { place } else { 0 })
        },
        mark: match drawn.kind {
            Kind::Dots => Mark::Dots,
            Kind::Crosses => Mark::Crosses,
            Kind::Steps | Kind::Dashed | Kind::Area => Mark::Steps,
        },
        points: points(arm, drawn, end, is_line),
    }
}

/// The points of a series, of which each holds until the next if they are steps.
fn points(arm: &Arm, drawn: &Drawn, end: f64, is_line: bool) -> Vec<Point> {
    let own_end = arm.line_end(drawn.key, clean::end(arm));
    let kept = thin::peaks((drawn.of)(arm), end, SPANS);
    let mut points: Vec<Point> = kept
        .iter()
        .map(|point| Point::new(point.ms, point.value))
        .collect();
    let last = points.last().filter(|_| is_line).map(|last| last.y);
    points.extend(last.map(|value| Point::new(own_end, value)));
    points
}
