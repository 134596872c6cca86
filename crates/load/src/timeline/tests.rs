use super::*;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(1000 + millis)
}

fn timeline() -> Timeline {
    Timeline::new(at(0))
}

fn counts(timeline: &Timeline) -> Vec<(u128, u64, u64)> {
    let intervals = timeline.iter();
    intervals
        .map(|(start, it)| (start.as_millis(), it.done, it.errored))
        .collect()
}

#[test]
fn responses_and_failures_are_counted_when_they_happen() {
    let mut timeline = timeline();
    assert_eq!(counts(&timeline), []);
    timeline.on_done(at(20), 1_000_000);
    timeline.on_done(at(29), 2_000_000);
    timeline.on_tick(at(41));
    timeline.on_failed(3);
    assert_eq!(counts(&timeline), [(0, 2, 0), (10, 0, 0), (20, 0, 3)]);
    assert_eq!(
        timeline.iter().next().map(|(_, it)| it.max),
        Some(2_000_000)
    );
    // From 20 ms, where the first interval starts, to the failures at 41 ms.
    assert_eq!(timeline.length(), Duration::from_millis(21));
    let mut other = Timeline::new(at(0));
    other.on_done(at(57), 1);
    timeline.merge(&other);
    assert_eq!(timeline.length(), Duration::from_millis(37));
}

#[test]
fn intervals_double_when_there_are_too_many() {
    let mut timeline = timeline();
    for millis in 0..INTERVALS as u64 * 10 {
        timeline.on_done(at(millis), millis);
    }
    assert_eq!(timeline.width(), WIDTH_MIN);
    assert_eq!(counts(&timeline).len(), INTERVALS);
    timeline.on_done(at(INTERVALS as u64 * 10), 7);
    assert_eq!(timeline.width(), WIDTH_MIN * 2);
    let found = counts(&timeline);
    assert_eq!(found.len(), INTERVALS / 2 + 1);
    assert!(
        found[..INTERVALS / 2]
            .iter()
            .all(|(_, done, _)| *done == 20),
        "{found:?}"
    );
    assert_eq!(found.last().map(|(_, done, _)| *done), Some(1));
    // A year later, the memory is the same.
    timeline.on_done(at(365 * 86_400_000), 7);
    assert_eq!(timeline.intervals.len(), INTERVALS);
    let total: u64 = counts(&timeline).iter().map(|(_, done, _)| done).sum();
    assert_eq!(total, INTERVALS as u64 * 10 + 2);
}

#[test]
fn threads_of_different_widths_are_merged() {
    let (mut short, mut long) = (timeline(), timeline());
    short.on_done(at(5), 1);
    short.on_done(at(45), 1);
    long.on_done(at(15), 1);
    long.on_done(at(2500), 1);
    assert_eq!(long.width(), WIDTH_MIN * 2);
    let mut merged = short.clone();
    merged.merge(&long);
    let mut other_way = long;
    other_way.merge(&short);
    for merged in [merged, other_way] {
        let found = counts(&merged);
        assert_eq!(found[..3], [(0, 2, 0), (20, 0, 0), (40, 1, 0)]);
        assert_eq!(found.last(), Some(&(2500, 1, 0)));
    }
}

#[test]
fn percentiles_need_ten_values_beyond_them() {
    let mut interval = Interval::default();
    for micros in 1..=999 {
        interval.record(micros * 1000);
    }
    assert_eq!(interval.quantile(0.99), None);
    interval.record(1_000_000);
    for (share, micros) in [(0.5, 500.0), (0.9, 900.0), (0.99, 990.0)] {
        let found = interval.quantile(share).expect("enough") as f64 / 1000.0;
        assert!((found / micros - 1.0_f64).abs() < 0.035, "{share}: {found}");
    }
    interval.record(u64::MAX);
    assert_eq!(interval.max, (1 << VALUE_BITS) - 1);
}

#[test]
fn recent_percentiles_exclude_values_already_taken() {
    let mut timeline = timeline();
    for _ in 0..1000 {
        timeline.on_done(at(1), 1_000_000);
    }
    let (p50, p99) = timeline.take_recent();
    assert!(p50 > 950_000 && p99 > 950_000, "{p50} {p99}");
    assert_eq!(timeline.take_recent(), (0, 0));
    assert_eq!(counts(&timeline), [(0, 1000, 0)]);
}

/// Sparse intervals have a median together, which counts each response once; an empty interval is no part of one.
#[test]
fn intervals_widen_until_a_percentile_exists() {
    let mut timeline = Timeline::new(Time::ZERO);
    let at = |index: u64| Time::ZERO + WIDTH_MIN * index as u32;
    // 5 responses in each of 11 intervals, none in the next 3, and 30 in the last.
    for index in 0..11 {
        (0..5).for_each(|_| timeline.on_done(at(index), 1_000_000 * (index + 1)));
    }
    (0..30).for_each(|_| timeline.on_done(at(14), 50_000_000));
    let ranges: Vec<Range<usize>> = timeline
        .percentile(0.5)
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(ranges, [0..4, 4..8, 8..15]);
    let median = timeline.percentile(0.5)[0].1 as f64;
    assert!((median / 2e6 - 1.0).abs() < 0.04, "{median}");
    // A percentile of 85 responses that needs 100.
    assert_eq!(timeline.percentile(0.9), []);
    (0..15).for_each(|_| timeline.on_done(at(15), 1));
    assert_eq!(timeline.percentile(0.9).len(), 1);
    assert_eq!(timeline.percentile(0.9)[0].0, 0..16);
    // Without enough at the end, the last range grows; a range starts with a response.
    let mut timeline = Timeline::new(Time::ZERO);
    (0..20).for_each(|_| timeline.on_done(at(0), 1_000_000));
    (0..20).for_each(|_| timeline.on_done(at(2), 1_000_000));
    timeline.on_done(at(4), 1_000_000);
    let ranges: Vec<Range<usize>> = timeline
        .percentile(0.5)
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(ranges, [0..1, 2..5]);
}
