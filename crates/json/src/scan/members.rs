//! Walks the members of a row that follows no plan. Most keys and values fit into 64 bytes without escapes; then one look at
//! these bytes finds where both end. [`super::grammar`] handles everything else.

use super::grammar::{self, Kind, Next, Span};
use super::kernel::{Kernel, STRETCH, Stretch};

/// Receives members. A closure could not be forced to be inlined into code compiled for a certain CPU.
pub(super) trait Visit {
    /// The places of a key (without quotes) and of its value; whether the key is ASCII without escapes. Returns `false` to
    /// stop.
    fn member(&mut self, key: (usize, usize), plain_key: bool, value: Span) -> bool;
}

/// Ignores members, to check only that the line is JSON.
impl Visit for () {
    #[inline(always)]
    fn member(&mut self, _: (usize, usize), _: bool, _: Span) -> bool {
        true
    }
}

/// Passes the members from an offset between two of them, or from the start of the row, to `visit`. Returns the offset of
/// the next line; `None` if the rest of the line is not JSON or `visit` ends the walk, which invalidates the members seen.
#[inline(always)]
pub(super) fn walk(
    kernel: impl Kernel,
    bytes: &[u8],
    start: usize,
    first: bool,
    visit: &mut impl Visit,
) -> Option<usize> {
    let mut at = start;
    let mut sign = if first { b'{' } else { b',' };
    loop {
        while let Some(stretch) = bytes.get(at..).and_then(<[u8]>::first_chunk)
            && let Some((key_end, value)) = usual(kernel, stretch, sign)
        {
            let value = Span {
                start: at + value.start,
                end: at + value.end,
                kind: value.kind,
            };
            if !visit.member((at + 2, at + key_end), true, value) {
                return None;
            }
            at = value.end;
            sign = b',';
        }
        match grammar::next(kernel, bytes, at, sign == b'{')? {
            Next::Member(member) => {
                if !visit.member(member.key, member.plain_key, member.value) {
                    return None;
                }
                at = member.value.end;
                sign = b',';
            }
            Next::End(end) => return Some(end),
        }
    }
}

/// The end of the key, and the value, if the stretch starts with `sign` and the value is digits or a plain string before the
/// next comma.
#[inline(always)]
fn usual(kernel: impl Kernel, stretch: &Stretch, sign: u8) -> Option<(usize, Span)> {
    // An offset past the end wraps around to a byte that cannot match.
    let byte = |at: usize| stretch[at % STRETCH];
    let marks = kernel.marks(stretch);
    let key_end = (marks.specials & !0b11).trailing_zeros() as usize;
    // A colon and a value's first byte come after it.
    if byte(0) != sign || byte(1) != b'"' || key_end > STRETCH - 3 {
        return None;
    }
    if byte(key_end) != b'"' || byte(key_end + 1) != b':' {
        return None;
    }
    let start = key_end + 2;
    let digits = (!marks.digits >> start).trailing_zeros() as usize;
    let (end, kind) = if digits > 0 {
        // A zero stands alone, or not first.
        if byte(start) == b'0' && digits > 1 {
            return None;
        }
        (start + digits, Kind::Digits)
    } else {
        let text = u64::MAX << start << 1;
        let close = (marks.specials & text).trailing_zeros() as usize;
        if byte(start) != b'"' || byte(close) != b'"' {
            return None;
        }
        (close + 1, Kind::Plain)
    };
    (end < STRETCH && byte(end) == b',').then_some((key_end, Span { start, end, kind }))
}

#[cfg(test)]
mod tests;
