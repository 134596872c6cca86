//! A series of bounded length: up to a limit it has all points; beyond it, the first, last, smallest and largest value of each
//! span of time, and spans become longer as needed. No extreme value, gap or end is lost at the scale of a picture.

use super::Point;

/// A series has all of its points up to this number.
const EXACT_MAX: usize = 100_000;
/// A longer one has this many spans at most.
const SPANS_MAX: usize = 10_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Bounded {
    exact: Vec<Point>,
    spans: Vec<Span>,
    /// The length of a span in ms; 0 while all points are kept.
    width: f64,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    index: i64,
    first: Point,
    last: Point,
    least: Point,
    most: Point,
}

impl Span {
    fn add(&mut self, other: &Self) {
        if other.first.ms < self.first.ms {
            self.first = other.first;
        }
        if other.last.ms >= self.last.ms {
            self.last = other.last;
        }
        if other.least.value < self.least.value {
            self.least = other.least;
        }
        if other.most.value > self.most.value {
            self.most = other.most;
        }
    }
}

impl Bounded {
    pub(crate) const fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.spans.is_empty()
    }

    pub(crate) fn push(&mut self, ms: f64, value: f64) {
        let point = Point::new(ms, value);
        if !(ms.is_finite() && value.is_finite()) {
            return;
        }
        if self.width == 0.0 {
            self.exact.push(point);
            if self.exact.len() > EXACT_MAX {
                let (first, last) = (self.exact[0].ms, point.ms);
                self.width = ((last - first) / (SPANS_MAX / 2) as f64).max(1e-6);
                for point in core::mem::take(&mut self.exact) {
                    self.span(point);
                }
            }
            return;
        }
        self.span(point);
    }

    fn span(&mut self, point: Point) {
        let span = Span {
            index: (point.ms / self.width).floor() as i64,
            first: point,
            last: point,
            least: point,
            most: point,
        };
        match self.spans.last_mut() {
            // A point that is late belongs to the newest span as well.
            Some(newest) if newest.index >= span.index => newest.add(&span),
            _ => self.spans.push(span),
        }
        if self.spans.len() > SPANS_MAX {
            self.width *= 2.0;
            let mut merged: Vec<Span> = Vec::with_capacity(SPANS_MAX / 2 + 1);
            for mut span in core::mem::take(&mut self.spans) {
                span.index = span.index.div_euclid(2);
                match merged.last_mut() {
                    Some(newest) if newest.index >= span.index => newest.add(&span),
                    _ => merged.push(span),
                }
            }
            self.spans = merged;
        }
    }

    /// The points in the order of time.
    pub(crate) fn finish(self) -> Vec<Point> {
        let mut points = self.exact;
        for span in &self.spans {
            let mut four = [span.first, span.least, span.most, span.last];
            four.sort_by(|a, b| a.ms.total_cmp(&b.ms));
            for point in four {
                if points.last() != Some(&point) {
                    points.push(point);
                }
            }
        }
        points
    }

    /// The number of points in memory, for tests.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.exact.len() + 4 * self.spans.len()
    }
}
