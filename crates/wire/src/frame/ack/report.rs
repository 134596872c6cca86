//! Encoding of ACK frames from an iterator over ranges.

use core::ops::RangeInclusive;

use super::{EcnCounts, frame_type};
use crate::{BufferFull, VarInt, Writer, packet::PacketNumber};

/// An acknowledgment to be sent (RFC 9000 §19.3).
///
/// `ranges` yields the received packet numbers as ranges in descending order, with a gap of at least one number between
/// any two. It is iterated twice if not all ranges are sure to fit: once to determine how many do, once to write them.
///
/// ```
/// use lastbyte_wire::{VarInt, Writer, frame::AckReport, packet::PacketNumber};
///
/// let received = [8..=9, 3..=5].map(|range: std::ops::RangeInclusive<u32>| {
///     PacketNumber::from(*range.start())..=PacketNumber::from(*range.end())
/// });
/// let report = AckReport { ranges: received.into_iter(), delay: VarInt::from_u32(25), ecn: None };
/// let mut packet = [0; 16];
/// let mut writer = Writer::new(&mut packet);
/// assert_eq!(report.encode(&mut writer, 16, usize::MAX), Ok(2));
/// assert_eq!(writer.written(), [0x02, 9, 25, 1, 1, 1, 2]);
/// ```
#[derive(Clone, Debug)]
pub struct AckReport<I> {
    /// The ranges in descending order.
    pub ranges: I,
    /// The delay between receiving the largest packet and sending this acknowledgment, in units of
    /// 2^`ack_delay_exponent` microseconds.
    pub delay: VarInt,
    /// The ECN counts of the packet number space, if available.
    pub ecn: Option<EcnCounts>,
}

/// The size of the encoded frame.
#[derive(Clone, Copy)]
struct Extent {
    /// ACK Range Count: the number of ranges after the first.
    range_count: usize,
    len: usize,
}

impl<I: ExactSizeIterator<Item = RangeInclusive<PacketNumber>> + Clone> AckReport<I> {
    /// Writes an ACK frame of at most `bytes_max` bytes and at most `ranges_max` ranges. The ranges with the smallest
    /// packet numbers are omitted if not all fit. Returns the number of ranges written. If there are no ranges, nothing
    /// is written.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if not even the first range fits.
    pub fn encode(
        &self,
        writer: &mut Writer<'_>,
        bytes_max: usize,
        ranges_max: usize,
    ) -> Result<usize, BufferFull> {
        let Some(first) = self.ranges.clone().next() else {
            return Ok(0);
        };
        let bytes_max = bytes_max.min(writer.remaining());
        let count = self.ranges.len().min(ranges_max).saturating_sub(1);
        let range_count = if ranges_max > 0 && LEN_MAX + count * PAIR_LEN_MAX <= bytes_max {
            // All fit, however long their numbers are.
            count
        } else {
            let extent = self.extent(bytes_max, ranges_max).ok_or(BufferFull)?;
            extent.range_count
        };
        writer.atomically(|writer| {
            frame_type(self.ecn).encode(writer)?;
            writer.varint((*first.end()).into())?;
            writer.varint(self.delay)?;
            writer.varint(VarInt::try_from(range_count).map_err(|_| BufferFull)?)?;
            writer.varint(len_of(&first))?;
            let mut pairs = self.pairs();
            for _ in 0..range_count {
                // Ranges that are not in descending order are a caller's mistake, and give no frame.
                let (gap, len) = pairs.next().ok_or(BufferFull)?;
                writer.varint(gap)?;
                writer.varint(len)?;
            }
            self.ecn.map_or(Ok(()), |ecn| ecn.encode(writer))
        })?;
        Ok(range_count + 1)
    }

    /// The largest frame within both limits, or `None` if not even one range fits.
    fn extent(&self, bytes_max: usize, ranges_max: usize) -> Option<Extent> {
        let first = self.ranges.clone().next()?;
        let fixed_len = frame_type(self.ecn).encoded_len()
            + VarInt::from(*first.end()).encoded_len()
            + self.delay.encoded_len()
            + len_of(&first).encoded_len()
            + self.ecn.map_or(0, EcnCounts::encoded_len);
        let with_count = |range_count: usize, pairs_len: usize| Extent {
            range_count,
            len: fixed_len + crate::varint::encoded_len_usize(range_count) + pairs_len,
        };
        let fits = |extent: &Extent| extent.len <= bytes_max;
        let mut best = Some(with_count(0, 0))
            .filter(fits)
            .filter(|_| ranges_max > 0)?;
        let mut pairs_len = 0;
        for (index, (gap, len)) in self.pairs().take(ranges_max - 1).enumerate() {
            pairs_len += gap.encoded_len() + len.encoded_len();
            let Some(longer) = Some(with_count(index + 1, pairs_len)).filter(fits) else {
                break;
            };
            best = longer;
        }
        Some(best)
    }

    /// Gap and ACK Range Length of all ranges but the first (RFC 9000 §19.3.1). Stops at the first range that violates
    /// the ordering.
    fn pairs(&self) -> impl Iterator<Item = (VarInt, VarInt)> {
        let mut ranges = self.ranges.clone();
        let mut smallest = ranges.next().map_or(0, |first| first.start().get());
        ranges.map_while(move |range| {
            let gap = smallest
                .checked_sub(range.end().get())
                .and_then(|distance| distance.checked_sub(2));
            debug_assert!(
                gap.is_some() && range.start() <= range.end(),
                "ranges must be in descending order with gaps between them"
            );
            smallest = range.start().get();
            Some((VarInt::new(gap?)?, len_of(&range)))
        })
    }
}

/// ACK Range Length: the number of packet numbers in the range before the largest.
fn len_of(range: &RangeInclusive<PacketNumber>) -> VarInt {
    VarInt::saturating(range.end().get().saturating_sub(range.start().get()))
}

/// Upper bound of the length of a frame with one range: eight integers, of eight bytes at most.
const LEN_MAX: usize = 64;
/// Upper bound of the length of each further range.
const PAIR_LEN_MAX: usize = 16;
