//! Integers that share their first byte with flags (RFC 9204 §4.1.1, RFC 7541 §5.1).

use lastbyte_wire::{Reader, UnexpectedEnd};

#[cfg(test)]
mod tests;

/// Why an integer cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerError {
    /// The input ends too early.
    Incomplete,
    /// It is above 2^62 − 1, which implementations need not decode.
    TooLarge,
}

impl From<UnexpectedEnd> for IntegerError {
    fn from(_: UnexpectedEnd) -> Self {
        Self::Incomplete
    }
}

/// Reads an integer with a prefix of `prefix` bits, 1 to 8. The other bits of the first byte are ignored.
#[inline]
pub(super) fn read(reader: &mut Reader<'_>, prefix: u32) -> Result<u64, IntegerError> {
    let mask = (1u64 << prefix) - 1;
    let first = u64::from(reader.u8()?) & mask;
    if first < mask {
        return Ok(first);
    }
    let mut value = mask;
    let mut shift = 0;
    loop {
        let byte = u64::from(reader.u8()?);
        // Nine bytes of seven bits are 63; a tenth byte could only be padding.
        if shift > 56 {
            return Err(IntegerError::TooLarge);
        }
        value = value
            .checked_add((byte & 0x7f) << shift)
            .filter(|value| *value < 1 << 62)
            .ok_or(IntegerError::TooLarge)?;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
        shift += 7;
    }
}

/// Appends an integer. `flags` are the bits of the first byte above the prefix.
#[inline]
pub(super) fn put(into: &mut Vec<u8>, flags: u8, prefix: u32, value: u64) {
    let mask = (1u64 << prefix) - 1;
    if value < mask {
        into.push(flags | value as u8);
        return;
    }
    into.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        into.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    into.push(rest as u8);
}
