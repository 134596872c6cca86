//! ACK frames (RFC 9000 §19.3).

use core::ops::RangeInclusive;

use super::{FrameErrorKind, FrameType};
use crate::{BufferFull, Encode, Reader, VarInt, Writer, packet::PacketNumber};

mod report;
#[cfg(test)]
mod tests;

pub use report::AckReport;

/// A received ACK frame (RFC 9000 §19.3).
///
/// The ranges are validated but stay encoded; [`Ack::ranges`] decodes them lazily. To send an acknowledgment, use
/// [`AckReport`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    largest: PacketNumber,
    delay: VarInt,
    range_count: VarInt,
    first_range: VarInt,
    /// `range_count` encoded pairs of Gap and ACK Range Length, none of which extends below packet number 0.
    ranges: &'a [u8],
    ecn: Option<EcnCounts>,
}

/// The number of packets received in a packet number space with each ECN codepoint (RFC 9000 §19.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// Packets marked ECT(0).
    pub ect0: VarInt,
    /// Packets marked ECT(1).
    pub ect1: VarInt,
    /// Packets marked ECN-CE.
    pub ce: VarInt,
}

impl<'a> Ack<'a> {
    /// The largest packet number acknowledged.
    pub const fn largest(&self) -> PacketNumber {
        self.largest
    }

    /// ACK Delay: how long the peer delayed the acknowledgment of the largest packet, in units of
    /// 2^`ack_delay_exponent` microseconds. Meaningless in Initial and Handshake packets.
    pub const fn delay(&self) -> VarInt {
        self.delay
    }

    /// The ECN counts, if this is an `ACK_ECN` frame.
    pub const fn ecn(&self) -> Option<EcnCounts> {
        self.ecn
    }

    /// The ranges of acknowledged packet numbers in descending order. They neither overlap nor touch.
    pub fn ranges(&self) -> AckRanges<'a> {
        let smallest = self.largest.get().saturating_sub(self.first_range.get());
        AckRanges {
            first: Some(self.largest),
            smallest,
            encoded: Reader::new(self.ranges),
        }
    }

    pub(super) fn decode(
        reader: &mut Reader<'a>,
        frame_type: FrameType,
    ) -> Result<Self, FrameErrorKind> {
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let range_count = reader.varint()?;
        let first_range = reader.varint()?;
        let mut smallest = below(largest.get(), first_range.get())?;
        let encoded = reader.rest();
        let start = reader.position();
        for _ in 0..range_count.get() {
            let gap = reader.varint()?;
            let len = reader.varint()?;
            smallest = below(below(smallest, gap.get() + 2)?, len.get())?;
        }
        let ranges = encoded.get(..reader.position() - start).unwrap_or_default();
        let ecn = if frame_type == FrameType::ACK_ECN {
            Some(EcnCounts::decode(reader)?)
        } else {
            None
        };
        Ok(Self {
            largest: largest.into(),
            delay,
            range_count,
            first_range,
            ranges,
            ecn,
        })
    }

    pub(super) const fn frame_type(&self) -> FrameType {
        frame_type(self.ecn)
    }
}

/// `number` − `distance`, which must not be negative (RFC 9000 §19.3.1).
fn below(number: u64, distance: u64) -> Result<u64, FrameErrorKind> {
    number
        .checked_sub(distance)
        .ok_or(FrameErrorKind::AckRangeBelowZero)
}

const fn frame_type(ecn: Option<EcnCounts>) -> FrameType {
    match ecn {
        Some(_) => FrameType::ACK_ECN,
        None => FrameType::ACK,
    }
}

impl EcnCounts {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, FrameErrorKind> {
        Ok(Self {
            ect0: reader.varint()?,
            ect1: reader.varint()?,
            ce: reader.varint()?,
        })
    }

    fn encoded_len(self) -> usize {
        self.ect0.encoded_len() + self.ect1.encoded_len() + self.ce.encoded_len()
    }

    fn encode(self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.varint(self.ect0)?;
        writer.varint(self.ect1)?;
        writer.varint(self.ce)
    }
}

impl Encode for Ack<'_> {
    fn encoded_len(&self) -> usize {
        // The ranges keep their original encoding; the other fields are encoded in their shortest form.
        self.frame_type().encoded_len()
            + VarInt::from(self.largest).encoded_len()
            + self.delay.encoded_len()
            + self.range_count.encoded_len()
            + self.first_range.encoded_len()
            + self.ranges.len()
            + self.ecn.map_or(0, EcnCounts::encoded_len)
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            self.frame_type().encode(writer)?;
            writer.varint(self.largest.into())?;
            writer.varint(self.delay)?;
            writer.varint(self.range_count)?;
            writer.varint(self.first_range)?;
            writer.bytes(self.ranges)?;
            self.ecn.map_or(Ok(()), |ecn| ecn.encode(writer))
        })
    }
}

/// An iterator over the ranges of an [`Ack`] in descending order.
#[derive(Clone, Debug)]
pub struct AckRanges<'a> {
    /// The largest number of the first range, until that range has been returned.
    first: Option<PacketNumber>,
    /// The smallest number of the range returned last, or of the first range.
    smallest: u64,
    encoded: Reader<'a>,
}

impl<'a> AckRanges<'a> {
    /// The ranges behind the one returned last, or behind the first: encoded pairs of Gap and ACK Range Length.
    pub fn encoded(&self) -> &'a [u8] {
        self.encoded.rest()
    }
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<PacketNumber>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let largest = if let Some(largest) = self.first.take() {
            largest
        } else {
            let gap = self.encoded.varint().ok()?;
            let len = self.encoded.varint().ok()?;
            let largest = self.smallest.checked_sub(gap.get() + 2)?;
            self.smallest = largest.checked_sub(len.get())?;
            PacketNumber::new(largest)?
        };
        Some(PacketNumber::new(self.smallest)?..=largest)
    }
}

impl core::iter::FusedIterator for AckRanges<'_> {}
