//! Stream identifiers and counts (RFC 9000 §2.1, §4.6).

use core::fmt;

use crate::{Side, VarInt};

#[cfg(test)]
mod tests;

/// Whether both ends may send on a stream, or only the one that opened it (RFC 9000 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Both ends send.
    Bidirectional,
    /// Only the initiator sends.
    Unidirectional,
}

/// A stream's identifier: its two lowest bits tell who opened it and who may send (RFC 9000 §2.1).
///
/// ```
/// use lastbyte_wire::{Direction, Side, StreamId};
///
/// let first_push = StreamId::new(Side::Server, Direction::Unidirectional, 0).unwrap();
/// assert_eq!(first_push.get(), 3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(VarInt);

impl StreamId {
    /// The stream that is the `index`th of its kind, counted from 0. There are 2^60 of each kind.
    #[must_use]
    pub const fn new(initiator: Side, direction: Direction, index: u64) -> Option<Self> {
        if index >= StreamCount::MAX.0 {
            return None;
        }
        let kind = match (initiator, direction) {
            (Side::Client, Direction::Bidirectional) => 0,
            (Side::Server, Direction::Bidirectional) => 1,
            (Side::Client, Direction::Unidirectional) => 2,
            (Side::Server, Direction::Unidirectional) => 3,
        };
        Some(Self(VarInt::from_low_bits(index << 2 | kind)))
    }

    /// Who opened the stream.
    #[must_use]
    pub const fn initiator(self) -> Side {
        if self.0.get() & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Who may send on it.
    #[must_use]
    pub const fn direction(self) -> Direction {
        if self.0.get() & 2 == 0 {
            Direction::Bidirectional
        } else {
            Direction::Unidirectional
        }
    }

    /// How many streams of its kind were there before it.
    #[must_use]
    pub const fn index(self) -> u64 {
        self.0.get() >> 2
    }

    /// The identifier as a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl From<VarInt> for StreamId {
    fn from(id: VarInt) -> Self {
        Self(id)
    }
}

impl From<StreamId> for VarInt {
    fn from(id: StreamId) -> Self {
        id.0
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many streams of one kind may be opened over a connection's life: at most 2^60, or their identifiers would not be
/// variable-length integers (RFC 9000 §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamCount(u64);

impl StreamCount {
    /// None.
    pub const ZERO: Self = Self(0);
    /// 2^60.
    pub const MAX: Self = Self(1 << 60);

    /// The count, if it is at most 2^60.
    #[must_use]
    pub const fn new(count: u64) -> Option<Self> {
        if count <= Self::MAX.0 {
            Some(Self(count))
        } else {
            None
        }
    }

    /// The count.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<StreamCount> for VarInt {
    fn from(count: StreamCount) -> Self {
        Self::from_low_bits(count.0)
    }
}
