//! Segments sent and not acknowledged: the SACK scoreboard (RFC 2018; Linux `tcp_sacktag_write_queue`).

use std::collections::VecDeque;

use lastbyte_congestion::{Packet, Receipt};
use lastbyte_units::Time;

use super::{outgoing::Payload, rack::Transmission};

/// A segment with payload.
#[derive(Clone, Debug)]
pub(super) struct SentSegment {
    pub(super) sequence: u64,
    pub(super) payload: Payload,
    pub(super) sent_at: Time,
    pub(super) receipt: Receipt,
    pub(super) state: State,
    /// Number of retransmissions.
    pub(super) retransmissions: u32,
    /// The transmission that was declared lost, if any.
    pub(super) lost: Option<Lost>,
}

/// A transmission that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) packet: Packet,
    pub(super) is_reported: bool,
}

/// The state of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    InFlight,
    /// Declared lost, and not retransmitted yet.
    Lost,
    /// Acknowledged by SACK.
    Sacked,
}

impl SentSegment {
    pub(super) const fn end(&self) -> u64 {
        self.sequence + self.payload.len as u64
    }

    pub(super) const fn packet(&self) -> Packet {
        Packet {
            bytes: self.payload.len as u64,
            sent_at: self.sent_at,
            receipt: self.receipt,
        }
    }

    pub(super) const fn transmission(&self) -> Transmission {
        Transmission {
            sent_at: self.sent_at,
            end: self.end(),
            is_retransmission: self.retransmissions > 0,
        }
    }
}

/// The segments sent and not acknowledged, by sequence number.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    segments: VecDeque<SentSegment>,
    in_flight: u64,
    sacked: usize,
    lost: usize,
    /// Segments before this index are not `Lost`.
    first_lost: usize,
}

impl Scoreboard {
    /// Payload in flight, in bytes: neither acknowledged nor declared lost.
    pub(super) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Number of segments acknowledged by SACK.
    pub(super) const fn sacked(&self) -> usize {
        self.sacked
    }

    /// Number of segments to retransmit.
    pub(super) const fn lost(&self) -> usize {
        self.lost
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(super) fn front(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SentSegment> {
        self.segments.iter_mut()
    }

    pub(super) fn push(&mut self, segment: SentSegment) {
        self.in_flight += u64::from(segment.payload.len);
        self.segments.push_back(segment);
    }

    /// Removes the first segment if it ends at or before `ack`.
    pub(super) fn acknowledge(&mut self, ack: u64) -> Option<SentSegment> {
        self.segments
            .front()
            .filter(|segment| segment.end() <= ack)?;
        let segment = self.segments.pop_front()?;
        match segment.state {
            State::InFlight => self.in_flight -= u64::from(segment.payload.len),
            State::Lost => self.lost -= 1,
            State::Sacked => self.sacked -= 1,
        }
        self.first_lost = self.first_lost.saturating_sub(1);
        Some(segment)
    }

    /// Marks the segments of a SACK block, and calls `on_new` for each that was not marked.
    pub(super) fn sack(&mut self, (start, end): (u64, u64), mut on_new: impl FnMut(&SentSegment)) {
        let from = self
            .segments
            .partition_point(|segment| segment.sequence < start);
        for segment in self.segments.range_mut(from..) {
            if segment.end() > end {
                break;
            }
            match segment.state {
                State::Sacked => continue,
                State::InFlight => self.in_flight -= u64::from(segment.payload.len),
                State::Lost => self.lost -= 1,
            }
            self.sacked += 1;
            on_new(segment);
            segment.state = State::Sacked;
        }
    }

    /// Declares segments in flight lost if `is_lost` returns `true`, until it returns `None`. Returns their number.
    pub(super) fn declare_lost(
        &mut self,
        mut is_lost: impl FnMut(&SentSegment) -> Option<bool>,
    ) -> usize {
        let before = self.lost;
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if segment.state != State::InFlight {
                continue;
            }
            match is_lost(segment) {
                None => break,
                Some(false) => continue,
                Some(true) => {}
            }
            segment.state = State::Lost;
            segment.lost = Some(Lost {
                packet: segment.packet(),
                is_reported: false,
            });
            self.in_flight -= u64::from(segment.payload.len);
            self.lost += 1;
            self.first_lost = self.first_lost.min(index);
        }
        self.lost - before
    }

    /// The first segment to retransmit.
    pub(super) fn next_lost(&mut self) -> Option<&mut SentSegment> {
        if self.lost == 0 {
            self.first_lost = self.segments.len();
            return None;
        }
        while self.segments.get(self.first_lost)?.state != State::Lost {
            self.first_lost += 1;
        }
        self.segments.get_mut(self.first_lost)
    }

    /// The last segment, for a tail loss probe.
    pub(super) fn last(&mut self) -> Option<&mut SentSegment> {
        self.segments.back_mut()
    }

    /// A lost segment was retransmitted.
    pub(super) fn on_retransmitted(&mut self, bytes: u32) {
        self.lost -= 1;
        self.in_flight += u64::from(bytes);
    }
}
