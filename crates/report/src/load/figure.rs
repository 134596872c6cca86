//! The charts of a run, for pages and print.

use super::data::{Interval, Run, Step};
use crate::{
    figure::{Axis, Figure, Look, Mark, Point, Scale, Series},
    scale::Unit,
};

const BLUE: Look = Look::solid(0x00_5fa8);
const GREY: Look = Look::solid(0x9a_9ea6);
const GREEN: Look = Look::solid(0x00_8a65);

/// A chart's title, and what draws it; `None` without data.
type Draw = (&'static str, fn(&Run) -> Option<Figure>);

/// All charts.
pub(super) const ALL: [Draw; 3] = [(LATENCY, latency), (RATE, rate), (PERCENTILES, percentiles)];
const LATENCY: &str = "Latency over time";
const RATE: &str = "Responses and errors over time";
const PERCENTILES: &str = "Latency by percentile";

/// A time in ms, as the axes write it.
pub(super) fn time(ms: f64) -> String {
    Unit::Milliseconds.format(ms)
}

fn series(name: &str, look: Look, points: Vec<Point>) -> Series {
    Series {
        name: name.to_owned(),
        look,
        mark: Mark::Steps,
        points,
    }
}

/// A value or a gap per interval, as steps.
fn steps(run: &Run, values: impl IntoIterator<Item = Option<f64>>) -> Vec<Point> {
    let edge = |index: usize| (index as f64 * run.width_ms).min(run.end_ms);
    let values = values.into_iter().enumerate();
    Point::steps(values.filter_map(|(index, value)| Some((edge(index), edge(index + 1), value?))))
}

/// A value for each range of intervals, as steps; a gap between ranges is a gap.
fn wide_steps(run: &Run, steps: &[Step]) -> Vec<Point> {
    let edge = |index: usize| (index as f64 * run.width_ms).min(run.end_ms);
    let ranges = steps.iter().map(|step| {
        (
            edge(step.intervals.start),
            edge(step.intervals.end),
            step.ms,
        )
    });
    Point::steps(ranges)
}

/// A chart of series, unless there are none.
fn drawn(
    name: &str,
    captions: (&str, &str),
    axes: (Axis, Axis),
    all: Vec<Series>,
    unit: Unit,
) -> Option<Figure> {
    let values = all.iter().flat_map(|series| &series.points);
    let top = values
        .map(|point| point.y)
        .fold(f64::NEG_INFINITY, f64::max);
    top.is_finite().then(|| Figure {
        description: format!("Up to {}", unit.format(top)),
        ..Figure::single(name, captions.1, captions, axes, all)
    })
}

/// A chart of series over time.
fn over_time(
    run: &Run,
    name: &str,
    title: &str,
    unit: Unit,
    mut all: Vec<Series>,
) -> Option<Figure> {
    all.retain(|series| !series.points.is_empty());
    let values = all.iter().flat_map(|series| &series.points);
    let y = Axis::from_zero(unit, values.map(|point| point.y));
    let x = Axis {
        scale: Scale::Linear(Unit::Milliseconds),
        domain: (0.0, run.end_ms),
    };
    let captions = ("time since the start of the run", title);
    drawn(name, captions, (x, y), all, unit)
}

/// P50, P99 and maximum over time. Where a percentile is of several intervals, the maximum is of the same ones, so that none is above it.
pub(super) fn latency(run: &Run) -> Option<Figure> {
    let mut longest: Vec<Option<f64>> = run.intervals.iter().map(|it| it.max_ms).collect();
    for step in run.p99.iter().chain(&run.p50) {
        if let Some(range) = longest.get_mut(step.intervals.clone()) {
            let most = range.iter().flatten().copied().reduce(f64::max);
            range.fill(most);
        }
    }
    let all = vec![
        series("maximum", GREY, steps(run, longest)),
        series(
            "P99",
            Look {
                color: Look::of(0).color,
                ..Look::of(1)
            },
            wide_steps(run, &run.p99),
        ),
        series("P50", BLUE, wide_steps(run, &run.p50)),
    ];
    over_time(run, "latency", LATENCY, Unit::Milliseconds, all)
}

/// The shortest last interval that has a rate, as a share of the others.
const RATED_MIN: f64 = 0.25;

/// Responses and errors per second.
pub(super) fn rate(run: &Run) -> Option<Figure> {
    let of = |count: fn(&Interval) -> u64| -> Vec<Point> {
        let rates = run.intervals.iter().enumerate().map(|(index, interval)| {
            let ms = (run.end_ms - index as f64 * run.width_ms).min(run.width_ms);
            (ms >= RATED_MIN * run.width_ms).then(|| count(interval) as f64 * 1e3 / ms)
        });
        steps(run, rates)
    };
    let mut all = vec![series("responses", GREEN, of(|it| it.done))];
    if run.intervals.iter().any(|it| it.errored > 0) {
        let red = Look {
            color: Look::of(3).color,
            ..Look::of(1)
        };
        all.push(series("errors", red, of(|it| it.errored)));
    }
    over_time(run, "rate", RATE, Unit::PerSecond, all)
}

/// Latency by percentile; each further nine has the same width.
pub(super) fn percentiles(run: &Run) -> Option<Figure> {
    let known = run.distributions.iter().filter(|it| !it.points.is_empty());
    let looks = [
        BLUE,
        Look {
            color: GREEN.color,
            ..Look::of(1)
        },
    ];
    let all = known.zip(looks).map(|(distribution, look)| {
        let points = distribution.points.iter();
        let points = points.map(|(share, ms)| Point::new(*share, *ms)).collect();
        let mark = Mark::Line;
        Series {
            mark,
            ..series(&distribution.name, look, points)
        }
    });
    let all: Vec<Series> = all.collect();
    let points = || all.iter().flat_map(|series| &series.points);
    let end = points().map(|point| point.x).fold(0.9, f64::max);
    let x = Axis {
        scale: Scale::Nines,
        domain: (0.0, end),
    };
    let y = Axis::from_zero(Unit::Milliseconds, points().map(|point| point.y));
    let captions = ("percentile of requests", PERCENTILES);
    drawn("percentiles", captions, (x, y), all, Unit::Milliseconds)
}

/// The axis of ratios ends here.
const RATIO_MAX: f64 = 1e12;

/// The ratio of each round, of up to three series, around 1.
pub(super) fn ratios(all: &[(String, Vec<Option<f64>>)]) -> Option<Figure> {
    let is_known = |ratio: &&f64| ratio.is_finite() && **ratio > 0.0;
    let looks = [(1, 0), (2, 1), (0, 2)].map(|(color, dash)| Look {
        color: Look::of(color).color,
        ..Look::of(dash)
    });
    let series = all.iter().zip(looks).map(|((name, ratios), look)| {
        let known = (1..).zip(ratios);
        let known = known.filter_map(|(round, ratio)| {
            let ratio = ratio.as_ref().filter(is_known)?;
            let round = f64::from(round);
            Some((round - 0.4, round + 0.4, *ratio))
        });
        series(name, look, Point::steps(known))
    });
    let series: Vec<Series> = series.filter(|one| !one.points.is_empty()).collect();
    let values = || {
        series
            .iter()
            .flat_map(|one| &one.points)
            .map(|point| point.y)
    };
    let far = values()
        .map(|ratio| ratio.max(1.0 / ratio))
        .fold(1.02, f64::max)
        .min(RATIO_MAX)
        * 1.02;
    let rounds = all.iter().map(|(_, ratios)| ratios.len()).max()?;
    let x = Axis {
        scale: Scale::Counts,
        domain: (0.5, rounds as f64 + 0.5),
    };
    let y = Axis {
        scale: Scale::Logarithmic(Unit::Number),
        domain: (1.0 / far, far),
    };
    let title = "Ratio by round";
    let one = [(x.domain.0, 1.0), (x.domain.1, 1.0)];
    (!series.is_empty()).then(|| {
        let mut figure = Figure::single("ratios", title, ("round", title), (x, y), series);
        figure.panels[0].guides.push(one);
        figure
    })
}
