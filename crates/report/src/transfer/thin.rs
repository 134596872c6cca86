//! As many points as a pixel can show. What is left looks like all of them, and has every peak.

use crate::{scale::Linear, scene::Place};

use super::Point;

/// The side of the squares of which each holds at most one dot, in pixels.
const DOT: f64 = 0.7;

/// The same for crosses, which are larger.
const CROSS: f64 = 4.0;

/// Where dots stand: one for all that would cover each other.
pub(super) fn dots(points: &[Point], x: &Linear, y: &Linear) -> Vec<Place> {
    one_a_square(points, x, y, DOT)
}

/// Where crosses stand: one for all that would run into each other.
pub(super) fn crosses(points: &[Point], x: &Linear, y: &Linear) -> Vec<Place> {
    one_a_square(points, x, y, CROSS)
}

fn one_a_square(points: &[Point], x: &Linear, y: &Linear, side: f64) -> Vec<Place> {
    let mut squares: Vec<(i64, i64)> = points
        .iter()
        .map(|point| {
            (
                (x.place(point.ms) / side).round() as i64,
                (y.place(point.value) / side).round() as i64,
            )
        })
        .collect();
    squares.sort_unstable();
    squares.dedup();
    squares
        .into_iter()
        .map(|(column, row)| ((column as f64 * side) as f32, (row as f64 * side) as f32))
        .collect()
}

/// The corners of a line that holds each value until the next, and the last until `end`.
///
/// Of all corners in one column of half a pixel, the first, the lowest, the highest and the last are kept, in their order.
pub(super) fn steps(points: &[Point], end: f64, x: &Linear, y: &Linear) -> Vec<Place> {
    let mut kept = Vec::new();
    let mut column = Column::default();
    let mut before: Option<Point> = None;
    let mut corner = |ms: f64, value: f64| {
        let place = (x.place(ms) as f32, y.place(value) as f32);
        column.add(place, &mut kept);
    };
    for point in points {
        if let Some(before) = before {
            corner(point.ms, before.value);
        }
        corner(point.ms, point.value);
        before = Some(*point);
    }
    if let Some(before) = before {
        corner(end.max(before.ms), before.value);
    }
    column.flush(&mut kept);
    kept
}

/// The corners in one column so far, each with its number in the order of coming.
#[derive(Default)]
struct Column {
    number: i64,
    count: usize,
    first: (usize, Place),
    highest: (usize, Place),
    lowest: (usize, Place),
    last: (usize, Place),
}

impl Column {
    fn add(&mut self, place: Place, kept: &mut Vec<Place>) {
        let number = (place.0 * 2.0).floor() as i64;
        if self.count > 0 && number != self.number {
            self.flush(kept);
        }
        let entry = (self.count, place);
        if self.count == 0 {
            self.number = number;
            (self.first, self.highest, self.lowest) = (entry, entry, entry);
        }
        if place.1 < self.highest.1.1 {
            self.highest = entry;
        }
        if place.1 > self.lowest.1.1 {
            self.lowest = entry;
        }
        self.last = entry;
        self.count += 1;
    }

    fn flush(&mut self, kept: &mut Vec<Place>) {
        if self.count == 0 {
            return;
        }
        let mut corners = [self.first, self.highest, self.lowest, self.last];
        corners.sort_unstable_by_key(|(index, _)| *index);
        let mut last = None;
        for (index, place) in corners {
            if last != Some(index) {
                kept.push(place);
            }
            last = Some(index);
        }
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scales() -> (Linear, Linear) {
        (
            Linear::new((0.0, 1000.0), (0.0, 500.0)),
            Linear::new((0.0, 100.0), (200.0, 0.0)),
        )
    }

    #[test]
    fn a_peak_of_one_point_among_many_stays() {
        let (x, y) = scales();
        let mut points: Vec<Point> = (0..200_000)
            .map(|i| Point::new(f64::from(i) / 200.0, 10.0 + f64::from(i % 7)))
            .collect();
        points[123_456].value = 97.0;
        points[77_777].value = 1.0;
        let kept = steps(&points, 1000.0, &x, &y);
        assert!(kept.len() <= 4 * 1001, "{}", kept.len());
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
                    .any(|place| (place.0 - end.0).abs() < 1.0 && (place.1 - end.1).abs() < 1.0)
            );
        }
        assert_eq!(dots(&[Point::new(5.0, 5.0); 9], &x, &y).len(), 1);
    }
}
