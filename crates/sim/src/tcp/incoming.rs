//! Received data: reassembly, and SACK blocks (RFC 2018; Linux `tcp_data_queue_ofo`, `tcp_sack_new_ofo_skb`).

use super::segment::{Progress, Segment};

/// Reassembly of a stream, by positions without data.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    next: u64,
    progress: Progress,
    /// Ranges received out of order: disjoint, ascending, not adjacent.
    ranges: Vec<Range>,
    /// The ranges in the order of their latest arrival, the newest first, by their first byte.
    recent: Vec<u64>,
    duplicate: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// The progress at its end.
    progress: Progress,
}

/// The relation of a segment's payload to the received data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The next in order.
    InOrder,
    /// The next in order, filling the last gap.
    FilledGap,
    /// Out of order, or in order with a gap after it.
    OutOfOrder,
    /// Already received.
    Duplicate,
}

impl Incoming {
    /// All bytes below have arrived.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The progress at that position.
    pub(super) const fn progress(&self) -> Progress {
        self.progress
    }

    /// Bytes received out of order.
    pub(super) fn waiting(&self) -> u64 {
        self.ranges
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    pub(super) fn on_segment(&mut self, segment: &Segment) -> Arrival {
        let (start, end) = (segment.sequence, segment.end());
        let index = self.ranges.partition_point(|range| range.end < start);
        let covering = self
            .ranges
            .get(index)
            .filter(|range| range.start <= start && end <= range.end);
        if end <= self.next || covering.is_some() {
            self.duplicate = Some((start, end));
            return Arrival::Duplicate;
        }
        if start <= self.next {
            self.next = end;
            self.progress = segment.progress;
            let passed = self
                .ranges
                .iter()
                .take_while(|range| range.start <= end)
                .count();
            let had_gap = !self.ranges.is_empty();
            for range in self.ranges.drain(..passed) {
                if range.end > self.next {
                    self.next = range.end;
                    self.progress = range.progress;
                }
                self.recent.retain(|start| *start != range.start);
            }
            return match (had_gap, self.ranges.is_empty()) {
                (true, true) => Arrival::FilledGap,
                (true, false) => Arrival::OutOfOrder,
                (false, _) => Arrival::InOrder,
            };
        }
        let mut merged = Range {
            start,
            end,
            progress: segment.progress,
        };
        let mut last = index;
        while let Some(range) = self.ranges.get(last)
            && range.start <= end
        {
            merged.start = merged.start.min(range.start);
            if range.end > merged.end {
                merged.end = range.end;
                merged.progress = range.progress;
            }
            let joined = range.start;
            self.recent.retain(|start| *start != joined);
            last += 1;
        }
        self.ranges.splice(index..last, [merged]);
        self.recent.insert(0, merged.start);
        Arrival::OutOfOrder
    }

    /// Writes the SACK blocks of an acknowledgment. A duplicate is reported once.
    pub(super) fn report(&mut self, segment: &mut Segment) {
        let duplicate = self.duplicate.take();
        segment.is_dsack = duplicate.is_some();
        let recent = self.recent.iter().filter_map(|start| {
            let index = self
                .ranges
                .binary_search_by_key(start, |range| range.start)
                .ok()?;
            self.ranges.get(index).map(|range| (range.start, range.end))
        });
        for (slot, block) in segment
            .sack
            .iter_mut()
            .zip(duplicate.into_iter().chain(recent))
        {
            *slot = block;
            segment.sack_count += 1;
        }
    }
}

#[cfg(test)]
mod tests;
