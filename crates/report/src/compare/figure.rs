//! The charts: one per network, with a dot per page.

use super::{
    PageLoads, Selection,
    verdict::{Pair, Verdict, pairs},
};
use crate::{
    drawing::{Drawing, FRAME, GRID, INK, MUTED},
    figure::{Arrangement, Axis, Figure, Look, Mark, Panel, Point, Scale, Series},
    scale::{Linear, Unit},
    scene::{Anchor, Color, Place, Scene, Shape, Stroke, Style},
};

const FASTER: Color = Color::solid(0x00_5fa8);
const SLOWER: Color = Color::solid(0xc9_7b00);

/// The sizes of the chart of a network, in pixels.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Width.
    pub(super) width: f32,
    /// Text beside the axes.
    tick: f32,
    /// The most ticks besides powers of ten.
    ticks: usize,
    radius: f32,
}

impl Layout {
    /// The layout for this number of charts: a few fill a row of a page.
    pub(super) const fn of(charts: usize) -> Self {
        match charts {
            0..=2 => Self {
                width: 420.0,
                tick: 12.5,
                ticks: 7,
                radius: 3.0,
            },
            3 => Self {
                width: 340.0,
                tick: 11.5,
                ticks: 6,
                radius: 2.4,
            },
            _ => Self {
                width: 240.0,
                tick: 10.5,
                ticks: 4,
                radius: 1.9,
            },
        }
    }

    /// Network and share of pages.
    const fn title(self) -> f32 {
        self.tick + 1.5
    }

    /// Left, top, right and bottom of the plot, which is a square.
    fn plot(self) -> (f32, f32, f32, f32) {
        let (left, top) = (4.1 * self.tick, 5.4 * self.tick + 4.0);
        let right = self.width - 8.0;
        (left, top, right, top + right - left)
    }

    /// Height, with ticks and name of the horizontal axis.
    fn height(self) -> f32 {
        self.plot().3 + 3.2 * self.tick
    }
}

/// The times that a chart spans: a factor beyond the finite extremes, the same for both axes.
fn domain(pairs: &[Pair]) -> (f64, f64) {
    let times = || {
        let all = pairs.iter().flat_map(|pair| [pair.baseline, pair.arm]);
        all.filter(|ms| ms.is_finite())
    };
    let low = times().fold(f64::INFINITY, f64::min);
    let high = times().fold(0.0, f64::max);
    if low > high {
        return (100.0, 10_000.0);
    }
    (low / 1.15, high * 1.15)
}

/// Powers of ten and their doubles and fives within a domain; only the powers if there are more than this number.
fn ticks((low, high): (f64, f64), most: usize) -> Vec<f64> {
    let all = (0..8).flat_map(|power| {
        let ten = 10f64.powi(power);
        [ten, 2.0 * ten, 5.0 * ten]
    });
    let within: Vec<f64> = all.filter(|at| (low..=high).contains(at)).collect();
    if within.len() <= most {
        return within;
    }
    let powers = within.into_iter();
    powers.filter(|at| at.log10().fract() == 0.0).collect()
}

/// The grid, and the times beside it.
fn axes(layout: Layout, domain: (f64, f64), x: Linear, y: Linear, drawing: &mut Drawing) {
    let style = Style::plain(layout.tick, MUTED);
    let (left, top, right, bottom) = layout.plot();
    let mut grid = Vec::new();
    let mut last_right = 0.0;
    for at in ticks(domain, layout.ticks) {
        let (across, down) = (x.place(at.log10()) as f32, y.place(at.log10()) as f32);
        grid.push(vec![(across, top), (across, bottom)]);
        grid.push(vec![(left, down), (right, down)]);
        let label = match at {
            at if at >= 1000.0 => format!("{} s", at / 1000.0),
            at => format!("{at} ms"),
        };
        let at = (left - 4.0, down + 0.36 * layout.tick);
        drawing.text(at, Anchor::End, style, label.clone());
        if across > last_right {
            // The last label ends with the plot.
            let (at, anchor) = if across + 1.4 * layout.tick > right {
                (right, Anchor::End)
            } else {
                (across, Anchor::Middle)
            };
            let at = (at, bottom + 1.3 * layout.tick);
            drawing.text(at, anchor, style, label);
            last_right = across + 3.6 * layout.tick;
        }
    }
    let grid = Shape::Lines {
        lines: grid,
        stroke: Stroke::solid(GRID, 1.0),
    };
    drawing.shapes.insert(0, grid);
}

/// The chart of a network.
pub(super) fn chart(
    loads: &PageLoads,
    selection: Selection,
    network: usize,
    pairs: &[Pair],
    layout: Layout,
) -> Scene {
    let name = loads.networks.get(network).map_or("", String::as_str);
    let verdict = Verdict::of(pairs);
    let share = match verdict.faster {
        Some(faster) => format!(
            "{:.0} % of {} pages faster",
            100.0 * faster.value,
            verdict.pages
        ),
        None => "no page".to_owned(),
    };
    let mut drawing = Drawing::new();
    let (left, top, right, bottom) = layout.plot();
    let domain = domain(pairs);
    let logs = (domain.0.log10(), domain.1.log10());
    let x = Linear::new(logs, (f64::from(left), f64::from(right)));
    let y = Linear::new(logs, (f64::from(bottom), f64::from(top)));
    let place = |one: &Pair| {
        (
            x.place(one.baseline.min(domain.1).log10()) as f32,
            y.place(one.arm.min(domain.1).log10()) as f32,
        )
    };
    axes(layout, domain, x, y, &mut drawing);
    let frame = vec![
        (left, top),
        (right, top),
        (right, bottom),
        (left, bottom),
        (left, top),
    ];
    drawing.lines(vec![frame], Stroke::solid(FRAME, 1.0));
    let equal = Stroke::dashed(MUTED, 1.0);
    drawing.line((left, bottom), (right, top), equal);
    let (faster, slower): (Vec<&Pair>, Vec<&Pair>) =
        pairs.iter().partition(|pair| pair.speedup() > 1.0);
    for (some, fill) in [(slower, SLOWER), (faster, FASTER)] {
        if !some.is_empty() {
            let places = some.into_iter().map(place).collect();
            drawing.dots(places, layout.radius, fill.with_opacity(0.6));
        }
    }
    let arm = |index: usize| loads.arms.get(index).map_or("", String::as_str);
    let (size, tick) = (layout.title(), layout.tick);
    let (bold, plain) = (Style::bold(size, INK), Style::plain(tick, INK));
    let room = layout.width - 8.0;
    let name = drawing.fitted(name, bold, room);
    drawing.text((4.0, 1.1 * size), Anchor::Start, bold, name.clone());
    let at = (4.0, 2.5 * size);
    drawing.text(at, Anchor::Start, Style::plain(size, INK), share.clone());
    let upwards = drawing.fitted(&format!("↑ {}", arm(selection.arm)), plain, room);
    let across = drawing.fitted(&format!("{} →", arm(0)), plain, room);
    let at = (4.0, top - 0.6 * tick);
    drawing.text(at, Anchor::Start, plain, upwards);
    let at = (right, bottom + 2.7 * tick);
    drawing.text(at, Anchor::End, plain, across);
    Scene {
        width: layout.width,
        height: layout.height(),
        title: name,
        description: share,
        shapes: drawing.shapes,
    }
}

/// The charts of all networks in one picture.
pub(super) fn overview(loads: &PageLoads, selection: Selection) -> Scene {
    const COLUMNS: usize = 6;
    const HEAD: f32 = 66.0;
    let all = pairs(loads, selection);
    let layout = Layout::of(all.len());
    let (width, height) = (layout.width + 8.0, layout.height() + 8.0);
    let columns = all.len().clamp(1, COLUMNS);
    let rows = all.len().div_ceil(columns).max(1);
    let arm = |index: usize| loads.arms.get(index).map_or("", String::as_str);
    let axes = format!(
        "{}, {} view: {} across, {} upwards; each dot is a page, blue where {} is faster",
        selection.metric.name(),
        loads.views.get(selection.view).map_or("", String::as_str),
        arm(0),
        arm(selection.arm),
        arm(selection.arm),
    );
    let mut drawing = Drawing::new();
    for (at, style, words) in [
        (24.0, Style::bold(17.0, INK), &loads.title),
        (46.0, Style::plain(12.5, MUTED), &axes),
    ] {
        drawing.text((14.0, at), Anchor::Start, style, words.clone());
    }
    for (network, pairs) in all.iter().enumerate() {
        let origin = (
            10.0 + (network % columns) as f32 * width,
            HEAD + (network / columns) as f32 * height,
        );
        let chart = chart(loads, selection, network, pairs, layout);
        let shapes = chart.shapes.into_iter();
        drawing
            .shapes
            .extend(shapes.map(|shape| moved(shape, origin)));
    }
    Scene {
        width: (20.0 + columns as f32 * width).max(720.0),
        height: HEAD + rows as f32 * height + 6.0,
        title: loads.title.clone(),
        description: axes,
        shapes: drawing.shapes,
    }
}

fn moved(shape: Shape, by: Place) -> Shape {
    let to = |(x, y): Place| (x + by.0, y + by.1);
    match shape {
        Shape::Lines { lines, stroke } => Shape::Lines {
            lines: lines
                .into_iter()
                .map(|line| line.into_iter().map(to).collect())
                .collect(),
            stroke,
        },
        Shape::Dots {
            places,
            radius,
            fill,
        } => Shape::Dots {
            places: places.into_iter().map(to).collect(),
            radius,
            fill,
        },
        Shape::Text {
            at,
            anchor,
            style,
            text,
        } => Shape::Text {
            at: to(at),
            anchor,
            style,
            text,
        },
        // Charts consist of the shapes above.
        other => other,
    }
}

/// A time in ms, as tables write it.
pub(super) fn time(ms: f64) -> String {
    Unit::Milliseconds.format(ms)
}

/// The charts of all networks for print: a panel for each, with a dot per page.
pub(super) fn print(loads: &PageLoads, name: &str, selection: Selection) -> Figure {
    let arm = |index: usize| loads.arms.get(index).map_or("", String::as_str);
    let all = pairs(loads, selection);
    let panels = loads.networks.iter().zip(&all).map(|(network, pairs)| {
        let (low, high) = domain(pairs);
        let axis = || Axis {
            scale: Scale::Logarithmic(Unit::Milliseconds),
            domain: (low, high),
        };
        let (faster, slower): (Vec<&Pair>, Vec<&Pair>) =
            pairs.iter().partition(|pair| pair.speedup() > 1.0);
        let series = |name: String, color: Color, some: Vec<&Pair>| Series {
            name,
            look: Look {
                color,
                ..Look::of(0)
            },
            mark: Mark::Dots,
            points: some
                .into_iter()
                .map(|pair| Point::new(pair.baseline, pair.arm))
                .collect(),
        };
        let share = Verdict::of(pairs).faster.map_or_else(String::new, |share| {
            format!(": {:.0} % faster", 100.0 * share.value)
        });
        Panel {
            title: format!("{network}{share}"),
            x: axis(),
            y: axis(),
            height: 1.0,
            series: vec![
                series("not faster".to_owned(), SLOWER, slower),
                series(
                    format!("page faster over {}", arm(selection.arm)),
                    FASTER,
                    faster,
                ),
            ],
            guides: vec![[(low, low), (high, high)]],
            marks: Vec::new(),
        }
    });
    let what = format!(
        "{}, {} view",
        selection.metric.name(),
        loads.views.get(selection.view).map_or("", String::as_str)
    );
    Figure {
        name: name.to_owned(),
        title: loads.title.clone(),
        description: String::new(),
        captions: (
            format!("{} →", arm(0)),
            format!("{what}; ↑ {}", arm(selection.arm)),
        ),
        arrangement: Arrangement::Grid(128.0),
        panels: panels.collect(),
    }
}
