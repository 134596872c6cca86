//! Stream events for the application.
//!
//! Owns the queue. It is bounded: each live stream is in it at most once, with a set of flags, and a stream stays alive
//! until its events are taken. An application that does not take events therefore lets the peer open no more streams,
//! which bounds the rest.

use std::collections::VecDeque;

use lastbyte_wire::{Direction, StreamId, VarInt};

/// A stream event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened streams: accept them until there are none.
    Opened(Direction),
    /// The peer permits more streams, after opening one failed.
    Available(Direction),
    /// In-order data or the end is available.
    Readable(StreamId),
    /// The peer reset its part. The receiving part is finished when this event is returned (RFC 9000 §3.2).
    Reset {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: VarInt,
    },
    /// The peer asked us to stop sending (RFC 9000 §3.5). Our part is or will be reset.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: VarInt,
    },
    /// The source of the stream could not be read. Our part is reset.
    SourceFailed {
        /// The stream.
        id: StreamId,
        /// The error code of the reset.
        code: VarInt,
    },
    /// There is room for data again, after a write that accepted less than all.
    Writable(StreamId),
    /// All data and the end of our part were acknowledged.
    Finished(StreamId),
}

/// A set of events of one stream, taken from the lowest bit on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventSet(u8);

impl EventSet {
    pub(super) const READABLE: Self = Self(1);
    pub(super) const RESET: Self = Self(1 << 1);
    pub(super) const STOPPED: Self = Self(1 << 2);
    pub(super) const SOURCE_FAILED: Self = Self(1 << 3);
    pub(super) const WRITABLE: Self = Self(1 << 4);
    pub(super) const FINISHED: Self = Self(1 << 5);

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) const fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }

    /// Removes and returns the first.
    pub(super) const fn pop(&mut self) -> Option<Self> {
        if self.is_empty() {
            return None;
        }
        let lowest = Self(self.0 & self.0.wrapping_neg());
        self.remove(lowest);
        Some(lowest)
    }
}

#[derive(Debug, Default)]
pub(super) struct EventQueue {
    pub(super) opened: super::ids::PerDirection<bool>,
    pub(super) available: super::ids::PerDirection<bool>,
    /// Streams with events, each once.
    pub(super) streams: VecDeque<StreamId>,
}

impl EventQueue {
    /// Events that concern no particular stream.
    pub(super) fn pop_general(&mut self) -> Option<StreamEvent> {
        super::ids::DIRECTIONS.into_iter().find_map(|direction| {
            if std::mem::take(self.opened.get_mut(direction)) {
                Some(StreamEvent::Opened(direction))
            } else if std::mem::take(self.available.get_mut(direction)) {
                Some(StreamEvent::Available(direction))
            } else {
                None
            }
        })
    }
}
