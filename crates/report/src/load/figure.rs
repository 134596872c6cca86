//! The charts of a run.

use super::data::{Interval, Run, Step};
use crate::{
    chart::{Chart, Size},
    drawing::MUTED,
    scale::{Unit, ticks},
    scene::{Color, Place, Scene},
};

const BLUE: Color = Color::solid(0x00_5fa8);
const ORANGE: Color = Color::solid(0xc9_7b00);
const GREEN: Color = Color::solid(0x00_8a65);
const RED: Color = Color::solid(0xc8_102e);

/// Draws a chart; `None` without data.
pub(super) type Draw = fn(&Run, Size) -> Option<Scene>;

/// A time in ms, as the axes write it.
pub(super) fn time(ms: f64) -> String {
    Unit::Milliseconds.format(ms)
}

/// A series with a value or a gap per interval, as steps.
fn steps(
    chart: &mut Chart,
    run: &Run,
    color: Color,
    values: impl IntoIterator<Item = Option<f64>>,
) {
    let mut lines: Vec<Vec<Place>> = vec![Vec::new()];
    for (index, value) in values.into_iter().enumerate() {
        let Some(value) = value else {
            lines.push(Vec::new());
            continue;
        };
        let edge = |index: usize| chart.place((index as f64 * run.width_ms).min(run.end_ms), value);
        if let Some(line) = lines.last_mut() {
            line.extend([edge(index), edge(index + 1)]);
        }
    }
    lines.retain(|line| !line.is_empty());
    chart.lines(lines, color, 1.6);
}

/// A series with a value for each range of intervals, as steps; a gap between ranges is a gap.
fn wide_steps(chart: &mut Chart, run: &Run, color: Color, steps: &[Step]) {
    let mut lines: Vec<Vec<Place>> = Vec::new();
    let mut end = None;
    for step in steps {
        let edge = |index: usize| {
            let at = (index as f64 * run.width_ms).min(run.end_ms);
            chart.place(at, step.ms)
        };
        let both = [edge(step.intervals.start), edge(step.intervals.end)];
        match lines.last_mut() {
            Some(line) if end == Some(step.intervals.start) => line.extend(both),
            _ => lines.push(both.to_vec()),
        }
        end = Some(step.intervals.end);
    }
    chart.lines(lines, color, 1.6);
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
    let end = run.end_ms;
    let marks = ticks((0.0, top), 5, Unit::Milliseconds);
    let description = format!("Longest latency {}", time(top));
    let title = "Latency over time";
    let series = [("P50", BLUE, &run.p50), ("P99", ORANGE, &run.p99)];
    let known = series.iter().filter(|(_, _, steps)| !steps.is_empty());
    let mut legend: Vec<(&str, Color)> = known.map(|(name, color, _)| (*name, *color)).collect();
    legend.push(("maximum", MUTED.with_opacity(0.6)));
    let axes = ((0.0, end), (0.0, top));
    let mut chart = Chart::new(size, title, description, axes, &marks, &legend);
    chart.bottom(&time_marks(end, size));
    let grey = MUTED.with_opacity(0.6);
    let longest = run.intervals.iter().map(|it| it.max_ms);
    steps(&mut chart, run, grey, longest);
    for (_, color, steps) in series.into_iter().rev() {
        wide_steps(&mut chart, run, color, steps);
    }
    Some(chart.scene())
}

/// The shortest last interval that has a rate, as a share of the others.
const RATED_MIN: f64 = 0.25;

/// Responses and errors per second.
pub(super) fn rate(run: &Run, size: Size) -> Option<Scene> {
    let of = |count: fn(&Interval) -> u64| -> Vec<Option<f64>> {
        let rates = run.intervals.iter().enumerate().map(|(index, interval)| {
            let ms = (run.end_ms - index as f64 * run.width_ms).min(run.width_ms);
            (ms >= RATED_MIN * run.width_ms).then(|| count(interval) as f64 * 1e3 / ms)
        });
        rates.collect()
    };
    let (responses, errors) = (of(|it| it.done), of(|it| it.errored));
    let top = largest(responses.iter().chain(&errors).copied())?;
    let end = run.end_ms;
    let marks: Vec<(f64, String)> = ticks((0.0, top), 5, Unit::PerSecond);
    let description = format!("Up to {}", Unit::PerSecond.format(top));
    let title = "Responses and errors over time";
    let has_errors = run.intervals.iter().any(|it| it.errored > 0);
    let legend = [("responses", GREEN), ("errors", RED)];
    let legend = if has_errors {
        &legend[..]
    } else {
        &legend[..1]
    };
    let axes = ((0.0, end), (0.0, top));
    let mut chart = Chart::new(size, title, description, axes, &marks, legend);
    chart.bottom(&time_marks(end, size));
    steps(&mut chart, run, GREEN, responses);
    if has_errors {
        steps(&mut chart, run, RED, errors);
    }
    Some(chart.scene())
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
    let known = run.distributions.iter().filter(|it| !it.points.is_empty());
    let series = || known.clone().zip([BLUE, GREEN]);
    let legend: Vec<(&str, Color)> = series()
        .map(|(distribution, color)| (distribution.name.as_str(), color))
        .collect();
    let axes = ((0.0, end), (0.0, top));
    let mut chart = Chart::new(size, title, description, axes, &marks, &legend);
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
    for (distribution, color) in series() {
        let line = distribution.points.iter();
        let line = line.map(|(share, ms)| chart.place(nines(*share), *ms));
        let line: Vec<Place> = line.collect();
        chart.line(line, color, 1.8);
    }
    Some(chart.scene())
}

/// The ratio of each round, of up to three series, on a logarithmic axis around 1.
pub(super) fn ratios(series: &[(String, Vec<Option<f64>>)], size: Size) -> Option<Scene> {
    let log = |ratio: &f64| Some(ratio.log2()).filter(|log| log.is_finite());
    let rounds = series.iter().map(|(_, ratios)| ratios.len()).max()?;
    let logs = series
        .iter()
        .flat_map(|(_, ratios)| ratios.iter().flatten());
    let far = largest(logs.map(|ratio| log(ratio).map(f64::abs)))?;
    // The smallest range of ticks that contains all ratios.
    let steps = [1.05, 1.1, 1.2, 1.5, 2.0, 4.0, 10.0, 100.0, 1e4];
    let most = steps.iter().copied().find(|most: &f64| most.log2() >= far);
    let most = most.unwrap_or_else(|| far.exp2());
    let marks = [1.0 / most, 1.0 / most.sqrt(), 1.0, most.sqrt(), most];
    let marks = marks.map(|ratio| (ratio.log2(), format!("{ratio:.3}")));
    let known = series.iter().zip([GREEN, BLUE, ORANGE]);
    let known =
        known.filter(|((_, ratios), _)| ratios.iter().flatten().any(|it| log(it).is_some()));
    let legend: Vec<(&str, Color)> = known
        .clone()
        .map(|((name, _), color)| (name.as_str(), color))
        .collect();
    let axes = ((0.5, rounds as f64 + 0.5), (-most.log2(), most.log2()));
    let title = "Ratio by round";
    let description = format!("{rounds} rounds");
    let mut chart = Chart::new(size, title, description, axes, &marks, &legend);
    let step = rounds.div_ceil(if size == Size::Wide { 20 } else { 8 });
    let numbers = (1..=rounds).step_by(step.max(1));
    let numbers: Vec<(f64, String)> = numbers.map(|at| (at as f64, at.to_string())).collect();
    chart.bottom(&numbers);
    for ((_, ratios), color) in known {
        let mut lines: Vec<Vec<Place>> = Vec::new();
        for (round, ratio) in (1..).zip(ratios) {
            let Some(value) = ratio.as_ref().and_then(log) else {
                continue;
            };
            let at = f64::from(round);
            lines.push(vec![
                chart.place(at - 0.4, value),
                chart.place(at + 0.4, value),
            ]);
        }
        chart.lines(lines, color, 3.0);
    }
    Some(chart.scene())
}
