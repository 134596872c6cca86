use super::*;

#[test]
fn each_span_of_a_page_has_its_ends_and_extremes() {
    let mut points: Vec<Point> = (0..400_000)
        .map(|i| Point::new(f64::from(i) / 400.0, f64::from(i % 1000)))
        .collect();
    points[123_456].value = 5000.0;
    points[234_567].value = -5000.0;
    let kept = spans(&points, 1020.0);
    assert!(kept.len() <= BUCKETS * 6, "{}", kept.len());
    assert!(kept.is_sorted_by(|a, b| a.ms < b.ms));
    for at in [0, 123_456, 234_567, 399_999] {
        assert!(kept.contains(&points[at]), "{at}");
    }
    // No gap is longer than a span.
    let longest = kept.windows(2).map(|pair| pair[1].ms - pair[0].ms);
    assert!(longest.fold(0.0, f64::max) <= 1020.0 / BUCKETS as f64);
    let few = &points[..BUCKETS * 8];
    assert_eq!(spans(few, 1020.0), few);
}

fn scales() -> (Linear, Linear) {
    (
        Linear::new((0.0, 1000.0), (0.0, 500.0)),
        Linear::new((0.0, 100.0), (200.0, 0.0)),
    )
}

#[test]
fn a_peak_of_one_point_among_many_is_kept() {
    let (x, y) = scales();
    let mut points: Vec<Point> = (0..200_000)
        .map(|i| Point::new(f64::from(i) / 200.0, 10.0 + f64::from(i % 7)))
        .collect();
    points[123_456].value = 97.0;
    points[77_777].value = 1.0;
    let kept = steps(&points, 1000.0, &x, &y);
    assert!(kept.len() <= 4 * 501, "{}", kept.len());
    let highest = kept.iter().map(|place| place.1).fold(f32::MAX, f32::min);
    let lowest = kept.iter().map(|place| place.1).fold(f32::MIN, f32::max);
    assert!((f64::from(highest) - y.place(97.0)).abs() < 1e-3);
    assert!((f64::from(lowest) - y.place(1.0)).abs() < 1e-3);
    assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
}

#[test]
fn a_step_holds_until_the_next_point_and_the_end() {
    let (x, y) = scales();
    let points = [Point::new(0.0, 0.0), Point::new(100.0, 50.0)];
    assert_eq!(
        steps(&points, 200.0, &x, &y),
        [(0.0, 200.0), (50.0, 200.0), (50.0, 100.0), (100.0, 100.0)]
    );
    assert!(steps(&[], 200.0, &x, &y).is_empty());
}

#[test]
fn dots_on_the_same_spot_are_one() {
    let (x, y) = scales();
    let points: Vec<Point> = (0..100_000)
        .map(|i| Point::new(f64::from(i) / 100.0, f64::from(i) / 1000.0))
        .collect();
    let kept = dots(&points, &x, &y);
    assert!((500..2000).contains(&kept.len()), "{}", kept.len());
    for end in [(0.0, 200.0), (500.0, 0.0)] {
        assert!(
            kept.iter()
                .any(|place| (place.0 - end.0).abs() <= 2.0 && (place.1 - end.1).abs() <= 1.0)
        );
    }
    assert_eq!(dots(&[Point::new(5.0, 5.0); 9], &x, &y).len(), 1);
}
