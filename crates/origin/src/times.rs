//! Times of the requests of one thread, by route and status class, for metrics.
//!
//! One observation costs a search among 16 bounds and two relaxed atomic additions, without a lock or an
//! allocation, except for the first response of a route and class. A route and class without a response has no memory.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::histogram::{BOUNDS_MS, Histogram, bucket};

/// Classes of final responses: 1xx to 5xx.
const CLASSES: usize = 5;

/// The times of one thread. Others read them.
#[derive(Debug)]
pub struct RequestTimes(Box<[OnceLock<Box<Cell>>]>);

#[derive(Debug, Default)]
struct Cell {
    first_byte: Counts,
    whole: Counts,
}

/// A histogram that one thread adds to and others read.
#[derive(Debug, Default)]
pub struct Counts {
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    /// In microseconds.
    sum: AtomicU64,
}

/// The times of a route and class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassTimes {
    /// The index of the route.
    pub route: usize,
    /// The first digit of the status.
    pub class: u16,
    /// Until the header of the response was passed to the transport.
    pub first_byte: Histogram,
    /// Until the end of a complete response, as in the access log.
    pub whole: Histogram,
}

impl Counts {
    /// Counts a time.
    pub fn add(&self, span: Duration) {
        if let Some(count) = self.counts.get(bucket(span)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        self.sum.fetch_add(micros, Ordering::Relaxed);
    }

    /// The present counts.
    pub fn read(&self) -> Histogram {
        let counts = self.counts.each_ref();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        Histogram::of(
            counts,
            Duration::from_micros(self.sum.load(Ordering::Relaxed)),
        )
    }
}

impl Default for RequestTimes {
    /// For a server without routes.
    fn default() -> Self {
        Self::new(1)
    }
}

impl RequestTimes {
    /// For this many routes, at least one.
    #[must_use]
    pub fn new(routes: usize) -> Self {
        let cells = routes.max(1).saturating_mul(CLASSES);
        Self((0..cells).map(|_| OnceLock::new()).collect())
    }

    fn cell(&self, route: usize, status: u16) -> Option<&Cell> {
        let class = usize::from(status / 100).checked_sub(1);
        let class = class.filter(|class| *class < CLASSES)?;
        let cell = self.0.get(route * CLASSES + class)?;
        Some(cell.get_or_init(Box::default))
    }

    /// The header of a response was passed to the transport.
    pub fn on_first_byte(&self, route: usize, status: u16, span: Duration) {
        if let Some(cell) = self.cell(route, status) {
            cell.first_byte.add(span);
        }
    }

    /// A response is complete.
    pub fn on_whole(&self, route: usize, status: u16, span: Duration) {
        if let Some(cell) = self.cell(route, status) {
            cell.whole.add(span);
        }
    }

    /// The times of each route and class that has had a response.
    pub fn read(&self) -> Vec<ClassTimes> {
        let cells = self.0.iter().enumerate();
        cells
            .filter_map(|(index, cell)| {
                let cell = cell.get()?;
                Some(ClassTimes {
                    route: index / CLASSES,
                    class: (index % CLASSES) as u16 + 1,
                    first_byte: cell.first_byte.read(),
                    whole: cell.whole.read(),
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_kept_by_route_and_class_and_an_unknown_one_is_not_counted() {
        let times = RequestTimes::new(2);
        assert_eq!(times.read(), []);
        times.on_first_byte(1, 204, Duration::from_millis(3));
        times.on_whole(1, 200, Duration::from_millis(7));
        for (route, status) in [(2, 200), (0, 0), (0, 99), (0, 600), (usize::MAX / 8, 200)] {
            times.on_whole(route, status, Duration::ZERO);
        }
        let read = times.read();
        let [of] = &read[..] else { panic!("{read:?}") };
        assert_eq!((of.route, of.class), (1, 2));
        let mut expected = [Histogram::default(), Histogram::default()];
        expected[0].add(Duration::from_millis(3));
        expected[1].add(Duration::from_millis(7));
        assert_eq!([&of.first_byte, &of.whole], [&expected[0], &expected[1]]);
    }
}
