//! The receive window and its growth (Linux: `tcp_grow_window`, and dynamic right-sizing in `tcp_rcv_space_adjust`).
//!
//! ```text
//! limit   = receive_window at first
//! window  = min(limit, window + 2 segments) with each segment received
//! limit   = 2 × copied + 16 segments, and twice that times (copied - before) / before more,
//!           once a round trip in which more was copied than in any before
//! ```

use core::time::Duration;

use lastbyte_units::Time;

/// The receive window of one end. Sizes are in bytes.
#[derive(Debug)]
pub(super) struct Window {
    segment_size: u64,
    limit_max: u64,
    /// `window_clamp`
    limit: u64,
    /// `rcv_ssthresh`
    size: u64,
    /// The end of the offered window.
    edge: u64,
    /// The round-trip time measured by the receiver.
    rtt: Option<Duration>,
    round_start: Time,
    round_from: u64,
    /// Bytes read in the previous round.
    copied: u64,
}

impl Window {
    pub(super) fn new(initial: u64, max: u64, segment_size: u64) -> Self {
        Self {
            segment_size,
            limit_max: max.max(initial),
            limit: initial,
            size: initial,
            edge: initial,
            rtt: None,
            round_start: Time::ZERO,
            round_from: 0,
            copied: initial.min(10 * segment_size),
        }
    }

    pub(super) const fn on_established(&mut self, now: Time) {
        self.round_start = now;
    }

    /// The window without data out of order, in bytes.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Processes a segment of `len` bytes, when all bytes below `next` have been read. `rtt` is the time since the segment that it echoes.
    pub(super) fn on_segment(&mut self, now: Time, len: u32, next: u64, rtt: Option<Duration>) {
        if u64::from(len) >= self.segment_size
            && let Some(sample) = rtt
        {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| (rtt * 7 + sample) / 8));
        }
        if len >= SMALL {
            self.size = (self.size + 2 * self.segment_size).min(self.limit);
        }
        if self.rtt.is_none_or(|rtt| now.since(self.round_start) < rtt) {
            return;
        }
        let copied = next - self.round_from;
        if copied > self.copied {
            let window = 2 * copied + 16 * self.segment_size;
            let growth = u128::from(window) * u128::from(copied - self.copied);
            let growth = (growth / u128::from(self.copied.max(1))) as u64;
            let window = window.saturating_add(growth.saturating_mul(2));
            self.limit = self.limit.max(window.min(self.limit_max));
            self.copied = copied;
        }
        self.round_start = now;
        self.round_from = next;
    }

    /// The window to offer when all bytes below `next` have arrived, and `waiting` bytes out of order. It never shrinks below an earlier offer.
    pub(super) fn offer(&mut self, next: u64, waiting: u64) -> u64 {
        let window = self.size.min(self.limit.saturating_sub(waiting));
        self.edge = self.edge.max(next + window);
        self.edge - next
    }
}

/// Smaller segments do not open the window (`tcp_event_data_recv`).
const SMALL: u32 = 128;

#[cfg(test)]
mod tests;
