//! Bodies that consist of ranges (RFC 9110 §14.6, §15.3.7).
//!
//! Owns the mapping from offsets in the body to ranges. Nothing is copied before it is sent.

use lastbyte_quic::stream::{Source, SourceError};
use lastbyte_wire::VarInt;

use super::range::ByteRange;

/// Ranges of a source, and text between them.
pub struct Assembly {
    source: Box<dyn Source>,
    /// The offset in the body at which each starts, ascending.
    segments: Vec<(u64, Segment)>,
    len: u64,
}

enum Segment {
    Text(Vec<u8>),
    /// The source, from this offset on.
    Range(u64),
}

impl Assembly {
    /// One range.
    #[must_use]
    pub fn slice(source: Box<dyn Source>, range: ByteRange) -> Self {
        Self {
            source,
            segments: vec![(0, Segment::Range(range.first))],
            len: range.count(),
        }
    }

    /// Several ranges, as `multipart/byteranges`.
    #[must_use]
    pub fn parts(
        source: Box<dyn Source>,
        ranges: &[ByteRange],
        content_type: &str,
        boundary: &str,
    ) -> Self {
        let whole = source.len();
        let mut segments = Vec::new();
        let mut len = 0;
        for (index, range) in ranges.iter().enumerate() {
            let start = if index == 0 { "" } else { "\r\n" };
            let content_range = range.content_range(whole);
            let head = format!(
                "{start}--{boundary}\r\ncontent-type: {content_type}\r\ncontent-range: {content_range}\r\n\r\n"
            );
            let head_len = head.len() as u64;
            segments.push((len, Segment::Text(head.into_bytes())));
            segments.push((len + head_len, Segment::Range(range.first)));
            len += head_len + range.count();
        }
        let end = format!("\r\n--{boundary}--\r\n").into_bytes();
        let end_len = end.len() as u64;
        segments.push((len, Segment::Text(end)));
        Self {
            source,
            segments,
            len: len + end_len,
        }
    }
}

/// Never used: nothing is read beyond the end.
const OUT_OF_PLACE: SourceError = SourceError { code: VarInt::ZERO };

impl Source for Assembly {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let mut offset = offset;
        let mut rest = buffer;
        let behind = |offset: u64| self.segments.partition_point(|(start, _)| *start <= offset);
        while !rest.is_empty() {
            let next = behind(offset);
            let (start, segment) = next
                .checked_sub(1)
                .and_then(|index| self.segments.get(index))
                .ok_or(OUT_OF_PLACE)?;
            let end = self.segments.get(next).map_or(self.len, |(end, _)| *end);
            let left = end.checked_sub(offset).filter(|left| *left > 0);
            let left = usize::try_from(left.ok_or(OUT_OF_PLACE)?).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at_mut(left.min(rest.len()));
            let within = offset - start;
            match segment {
                Segment::Text(text) => {
                    let from = usize::try_from(within).unwrap_or(usize::MAX);
                    let text = text.get(from..).and_then(|text| text.get(..now.len()));
                    now.copy_from_slice(text.ok_or(OUT_OF_PLACE)?);
                }
                Segment::Range(first) => self.source.read_at(first + within, now)?,
            }
            offset += now.len() as u64;
            rest = later;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Assembly")
            .field("len", &self.len)
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}
