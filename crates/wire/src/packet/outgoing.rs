//! Construction of outgoing packets, from the header to header protection.

use super::{
    HeaderMask, SAMPLE_LEN, TruncatedPacketNumber,
    protected::{SEALED_LEN_MIN, mask, sample},
};
use crate::{BufferFull, Writer};

#[cfg(test)]
mod tests;

/// A packet whose header has been written and whose frames are being written. All offsets are positions of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "call `finish` to complete the packet"]
pub struct PacketBuilder {
    start: usize,
    /// The offset of the Length field, in long headers.
    length_offset: Option<usize>,
    number_offset: usize,
    pub(super) payload_offset: usize,
}

/// A complete packet, ready for AEAD encryption and header protection. All offsets are positions of the writer.
///
/// The AEAD authenticates `start..payload_offset`, encrypts `payload_offset..tag_offset` in place, and puts its tag at
/// `tag_offset..end` (RFC 9001 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedPacket {
    /// The start of the header.
    pub start: usize,
    /// The start of the packet number in the header.
    pub number_offset: usize,
    /// The end of the header and start of the payload.
    pub payload_offset: usize,
    /// The end of the payload and start of the AEAD tag.
    pub tag_offset: usize,
    /// The end of the packet.
    pub end: usize,
}

/// The largest variable-length integer that fits in two bytes (RFC 9000 §16).
const TWO_BYTES_MAX: usize = (1 << 14) - 1;

impl PacketBuilder {
    /// Writes the packet number after the other fields of the header.
    pub(super) fn begin(
        writer: &mut Writer<'_>,
        start: usize,
        length_offset: Option<usize>,
        number: TruncatedPacketNumber,
    ) -> Result<Self, BufferFull> {
        let number_offset = writer.position();
        number.encode(writer)?;
        Ok(Self {
            start,
            length_offset,
            number_offset,
            payload_offset: writer.position(),
        })
    }

    /// Completes the packet: pads the payload if it is too short for a header protection sample (RFC 9001 §5.4.2),
    /// reserves space for the AEAD tag, and fills in the Length field.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if padding and tag do not fit, or if the length of a long header packet exceeds 16383,
    /// the maximum for its two-byte field. The position of the writer does not change.
    #[inline]
    pub fn finish(
        self,
        writer: &mut Writer<'_>,
        tag_len: usize,
    ) -> Result<FinishedPacket, BufferFull> {
        writer.atomically(|writer| {
            let sealed_len = writer.position().saturating_sub(self.number_offset) + tag_len;
            writer.zeros(SEALED_LEN_MIN.saturating_sub(sealed_len))?;
            let tag_offset = writer.position();
            writer.reserve(tag_len)?;
            let end = writer.position();
            if let Some(length_offset) = self.length_offset {
                let length = end.saturating_sub(self.number_offset);
                if length > TWO_BYTES_MAX {
                    return Err(BufferFull);
                }
                writer.overwrite(length_offset, &(0x4000 | length as u16).to_be_bytes())?;
            }
            Ok(FinishedPacket {
                start: self.start,
                number_offset: self.number_offset,
                payload_offset: self.payload_offset,
                tag_offset,
                end,
            })
        })
    }
}

impl FinishedPacket {
    /// The header protection sample (RFC 9001 §5.4.2), after the payload in `written` has been encrypted. Returns
    /// `None` if the packet is not within `written`.
    pub fn sample(&self, written: &[u8]) -> Option<[u8; SAMPLE_LEN]> {
        sample(written.get(..self.end)?, self.number_offset)
    }

    /// Applies header protection (RFC 9001 §5.4.1). Returns `None` if the packet is not within `written`.
    #[inline]
    pub fn mask(&self, written: &mut [u8], header_mask: HeaderMask) -> Option<()> {
        let packet = written.get_mut(self.start..self.end)?;
        mask(
            packet,
            self.number_offset.checked_sub(self.start)?,
            header_mask,
        )
    }
}
