//! Packets on their way out, from the header to the mask.

use super::{
    HeaderMask, SAMPLE_LEN, TruncatedPacketNumber,
    protected::{SEALED_LEN_MIN, mask, sample},
};
use crate::{BufferFull, Writer};

#[cfg(test)]
mod tests;

/// A packet whose header is written and whose frames are being written. All offsets are those of the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a packet has to be finished"]
pub struct OpenPacket {
    start: usize,
    /// Of a long header.
    length_offset: Option<usize>,
    number_offset: usize,
    payload_offset: usize,
}

/// A packet with all its parts at their place, to be sealed and then masked. All offsets are those of the writer.
///
/// The AEAD authenticates `start..payload_offset`, encrypts `payload_offset..tag_offset` in place, and puts its tag at
/// `tag_offset..end` (RFC 9001 §5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedPacket {
    /// Where the header begins.
    pub start: usize,
    /// Where in the header the packet number begins.
    pub number_offset: usize,
    /// Where the header ends and the payload begins.
    pub payload_offset: usize,
    /// Where the payload ends and the tag begins.
    pub tag_offset: usize,
    /// Where the packet ends.
    pub end: usize,
}

/// What two bytes of variable-length integer can say (RFC 9000 §16).
const TWO_BYTES_MAX: usize = (1 << 14) - 1;

impl OpenPacket {
    /// Everything but the packet number has been written.
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

    /// Where the packet begins: [`Writer::rewind`] to it gives the packet up.
    #[must_use]
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Where the first frame begins. A packet that has none yet must not be sent (RFC 9000 §12.4).
    #[must_use]
    pub const fn payload_offset(&self) -> usize {
        self.payload_offset
    }

    /// Ends the packet with what has been written: pads the payload where it is too short for a sample (RFC 9001
    /// §5.4.2), makes room for the AEAD's tag, and fills the length in.
    ///
    /// # Errors
    ///
    /// Padding and tag do not fit, or a long header's length does not fit its two bytes, being above 16383. The writer
    /// is where it was.
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
    /// What the header protection key makes the mask of (RFC 9001 §5.4.2), once the payload in `written` is sealed;
    /// `None` if that is not what the packet was written to.
    #[must_use]
    pub fn sample(&self, written: &[u8]) -> Option<[u8; SAMPLE_LEN]> {
        sample(written.get(..self.end)?, self.number_offset)
    }

    /// Puts the header protection on (RFC 9001 §5.4.1); `None` if `written` is not what the packet was written to.
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
