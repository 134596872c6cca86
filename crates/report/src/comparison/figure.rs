//! The charts: percentile over change, a line per arm, with its confidence bands.
//!
//! `comparison/print.rs` has them for print.

use core::{fmt::Write, mem::discriminant};

use super::{
    analysis::{Analysis, Group, SMALL},
    neighbours::Kind,
    paths::Paths,
    queries::Subgroup,
    settings::Metric,
    text,
};
use crate::{
    drawing::{Drawing, FRAME, GRID, INK, MUTED},
    figure::Look,
    scale::{Changes, Extent, Linear},
    scene::{Anchor, Color, Place, Scene, Stroke, Style},
    statistics::bootstrap::Interval,
};

const GROUND: Color = Color::solid(0xff_ffff);

/// The colour of an arm; the baseline's is the ink of the zero line.
pub(super) fn color(arm: usize) -> Color {
    match arm.checked_sub(1) {
        None => MUTED,
        Some(place) => Look::of(place).color,
    }
}

/// The layout of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// For screens and paper.
    Wide,
    /// For phones.
    Narrow,
    /// One of many.
    Small,
}

impl Size {
    /// The size of text.
    pub(super) fn font(self) -> f32 {
        match self {
            Self::Wide => 13.0,
            Self::Narrow | Self::Small => 12.5,
        }
    }
}

/// A chart and the position of its plot, which the page needs for its read-out.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) scene: Scene,
    pub(super) plot: Plot,
}

/// The plot of a chart: its edges, and the changes at its left and right edge, in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
    pub(super) domain: (f64, f64),
}

/// The content of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    /// The changes of percentiles of a group.
    Group(&'a Group),
    /// The percentiles of the changes of paths.
    Paths(&'a Paths),
    /// The percentiles of the changes of a neighbour's rate.
    Neighbour(&'a Kind),
}

impl<'a> Subject<'a> {
    /// Change by arm, at the percentiles 1 to 99.
    pub(super) fn curves(self) -> &'a [Vec<Interval>] {
        match self {
            Self::Group(group) => &group.curves,
            Self::Paths(paths) => &paths.curves,
            Self::Neighbour(kind) => &kind.curves,
        }
    }

    /// Whether the arm has too few connections to show small differences.
    pub(super) fn is_small(self, arm: usize) -> bool {
        match self {
            Self::Group(group) => group.is_small(arm),
            Self::Paths(paths) => paths.counts[arm] < SMALL,
            Self::Neighbour(kind) => kind.counts[arm] < SMALL,
        }
    }

    /// Whether it is of all connections, whose joint band is the test of the experiment; subgroups have another test, and paths have
    /// no joint band.
    pub(super) fn is_main(self) -> bool {
        matches!(self, Self::Group(group) if group.subgroup == Subgroup::All)
    }

    pub(super) fn title(self, metric: &str) -> String {
        match self {
            Self::Group(group) if group.subgroup == Subgroup::All => {
                format!("{metric} change by percentile")
            }
            Self::Group(group) => format!("{metric} change by percentile: {}", group.title),
            Self::Paths(_) => format!("{metric} change of each path"),
            Self::Neighbour(kind) => format!("change of the rate of the neighbour {}", kind.name),
        }
    }

    /// Labels of the quantity, of a decrease and of an increase.
    pub(super) fn labels(self, metric: &Metric) -> (&str, &'static str, &'static str) {
        match self {
            Self::Neighbour(_) => ("neighbour’s rate", "less", "more"),
            Self::Group(_) | Self::Paths(_) => (&metric.name, metric.less(), metric.more()),
        }
    }
}

/// The horizontal range of a chart and of those that it is compared with: see [`Extent`]. Bands count where there are enough
/// connections to make them narrow.
pub(super) fn domain(analysis: &Analysis, subject: Subject<'_>) -> (f64, f64) {
    let (from, to) = match subject {
        Subject::Paths(_) => (3, 97),
        Subject::Neighbour(_) => (5, 95),
        Subject::Group(group) => match group.subgroup {
            Subgroup::All => (5, 95),
            Subgroup::Bin(_) => (8, 92),
            Subgroup::Site(_) => (12, 88),
        },
    };
    let compared: Vec<Subject<'_>> = match subject {
        Subject::Paths(_) => vec![subject],
        Subject::Neighbour(_) => {
            let kinds = analysis.neighbours.iter().flatten();
            kinds.map(Subject::Neighbour).collect()
        }
        Subject::Group(group) => {
            let kind = discriminant(&group.subgroup);
            let groups = analysis.groups.iter();
            let groups = groups.filter(|one| discriminant(&one.subgroup) == kind);
            groups.map(Subject::Group).collect()
        }
    };
    let mut extent = Extent::new();
    for subject in compared {
        for (arm, curve) in subject.curves().iter().enumerate().skip(1) {
            let is_small = subject.is_small(arm);
            // With few connections the tails are noise.
            let (from, to) = if is_small {
                (25.max(from), 75.min(to))
            } else {
                (from, to)
            };
            for (place, cell) in curve.iter().enumerate().take(to).skip(from - 1) {
                let is_inner = (9..90).contains(&place) && subject.is_main();
                let bands = [cell.alone, cell.together.filter(|_| is_inner)]
                    .into_iter()
                    .flatten();
                let bands = bands.filter(|_| !is_small).flat_map(|(a, b)| [a, b]);
                extent.add(cell.estimate, bands);
            }
        }
    }
    extent.domain()
}

/// A chart that is being drawn.
struct Canvas<'a> {
    drawing: Drawing,
    analysis: &'a Analysis,
    subject: Subject<'a>,
    plot: Plot,
    x: Changes,
    y: Linear,
    size: Size,
    font: f32,
}

/// A chart of a group.
pub(super) fn chart(analysis: &Analysis, subject: Subject<'_>, size: Size) -> Chart {
    let domain = domain(analysis, subject);
    let (width, height) = match size {
        Size::Wide => (1000.0, 560.0),
        Size::Narrow => (390.0, 470.0),
        Size::Small => (390.0, 330.0),
    };
    let mut height: f32 = height;
    let plot = Plot {
        left: if size == Size::Wide { 66.0 } else { 54.0 },
        top: if size == Size::Small { 18.0 } else { 32.0 },
        right: width - 18.0,
        bottom: height - 58.0,
        domain,
    };
    let font = size.font();
    let mut canvas = Canvas {
        drawing: Drawing::new(),
        analysis,
        subject,
        plot,
        x: Changes::new(domain, (f64::from(plot.left), f64::from(plot.right))),
        y: Linear::new((0.0, 100.0), (f64::from(plot.bottom), f64::from(plot.top))),
        size,
        font,
    };
    canvas.axes();
    canvas.bands();
    canvas.zero_line();
    canvas.estimates();
    if size != Size::Small {
        canvas.names();
    }
    let small = Style::plain(font - 1.0, MUTED);
    let mut description = described(analysis, subject);
    if let Some(beyond) = canvas.marks() {
        // Writing to a `String` cannot fail.
        let _ = write!(description, " {beyond}.");
        height += font + 5.0;
        let fits = canvas.drawing.width(&beyond, small) <= width - 36.0;
        let text = if fits {
            beyond
        } else {
            "lines or bands are beyond the axis where arrows are".to_owned()
        };
        let at = (plot.left, height - 9.0);
        canvas.drawing.text(at, Anchor::Start, small, text);
    }
    let scene = Scene {
        width,
        height,
        title: subject.title(&analysis.settings.metric.name),
        description,
        shapes: canvas.drawing.shapes,
    };
    Chart { scene, plot }
}

/// A description of the chart for screen readers.
fn described(analysis: &Analysis, subject: Subject<'_>) -> String {
    let baseline = &analysis.arms[0].name;
    let of = match subject {
        Subject::Group(_) => "",
        Subject::Paths(_) | Subject::Neighbour(_) => " over the same path",
    };
    let (what, less, _) = subject.labels(&analysis.settings.metric);
    let mut text = format!(
        "Horizontal axis: change of the {what} relative to {baseline}{of}, in percent; left of zero is {less}. Vertical axis: \
         percentile, 0 to 100."
    );
    for (arm, curve) in subject.curves().iter().enumerate().skip(1) {
        let at = |percentile: usize| {
            let estimate = curve.get(percentile - 1).and_then(|cell| cell.estimate);
            estimate.map_or_else(|| "unknown".to_owned(), super::format::percent)
        };
        let name = &analysis.arms[arm].name;
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            " {name}: {} at P10, {} at P50, {} at P90.",
            at(10),
            at(50),
            at(90)
        );
    }
    text
}

impl Canvas<'_> {
    fn axes(&mut self) {
        let (plot, font, size) = (self.plot, self.font, self.size);
        let (grid, muted) = (Stroke::solid(GRID, 1.0), Style::plain(font, MUTED));
        for percentile in [0, 10, 25, 50, 75, 90, 100] {
            let y = self.y.place(f64::from(percentile)) as f32;
            self.drawing.line((plot.left, y), (plot.right, y), grid);
            let at = (plot.left - 8.0, y + font * 0.35);
            let label = format!("P{percentile}");
            self.drawing.text(at, Anchor::End, muted, label);
        }
        let wanted = if size == Size::Wide { 10 } else { 5 };
        for (value, label) in Changes::ticks(plot.domain, wanted) {
            let x = self.x.place(value) as f32;
            self.drawing.line((x, plot.top), (x, plot.bottom), grid);
            let at = (x, plot.bottom + font + 6.0);
            self.drawing.text(at, Anchor::Middle, muted, label);
        }
        let (from, to) = ((plot.left, plot.bottom), (plot.right, plot.bottom));
        self.drawing.line(from, to, Stroke::solid(FRAME, 1.0));
        self.captions();
    }

    /// The captions of the axes.
    fn captions(&mut self) {
        let (plot, font, size) = (self.plot, self.font, self.size);
        let (plain, bold) = (Style::plain(font, INK), Style::bold(font, INK));
        let line = plot.bottom + font + 29.0;
        let baseline = &self.analysis.arms[0].name;
        let (what, less, more) = self.subject.labels(&self.analysis.settings.metric);
        let full = match size {
            Size::Small => format!("change of {what}"),
            _ => format!("{what} relative to {baseline}"),
        };
        let full = if Changes::is_logarithmic(plot.domain) {
            format!("{full} (logarithmic)")
        } else {
            full
        };
        let room = plot.right - plot.left;
        let less = format!("← {less}");
        let more = format!("{more} →");
        let sides = self.drawing.width(&less, bold) + self.drawing.width(&more, bold) + 24.0;
        let title = self.drawing.fitted(&full, plain, room - sides);
        let middle = f32::midpoint(plot.left, plot.right);
        for (at, anchor, style, text) in [
            (plot.left, Anchor::Start, bold, less),
            (middle, Anchor::Middle, plain, title),
            (plot.right, Anchor::End, bold, more),
        ] {
            self.drawing.text((at, line), anchor, style, text);
        }
        if size == Size::Small {
            return;
        }
        let left = if size == Size::Wide { 18.0 } else { 8.0 };
        let right = match size {
            Size::Wide => {
                let (_, middle, half) = self.baseline_label();
                middle - half - 12.0
            }
            _ => plot.right,
        };
        let full = match self.subject {
            Subject::Group(_) => format!("percentile of connections, by {what}"),
            Subject::Paths(_) | Subject::Neighbour(_) => {
                "percentile of paths, by their change".to_owned()
            }
        };
        // An expression may be long, and the baseline's name is on the same line.
        let short = full.split(',').next().unwrap_or_default();
        let mut texts = [full.as_str(), short, "percentile"].into_iter();
        let fits = |text: &&str| self.drawing.width(text, plain) <= right - left;
        if let Some(text) = texts.find(fits) {
            let at = (left, plot.top - 11.0);
            self.drawing.text(at, Anchor::Start, plain, text);
        }
    }

    /// The baseline's name over the zero line: its text, its middle and half of its width.
    fn baseline_label(&self) -> (String, f32, f32) {
        let style = Style::plain(self.font, MUTED);
        let text = self
            .drawing
            .fitted(&self.analysis.arms[0].name, style, 180.0);
        let half = self.drawing.width(&text, style) / 2.0;
        let at = self.x.place(0.0) as f32;
        let (left, right) = (self.plot.left + half, self.plot.right - half);
        (text, at.clamp(left, right), half)
    }

    fn zero_line(&mut self) {
        let (at, plot) = (self.x.place(0.0) as f32, self.plot);
        let stroke = Stroke::solid(INK, 1.3);
        self.drawing.line((at, plot.top), (at, plot.bottom), stroke);
        if self.size == Size::Wide {
            let (baseline, at, _) = self.baseline_label();
            let style = Style::plain(self.font, MUTED);
            self.label((at, plot.top - 5.0), Anchor::Middle, style, &baseline);
        }
    }

    /// The confidence bands: filled for each percentile alone, dashed for the joint band.
    fn bands(&mut self) {
        let subject = self.subject;
        let arms = || subject.curves().iter().enumerate().skip(1);
        for (arm, curve) in arms() {
            self.band(curve, color(arm).with_opacity(0.16));
        }
        for (arm, curve) in arms().filter(|_| subject.is_main()) {
            let stroke = Stroke::dashed(color(arm).with_opacity(0.6), 1.0);
            for side in [
                |cell: &Interval| cell.together.map(|(low, _)| low),
                |cell: &Interval| cell.together.map(|(_, high)| high),
            ] {
                self.drawing.lines(self.pieces(curve, side), stroke);
            }
        }
    }

    /// The lines of the estimates.
    fn estimates(&mut self) {
        let width = if self.size == Size::Small { 2.0 } else { 2.4 };
        for (arm, curve) in self.subject.curves().iter().enumerate().skip(1) {
            let stroke = Stroke::solid(color(arm), width);
            let lines = self.pieces(curve, |cell| cell.estimate);
            self.drawing.lines(lines, stroke);
        }
    }

    /// A text on a background, so that it is readable over lines.
    fn label(&mut self, at: Place, anchor: Anchor, style: Style, text: &str) {
        let width = self.drawing.width(text, style);
        let left = anchor.left(at, width);
        let corner = (left - 3.0, at.1 - style.size * 0.86);
        let size = (width + 6.0, style.size * 1.16);
        self.drawing.rect(corner, size, GROUND.with_opacity(0.82));
        self.drawing.text(at, anchor, style, text);
    }

    /// The parts of a curve that lie in the plot, to its edges.
    fn pieces(&self, curve: &[Interval], of: fn(&Interval) -> Option<f64>) -> Vec<Vec<Place>> {
        let (left, right) = (f64::from(self.plot.left), f64::from(self.plot.right));
        let mut pieces: Vec<Vec<Place>> = vec![Vec::new()];
        let mut last: Option<(f64, f64)> = None;
        for (percentile, cell) in curve.iter().enumerate() {
            let value = of(cell).filter(|value| value.is_finite());
            let here =
                value.map(|value| (self.x.place(value * 100.0), self.y.place(place(percentile))));
            let is_inside = |(at, _): (f64, f64)| (left..=right).contains(&at);
            // Where the line to the last point crosses an edge.
            let crossing = here.zip(last).and_then(|(here, last)| {
                let outside = [here, last].into_iter().find(|one| !is_inside(*one))?;
                let edge = outside.0.clamp(left, right);
                let share = (edge - last.0) / (here.0 - last.0);
                (is_inside(here) || is_inside(last))
                    .then_some((edge, last.1 + share * (here.1 - last.1)))
            });
            let entering = crossing.filter(|_| here.is_some_and(is_inside));
            if here.is_none() || entering.is_some() {
                pieces.push(Vec::new());
            }
            if let Some(piece) = pieces.last_mut() {
                let points = crossing
                    .into_iter()
                    .chain(here.filter(|one| is_inside(*one)));
                piece.extend(points.map(|(x, y)| (x as f32, y as f32)));
            }
            last = here;
        }
        pieces.retain(|piece| piece.len() > 1);
        pieces
    }

    /// Arrows at the edges where lines and bands go on, and a sentence that names them: `beyond the axis: a at P98–P99; the band of b`.
    fn marks(&mut self) -> Option<String> {
        let (plot, subject) = (self.plot, self.subject);
        let (mut lines, mut bands) = (Vec::new(), Vec::new());
        for (arm, curve) in subject.curves().iter().enumerate().skip(1) {
            let name = self.analysis.arms[arm].name.as_str();
            let drawn = if subject.is_main() { 3 } else { 2 };
            let [line, band @ ..] = &DRAWN[..drawn] else {
                continue;
            };
            let all = beyond(curve, *line, plot.domain);
            let mut at: Vec<usize> = all.iter().flat_map(|(_, run)| run.clone()).collect();
            at.sort_unstable();
            if let Some(at) = text::ranges(at.into_iter()) {
                lines.push(format!("{name} at {at}"));
            }
            let cut = band.iter().flat_map(|of| beyond(curve, *of, plot.domain));
            let cut: Vec<(bool, Vec<usize>)> = cut.collect();
            if !cut.is_empty() {
                bands.push(name);
            }
            let of_line = all.into_iter().map(|run| (run, 1.0));
            for ((is_right, run), opacity) in cut.into_iter().map(|run| (run, 0.4)).chain(of_line) {
                let middle = (run.first().copied().unwrap_or(0) + run.last().copied().unwrap_or(0))
                    as f64
                    / 2.0;
                let (at, tip) = if is_right {
                    (plot.right + 1.0, 7.0)
                } else {
                    (plot.left - 1.0, -7.0)
                };
                let middle = self.y.place(middle) as f32;
                let outline = vec![(at, middle - 5.0), (at + tip, middle), (at, middle + 5.0)];
                self.drawing.area(outline, color(arm).with_opacity(opacity));
            }
        }
        if !bands.is_empty() {
            let s = if bands.len() > 1 { "s" } else { "" };
            lines.push(format!("the band{s} of {}", text::listed(&bands)));
        }
        (!lines.is_empty()).then(|| format!("beyond the axis: {}", lines.join("; ")))
    }

    /// The band of each percentile alone.
    fn band(&mut self, curve: &[Interval], fill: Color) {
        let (low, high) = self.plot.domain;
        let mut runs: Vec<Vec<(f64, f64, usize)>> = vec![Vec::new()];
        for (percentile, cell) in curve.iter().enumerate() {
            let inside = cell
                .alone
                .map(|(from, to)| (from * 100.0, to * 100.0))
                .filter(|(from, to)| *from <= high && *to >= low);
            match inside {
                Some((from, to)) => {
                    if let Some(run) = runs.last_mut() {
                        run.push((from.max(low), to.min(high), percentile));
                    }
                }
                None => runs.push(Vec::new()),
            }
        }
        for run in runs.iter().filter(|run| run.len() > 1) {
            let at = |value: f64, percentile: usize| {
                (
                    self.x.place(value) as f32,
                    self.y.place(place(percentile)) as f32,
                )
            };
            let up = run
                .iter()
                .map(|(from, _, percentile)| at(*from, *percentile));
            let down = run
                .iter()
                .rev()
                .map(|(_, to, percentile)| at(*to, *percentile));
            self.drawing.area(up.chain(down).collect(), fill);
        }
    }

    /// The name of each arm beside its line, where the lines are farthest apart.
    fn names(&mut self) {
        let (plot, font, curves) = (self.plot, self.font, self.subject.curves());
        let (x, y) = (self.x, self.y);
        let mut taken: Vec<(f32, f32, f32)> = Vec::new();
        for (arm, curve) in curves.iter().enumerate().skip(1) {
            let style = Style::bold(font, color(arm));
            let text = self
                .drawing
                .fitted(&self.analysis.arms[arm].name, style, 150.0);
            let width = self.drawing.width(&text, style);
            let at = |curve: &[Interval], percentile: usize| {
                let value = curve.get(percentile - 1)?.estimate? * 100.0;
                Some(x.place(value) as f32)
            };
            let mut best: Option<(f32, Place, Anchor)> = None;
            for percentile in (8..=94).step_by(2) {
                let Some(here) = at(curve, percentile) else {
                    continue;
                };
                let height = y.place(percentile as f64) as f32 + font * 0.35;
                for (anchor, from, to) in [
                    (Anchor::Start, here + 8.0, here + 8.0 + width),
                    (Anchor::End, here - 8.0 - width, here - 8.0),
                ] {
                    if from < plot.left + 4.0 || to > plot.right - 4.0 {
                        continue;
                    }
                    // The distance of the text to the nearest other line, name or the zero line.
                    let lines = curves
                        .iter()
                        .enumerate()
                        .skip(1)
                        .filter(|(other, _)| *other != arm);
                    let lines = lines.flat_map(|(_, other)| {
                        (percentile.saturating_sub(3).max(1)..=(percentile + 3).min(99))
                            .filter_map(|near| at(other, near))
                    });
                    let zero = x.place(0.0) as f32;
                    let gap = |place: f32| {
                        if place < from {
                            from - place
                        } else if place > to {
                            place - to
                        } else {
                            -20.0
                        }
                    };
                    let own = (percentile.saturating_sub(4).max(1)..=(percentile + 4).min(99))
                        .filter_map(|near| at(curve, near))
                        .map(|place| {
                            if place > from && place < to {
                                -30.0
                            } else {
                                40.0
                            }
                        });
                    let mut clear = lines.chain([zero]).map(gap).chain(own).fold(60.0, f32::min);
                    for (left, right, line) in &taken {
                        if (line - height).abs() < font * 1.5
                            && from < right + 8.0
                            && to > left - 8.0
                        {
                            clear = -100.0;
                        }
                    }
                    if best.as_ref().is_none_or(|(most, ..)| clear > *most) {
                        let x = if anchor == Anchor::Start { from } else { to };
                        best = Some((clear, (x, height), anchor));
                    }
                }
            }
            if let Some((_, at, anchor)) = best {
                let left = anchor.left(at, width);
                taken.push((left, left + width, at.1));
                self.label(at, anchor, style, &text);
            }
        }
    }
}

fn place(percentile: usize) -> f64 {
    percentile as f64 + 1.0
}

/// The percentiles at which values are beyond an end of the axis, in runs, each with whether it is the right end.
fn beyond(curve: &[Interval], of: Ends, (low, high): (f64, f64)) -> Vec<(bool, Vec<usize>)> {
    let mut runs: Vec<(bool, Vec<usize>)> = Vec::new();
    for is_right in [false, true] {
        for (percentile, cell) in (1..).zip(curve) {
            let is_beyond = |(from, to): (f64, f64)| {
                (is_right && to * 100.0 > high) || (!is_right && from * 100.0 < low)
            };
            if !of(cell).is_some_and(is_beyond) {
                continue;
            }
            match runs.last_mut() {
                Some((side, run)) if *side == is_right && run.last() == Some(&(percentile - 1)) => {
                    run.push(percentile);
                }
                _ => runs.push((is_right, vec![percentile])),
            }
        }
    }
    runs
}

/// The ends of something that a chart draws of a percentile.
type Ends = fn(&Interval) -> Option<(f64, f64)>;

/// Those of the line, and of the bands.
const DRAWN: [Ends; 3] = [
    |cell| cell.estimate.map(|value| (value, value)),
    |cell| cell.alone,
    |cell| cell.together,
];
