//! Thins points to what pixels can show. The result looks the same and has every peak.

use crate::{scale::Linear, scene::Place};

use super::Point;

#[cfg(test)]
mod tests;

/// The side of the squares that hold at most one dot each, in pixels.
const DOT: f64 = 1.0;

/// The minimum distance of crosses, in pixels.
const CROSS: f32 = 4.0;

/// The places of dots: one for all that would cover each other.
pub(super) fn dots(points: &[Point], x: &Linear, y: &Linear) -> Vec<Place> {
    one_a_square(points, x, y, DOT)
}

/// The places of crosses in the order of time, without those that would overlap the previous one.
pub(super) fn crosses(points: &[Point], x: &Linear, y: &Linear) -> Vec<Place> {
    let mut last: Option<Place> = None;
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        let place = (x.place(point.ms) as f32, y.place(point.value) as f32);
        if last.is_none_or(|last| (place.0 - last.0).abs().max((place.1 - last.1).abs()) >= CROSS) {
            kept.push(*point);
            last = Some(place);
        }
    }
    one_a_square(&kept, x, y, DOT)
}

fn one_a_square(points: &[Point], x: &Linear, y: &Linear, side: f64) -> Vec<Place> {
    let mut places: Vec<((i64, i64), Place)> = points
        .iter()
        .map(|point| {
            let (x, y) = (x.place(point.ms), y.place(point.value));
            let square = ((x / side).floor() as i64, (y / side).floor() as i64);
            (square, (x as f32, y as f32))
        })
        .collect();
    places.sort_by_key(|(square, _)| *square);
    places.dedup_by_key(|(square, _)| *square);
    places.into_iter().map(|(_, place)| place).collect()
}

/// The corners of a step line: each value holds until the next, the last until `end`.
///
/// Of the corners in a column of pixels, the first, lowest, highest and last are kept, in their order.
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

/// The corners of a column of pixels so far, each with its index.
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
        let number = place.0.floor() as i64;
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

/// Equal spans of time in a page. A panel of up to 2048 pixels that shows all of the time has no more.
const BUCKETS: usize = 4096;
/// The shortest spans that points are taken from.
const FINEST: usize = 65_536;

/// The points of a series for a page, in which the whole time ends at `end`. Of a long series, at most six points of each span of time
/// are kept: the first, both extremes, two between, the last.
pub(super) fn spans(points: &[Point], end: f64) -> Vec<Point> {
    if points.len() <= BUCKETS * 8 {
        return points.to_vec();
    }
    level(points, end, BUCKETS)
}

/// The points of a series for print, in this number of spans of time.
pub(super) fn peaks(points: &[Point], end: f64, spans: usize) -> Vec<Point> {
    if points.len() <= spans * 6 {
        return points.to_vec();
    }
    level(points, end, spans)
}

/// The points of this number of spans. They are taken from those of shorter spans if there are many.
fn level(points: &[Point], end: f64, spans: usize) -> Vec<Point> {
    if spans < FINEST && points.len() > spans * 16 {
        return bucketed(&level(points, end, spans * 4), end / spans as f64);
    }
    bucketed(points, end / spans as f64)
}

fn bucketed(points: &[Point], width: f64) -> Vec<Point> {
    // As the page reads it.
    let time = |point: &Point| (point.ms * 1000.0).round() / 1000.0;
    let mut kept = Vec::with_capacity(BUCKETS * 6);
    let mut rest = points;
    while let Some(first) = rest.first() {
        let limit = ((time(first) / width).floor() + 1.0) * width;
        let length = rest.partition_point(|point| time(point) < limit).max(1);
        let (span, after) = rest.split_at(length);
        let (mut low, mut high) = (0, 0);
        for (at, point) in span.iter().enumerate() {
            if point.value < span[low].value {
                low = at;
            }
            if point.value > span[high].value {
                high = at;
            }
        }
        let mut some = [0, low, high, length / 3, length * 2 / 3, length - 1];
        some.sort_unstable();
        for (place, at) in some.iter().enumerate() {
            if place == 0 || some[place - 1] != *at {
                kept.push(span[*at]);
            }
        }
        rest = after;
    }
    kept
}
