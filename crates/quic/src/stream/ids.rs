//! Stream IDs and stream limits (RFC 9000 §2.1, §4.6).
//!
//! Counts the opened and permitted streams of each type. A stream that was opened and is not in the
//! table of live streams is finished: nothing else is remembered of it. Announced limits never decrease.

use lastbyte_wire::{Direction, StreamCount};

#[cfg(test)]
mod tests;

/// One value for each direction.
#[derive(Clone, Debug, Default)]
pub(super) struct PerDirection<T> {
    bidirectional: T,
    unidirectional: T,
}

pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Bidirectional, Direction::Unidirectional];

impl<T> PerDirection<T> {
    pub(super) const fn new(bidirectional: T, unidirectional: T) -> Self {
        Self {
            bidirectional,
            unidirectional,
        }
    }

    pub(super) const fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Bidirectional => &self.bidirectional,
            Direction::Unidirectional => &self.unidirectional,
        }
    }

    pub(super) const fn get_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Bidirectional => &mut self.bidirectional,
            Direction::Unidirectional => &mut self.unidirectional,
        }
    }

    pub(super) fn any(&self, is: impl Fn(&T) -> bool) -> bool {
        is(&self.bidirectional) || is(&self.unidirectional)
    }
}

/// The streams that we open.
#[derive(Clone, Debug, Default)]
pub(super) struct LocalStreams {
    opened: u64,
    /// The peer's limit.
    limit: u64,
    /// The application wanted one more.
    wants_more: bool,
    /// The limit that was reported in `STREAMS_BLOCKED`.
    reported: Option<u64>,
}

impl LocalStreams {
    pub(super) const fn opened(&self) -> u64 {
        self.opened
    }

    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// The index of a new stream, if the peer permits one.
    pub(super) const fn open(&mut self) -> Option<u64> {
        if self.opened >= self.limit {
            self.wants_more = true;
            return None;
        }
        let index = self.opened;
        self.opened += 1;
        Some(index)
    }

    /// The peer permits more. Returns whether the application waits for that.
    pub(super) fn raise(&mut self, limit: StreamCount) -> bool {
        self.limit = self.limit.max(limit.get());
        self.limit > self.opened && std::mem::take(&mut self.wants_more)
    }

    pub(super) fn blocked_to_send(&self) -> Option<StreamCount> {
        (self.wants_more && self.reported != Some(self.limit))
            .then(|| StreamCount::new(self.limit))
            .flatten()
    }

    pub(super) const fn on_blocked_sent(&mut self) {
        self.reported = Some(self.limit);
    }

    pub(super) const fn on_blocked_lost(&mut self) {
        self.reported = None;
    }

    /// No limit is known any more (RFC 9001 §4.6.2).
    pub(super) const fn on_zero_rtt_rejected(&mut self) {
        self.limit = 0;
        self.reported = None;
    }
}

/// A stream beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BeyondLimit;

/// The streams that the peer opens.
#[derive(Clone, Debug)]
pub(super) struct PeerStreams {
    opened: u64,
    /// Number accepted by the application.
    accepted: u64,
    /// The limit last announced to the peer.
    limit: u64,
    /// Maximum number open at a time.
    concurrent_max: u64,
    finished: u64,
    due: bool,
}

impl PeerStreams {
    pub(super) const fn new(concurrent_max: u64) -> Self {
        Self {
            opened: 0,
            accepted: 0,
            limit: concurrent_max,
            concurrent_max,
            finished: 0,
            due: false,
        }
    }

    /// The peer uses the stream with this index. Returns the indices that are opened by that, including lower ones
    /// (§3.2).
    pub(super) const fn open_to(
        &mut self,
        index: u64,
    ) -> Result<std::ops::Range<u64>, BeyondLimit> {
        if index >= self.limit {
            return Err(BeyondLimit);
        }
        let opened = self.opened;
        if index >= opened {
            self.opened = index + 1;
        }
        Ok(opened..self.opened)
    }

    /// The index of the next stream that the application has not accepted.
    pub(super) const fn accept(&mut self) -> Option<u64> {
        if self.accepted == self.opened {
            return None;
        }
        self.accepted += 1;
        Some(self.accepted - 1)
    }

    /// A stream is finished: the peer may open another, which is announced when half of its streams are finished.
    pub(super) fn on_finished(&mut self) {
        self.finished += 1;
        let raise = self.next_limit().get().saturating_sub(self.limit);
        self.due |= raise > 0 && raise >= self.concurrent_max / 2;
    }

    /// Whether none of the peer's streams is live.
    pub(super) const fn are_all_finished(&self) -> bool {
        self.finished == self.opened
    }

    pub(super) fn next_limit(&self) -> StreamCount {
        let limit = self.finished.saturating_add(self.concurrent_max);
        StreamCount::new(limit).unwrap_or(StreamCount::MAX)
    }

    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    pub(super) fn on_limit_sent(&mut self) {
        self.limit = self.limit.max(self.next_limit().get());
        self.due = false;
    }

    pub(super) const fn on_lost(&mut self) {
        self.due = true;
    }
}
