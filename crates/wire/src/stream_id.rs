//! Stream identifiers and counts (RFC 9000 §2.1, §4.6).

use core::fmt;

use crate::{Side, VarInt, varint::contains_varint};

#[cfg(test)]
mod tests;

/// Whether both endpoints may send on a stream, or only its initiator (RFC 9000 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Both endpoints send.
    Bidirectional,
    /// Only the initiator sends.
    Unidirectional,
}

/// A stream ID. The two least significant bits encode the initiator and the direction (RFC 9000 §2.1).
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
    /// The stream ID with this zero-based `index` among the streams of its type, or `None` if `index` is 2^60 or more.
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

    /// The endpoint that opened the stream.
    pub const fn initiator(self) -> Side {
        if self.0.get() & 1 == 0 {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Whether the stream is bidirectional or unidirectional.
    pub const fn direction(self) -> Direction {
        if self.0.get() & 2 == 0 {
            Direction::Bidirectional
        } else {
            Direction::Unidirectional
        }
    }

    /// The zero-based index among the streams of its type.
    pub const fn index(self) -> u64 {
        self.0.get() >> 2
    }

    /// The stream ID as an integer.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

contains_varint!(StreamId);

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The cumulative number of streams of one type that may be opened on a connection: at most 2^60, because larger stream
/// IDs cannot be encoded as variable-length integers (RFC 9000 §4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StreamCount(u64);

impl StreamCount {
    /// No streams.
    pub const ZERO: Self = Self(0);
    /// The maximum, 2^60.
    pub const MAX: Self = Self(1 << 60);

    /// Creates a count, or returns `None` if it exceeds 2^60.
    pub const fn new(count: u64) -> Option<Self> {
        if count <= Self::MAX.0 {
            Some(Self(count))
        } else {
            None
        }
    }

    /// The count as an integer.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl From<StreamCount> for VarInt {
    fn from(count: StreamCount) -> Self {
        Self::from_low_bits(count.0)
    }
}
