//! Packet numbers, whole and truncated (RFC 9000 §12.3, §17.1).

use core::fmt;

use crate::{BufferFull, VarInt, Writer};

#[cfg(test)]
mod tests;

/// A packet number: 0 to 2^62 − 1 (RFC 9000 §12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PacketNumber(VarInt);

/// How many bytes of a packet number are sent (RFC 9000 §17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the numbers speak for themselves")]
pub enum PacketNumberLen {
    One = 1,
    Two = 2,
    Three = 3,
    Four = 4,
}

/// The lowest bytes of a packet number, as they are sent (RFC 9000 §17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TruncatedPacketNumber {
    /// Within the length.
    value: u32,
    len: PacketNumberLen,
}

impl PacketNumber {
    /// 0, the first of each packet number space.
    pub const ZERO: Self = Self(VarInt::ZERO);
    /// 2^62 − 1, after which a connection can send no more.
    pub const MAX: Self = Self(VarInt::MAX);

    /// The packet number, if it is at most 2^62 − 1.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match VarInt::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The next packet number; `None` after the last, when the connection has to be closed (RFC 9000 §12.3).
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        Self::new(self.get() + 1)
    }

    /// The fewest bytes the peer can tell the number from, given the largest packet number of the space that it
    /// acknowledged (RFC 9000 §17.1, Appendix A.2). At 2^31 or more unacknowledged packets no length is enough, and
    /// four bytes is what there is.
    #[must_use]
    pub const fn truncate(self, largest_acknowledged: Option<Self>) -> TruncatedPacketNumber {
        let unacknowledged = match largest_acknowledged {
            Some(largest) => self.get().saturating_sub(largest.get()),
            None => self.get() + 1,
        };
        // The range has to be more than twice as large as what is unacknowledged.
        self.truncate_to(match unacknowledged {
            0..0x80 => PacketNumberLen::One,
            0x80..0x8000 => PacketNumberLen::Two,
            0x8000..0x0080_0000 => PacketNumberLen::Three,
            _ => PacketNumberLen::Four,
        })
    }

    /// The lowest bytes of the number.
    #[must_use]
    pub const fn truncate_to(self, len: PacketNumberLen) -> TruncatedPacketNumber {
        TruncatedPacketNumber::new(self.get() as u32, len)
    }
}

impl TruncatedPacketNumber {
    /// The lowest bytes of `value`.
    pub(super) const fn new(value: u32, len: PacketNumberLen) -> Self {
        Self {
            value: value & (u32::MAX >> (32 - len.bits())),
            len,
        }
    }

    /// How many bytes it takes.
    #[must_use]
    pub const fn len(self) -> PacketNumberLen {
        self.len
    }

    /// What the bytes say.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.value
    }

    /// The packet number nearest to the one expected, the successor of the largest that was received in the space
    /// (RFC 9000 §17.1, Appendix A.3).
    #[must_use]
    pub const fn expand(self, largest_received: Option<PacketNumber>) -> PacketNumber {
        let expected = match largest_received {
            None => 0,
            Some(PacketNumber::MAX) => PacketNumber::MAX.get(),
            Some(largest) => largest.get() + 1,
        };
        let window = 1_u64 << self.len.bits();
        let half = window / 2;
        let candidate = expected & !(window - 1) | self.value as u64;
        let number = if candidate + half <= expected && candidate < (1 << 62) - window {
            candidate + window
        } else if candidate > expected + half && candidate >= window {
            candidate - window
        } else {
            candidate
        };
        // At most 2^62 − 1: `expected` is, and setting its low bits or adding a window below the limit keeps it so.
        PacketNumber(VarInt::from_low_bits(number))
    }

    #[inline]
    pub(super) fn encode(self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        match self.len {
            PacketNumberLen::One => writer.u8(self.value as u8),
            PacketNumberLen::Two => writer.u16(self.value as u16),
            PacketNumberLen::Three => writer.atomically(|writer| {
                writer.u8((self.value >> 16) as u8)?;
                writer.u16(self.value as u16)
            }),
            PacketNumberLen::Four => writer.u32(self.value),
        }
    }
}

impl PacketNumberLen {
    /// In bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self as usize
    }

    pub(super) const fn bits(self) -> u32 {
        self as u32 * 8
    }

    /// The two bits of a header's first byte that tell it.
    pub(super) const fn to_bits(self) -> u8 {
        self as u8 - 1
    }

    /// The inverse, which looks at the two lowest bits only.
    pub(super) const fn from_bits(bits: u8) -> Self {
        match bits & 0x03 {
            0 => Self::One,
            1 => Self::Two,
            2 => Self::Three,
            _ => Self::Four,
        }
    }
}

impl From<u32> for PacketNumber {
    fn from(number: u32) -> Self {
        Self(VarInt::from_u32(number))
    }
}

impl From<VarInt> for PacketNumber {
    fn from(number: VarInt) -> Self {
        Self(number)
    }
}

impl From<PacketNumber> for VarInt {
    fn from(number: PacketNumber) -> Self {
        number.0
    }
}

impl fmt::Display for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
