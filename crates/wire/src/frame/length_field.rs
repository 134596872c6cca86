//! The optional Length field of STREAM frames (RFC 9000 §19.8).

#[cfg(test)]
mod tests;

/// Whether a STREAM frame has a Length field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LengthField {
    /// The frame has a Length field, and other frames may follow it.
    Present,
    /// The frame has no Length field, and its data extends to the end of the packet. Saves one to eight bytes in the
    /// last frame.
    Absent,
}

impl LengthField {
    /// The maximum length of data that fits into `space` bytes together with the Length field.
    pub(super) fn data_len_max(self, space: usize) -> Option<usize> {
        const ENCODINGS: [(usize, u64); 4] = [
            (1, (1 << 6) - 1),
            (2, (1 << 14) - 1),
            (4, (1 << 30) - 1),
            (8, (1 << 62) - 1),
        ];
        match self {
            Self::Absent => Some(space),
            Self::Present => ENCODINGS
                .iter()
                .filter_map(|(len, value_max)| {
                    let value_max = usize::try_from(*value_max).unwrap_or(usize::MAX);
                    Some(space.checked_sub(*len)?.min(value_max))
                })
                .max(),
        }
    }

    /// The length in bytes of the Length field for `data_len` bytes of data.
    pub(super) const fn encoded_len(self, data_len: usize) -> usize {
        match self {
            Self::Present => crate::varint::encoded_len_usize(data_len),
            Self::Absent => 0,
        }
    }
}
