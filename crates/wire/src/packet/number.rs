//! Packet numbers, full and truncated (RFC 9000 §12.3, §17.1).

use core::fmt;

use crate::{BufferFull, VarInt, Writer, varint::contains_varint};

#[cfg(test)]
mod tests;

/// A packet number from 0 to 2^62 − 1 (RFC 9000 §12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PacketNumber(VarInt);

/// The number of bytes that encode a packet number (RFC 9000 §17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the variant names are the lengths")]
pub enum PacketNumberLen {
    One = 1,
    Two = 2,
    Three = 3,
    Four = 4,
}

/// A packet number truncated to its least significant bytes (RFC 9000 §17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TruncatedPacketNumber {
    /// At most `len` bytes.
    value: u32,
    len: PacketNumberLen,
}

impl PacketNumber {
    /// 0, the first packet number of each packet number space.
    pub const ZERO: Self = Self(VarInt::ZERO);
    /// 2^62 − 1, the last packet number that a connection can use.
    pub const MAX: Self = Self(VarInt::MAX);

    /// Creates a packet number, or returns `None` if it exceeds 2^62 − 1.
    pub const fn new(number: u64) -> Option<Self> {
        match VarInt::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The packet number as an integer.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Truncates the packet number to the fewest bytes from which the peer can recover it, given the largest packet
    /// number that the peer acknowledged in the packet number space (RFC 9000 §17.1, Appendix A.2). With 2^31 or more
    /// unacknowledged packets no length suffices, and four bytes are used.
    pub const fn truncate(self, largest_acknowledged: Option<Self>) -> TruncatedPacketNumber {
        let unacknowledged = match largest_acknowledged {
            Some(largest) => self.get().saturating_sub(largest.get()),
            None => self.get() + 1,
        };
        // The encoding must represent more than twice the range of unacknowledged packets.
        self.truncate_to(match unacknowledged {
            0..0x80 => PacketNumberLen::One,
            0x80..0x8000 => PacketNumberLen::Two,
            0x8000..0x0080_0000 => PacketNumberLen::Three,
            _ => PacketNumberLen::Four,
        })
    }

    /// Truncates the packet number to its `len` least significant bytes.
    pub const fn truncate_to(self, len: PacketNumberLen) -> TruncatedPacketNumber {
        TruncatedPacketNumber::new(self.get() as u32, len)
    }
}

impl TruncatedPacketNumber {
    /// Keeps the `len` least significant bytes of `value`.
    pub(super) const fn new(value: u32, len: PacketNumberLen) -> Self {
        Self {
            value: value & (u32::MAX >> (32 - len.bits())),
            len,
        }
    }

    /// The encoded length.
    pub const fn len(self) -> PacketNumberLen {
        self.len
    }

    /// Recovers the full packet number: the one closest to the successor of the largest packet number received in the
    /// packet number space (RFC 9000 §17.1, Appendix A.3).
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
        // In range, because `expected` is, and neither replacing its low bits nor adding a window below the limit
        // exceeds 2^62 − 1.
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
    /// The length in bytes.
    pub const fn bytes(self) -> usize {
        self as usize
    }

    pub(super) const fn bits(self) -> u32 {
        self as u32 * 8
    }

    /// The Packet Number Length bits in the first byte of a header.
    pub(super) const fn to_bits(self) -> u8 {
        self as u8 - 1
    }

    /// The inverse of `to_bits`. Ignores all but the two least significant bits.
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

contains_varint!(PacketNumber);

impl fmt::Display for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
