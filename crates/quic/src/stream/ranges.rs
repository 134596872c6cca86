//! Sets of offsets, stored as ranges: acknowledged, lost, received.
//!
//! Owns only the arithmetic of ranges. Ranges are sorted, non-empty, and do not touch. They are stored in a ring, so
//! that the set of a stream that moves forward does not allocate. The user of a set bounds its number of ranges.

use std::{collections::VecDeque, ops::Range};

#[cfg(test)]
mod tests;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RangeSet {
    spans: VecDeque<Span>,
}

impl RangeSet {
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The number of ranges, not of offsets.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn clear(&mut self) {
        self.spans.clear();
    }

    /// Frees memory that is not in use.
    pub(super) fn release_memory(&mut self) {
        self.spans.shrink_to_fit();
    }

    /// The lowest range.
    pub(super) fn first(&self) -> Option<Range<u64>> {
        self.spans.front().map(|span| span.start..span.end)
    }

    /// One more than the highest offset.
    pub(super) fn end(&self) -> Option<u64> {
        self.spans.back().map(|span| span.end)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.spans.iter().map(|span| span.start..span.end)
    }

    /// Whether it contains all of `range`.
    pub(super) fn has(&self, range: &Range<u64>) -> bool {
        let at = self.spans.partition_point(|span| span.end < range.end);
        range.is_empty()
            || self
                .spans
                .get(at)
                .is_some_and(|span| span.start <= range.start)
    }

    /// Adds all of `range`.
    pub(super) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let from = self.spans.partition_point(|span| span.end < range.start);
        let to = self.spans.partition_point(|span| span.start <= range.end);
        let mut merged = Span {
            start: range.start,
            end: range.end,
        };
        for span in self.spans.range(from..to) {
            merged.start = merged.start.min(span.start);
            merged.end = merged.end.max(span.end);
        }
        if from == to {
            self.spans.insert(from, merged);
        } else {
            self.spans.drain(from + 1..to);
            if let Some(span) = self.spans.get_mut(from) {
                *span = merged;
            }
        }
    }

    /// Removes all of `range`.
    #[inline]
    pub(super) fn remove(&mut self, range: Range<u64>) {
        if !self.spans.is_empty() && !range.is_empty() {
            self.take_out(&range);
        }
    }

    fn take_out(&mut self, range: &Range<u64>) {
        let from = self.spans.partition_point(|span| span.end <= range.start);
        let to = self.spans.partition_point(|span| span.start < range.end);
        if from == to {
            return;
        }
        let start = self.spans.get(from).map_or(range.start, |span| span.start);
        let end = self.spans.get(to - 1).map_or(range.end, |span| span.end);
        self.spans.drain(from..to);
        if end > range.end {
            let right = Span {
                start: range.end,
                end,
            };
            self.spans.insert(from, right);
        }
        if start < range.start {
            let left = Span {
                start,
                end: range.start,
            };
            self.spans.insert(from, left);
        }
    }

    /// Adds the part of `range` that is not in `other`.
    pub(super) fn insert_except(&mut self, range: Range<u64>, other: &Self) {
        let mut start = range.start;
        let from = other.spans.partition_point(|span| span.end <= range.start);
        for span in other.spans.range(from..) {
            if span.start >= range.end {
                break;
            }
            self.insert(start..span.start.max(start));
            start = start.max(span.end);
        }
        self.insert(start..range.end.max(start));
    }
}
