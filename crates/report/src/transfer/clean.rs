//! Removes points that cannot be drawn. Finite points in the order of time remain, with their extent.

use super::{Arm, Guides, Picture, Point, panel};

#[cfg(test)]
mod tests;

/// The longest transfer (eleven days, in ms). A later point is a mistake, and would compress all others.
const MS_MAX: f64 = 1e9;

/// The largest value, in any unit.
const VALUE_MAX: f64 = 1e15;

/// The picture without what cannot be drawn.
pub(super) fn cleaned(picture: &Picture) -> Picture {
    let guide = |value: Option<f64>| value.filter(|value| *value > 0.0 && *value <= VALUE_MAX);
    Picture {
        title: picture.title.clone(),
        subtitle: picture.subtitle.clone(),
        origin: picture.origin.clone(),
        arms: picture.arms.iter().map(arm).collect(),
        guides: Guides {
            rate: guide(picture.guides.rate),
            queue_limit: guide(picture.guides.queue_limit),
            rtt: guide(picture.guides.rtt),
        },
    }
}

fn arm(arm: &Arm) -> Arm {
    let mut events: Vec<(f64, String)> = arm
        .events
        .iter()
        .filter(|(ms, _)| is_time(*ms))
        .cloned()
        .collect();
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut clean = Arm {
        label: arm.label.clone(),
        note: arm.note.clone(),
        summary: arm.summary.clone(),
        ended: arm.ended.filter(|ms| is_time(*ms)),
        recovery: periods(&arm.recovery),
        blocked: periods(&arm.blocked),
        events,
        packets: arm
            .packets
            .iter()
            .filter(|packet| is_time(packet.sent))
            .copied()
            .collect(),
        phases: arm
            .phases
            .iter()
            .filter(|(ms, _)| is_time(*ms))
            .cloned()
            .collect(),
        ..Arm::default()
    };
    for series in panel::all_series() {
        *(series.of_mut)(&mut clean) = points((series.of)(arm));
    }
    // An open period ends with the data, so that it does not extend the time axis.
    let end = end_of_points(&clean);
    for periods in [&mut clean.recovery, &mut clean.blocked] {
        for (_, to) in periods.iter_mut() {
            *to = to.min(end);
        }
        periods.retain(|(from, to)| to > from);
    }
    clean
}

fn periods(periods: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut periods: Vec<(f64, f64)> = periods
        .iter()
        .copied()
        .filter(|(from, to)| is_time(*from) && to > from)
        .map(|(from, to)| (from, to.min(MS_MAX)))
        .collect();
    periods.sort_by(|a, b| a.0.total_cmp(&b.0));
    periods
}

fn is_time(ms: f64) -> bool {
    (0.0..=MS_MAX).contains(&ms)
}

fn points(points: &[Point]) -> Vec<Point> {
    let mut points: Vec<Point> = points
        .iter()
        .copied()
        .filter(|point| is_time(point.ms) && point.value.abs() <= VALUE_MAX)
        .collect();
    if !points.is_sorted_by(|a, b| a.ms <= b.ms) {
        points.sort_by(|a, b| a.ms.total_cmp(&b.ms));
    }
    points
}

fn end_of_points(arm: &Arm) -> f64 {
    panel::all_series()
        .filter_map(|series| (series.of)(arm).last())
        .fold(0.0, |end, point| point.ms.max(end))
}

/// The time of the last point or event of a clean arm, in ms.
pub(super) fn end(arm: &Arm) -> f64 {
    arm.events
        .last()
        .map_or(0.0, |event| event.0)
        .max(end_of_points(arm))
}
