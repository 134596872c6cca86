//! Range requests (RFC 9110 §14.1, §14.2).
//!
//! A field that cannot be parsed is ignored: another unit, or an invalid set of ranges. So is one that requests more
//! than the representation: more than [`RANGES_MAX`] ranges, or overlapping ranges that together are longer than the
//! whole (§17.15).

use lastbyte_http3::Fields;

/// Maximum number of ranges in a response.
pub const RANGES_MAX: usize = 16;

/// Bytes from `first` to `last`, inclusive, of a representation that is longer than `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// The first offset.
    pub first: u64,
    /// The last offset.
    pub last: u64,
}

impl ByteRange {
    /// The number of bytes, at least one.
    pub const fn count(self) -> u64 {
        self.last - self.first + 1
    }

    /// The value of `content-range`, for a representation of this many bytes (§14.4).
    pub fn content_range(self, len: u64) -> String {
        format!("bytes {}-{}/{len}", self.first, self.last)
    }
}

/// The requested part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedRange {
    /// All of it.
    All,
    /// These ranges, at least one.
    Some(Vec<ByteRange>),
    /// Not satisfiable: 416.
    Nothing,
}

/// The requested part of a representation of this length.
pub fn requested(fields: &Fields, len: u64) -> RequestedRange {
    let mut lines = fields.get_all("range");
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return RequestedRange::All;
    };
    parse(line, len).unwrap_or(RequestedRange::All)
}

/// `None` if it cannot be parsed.
fn parse(line: &[u8], len: u64) -> Option<RequestedRange> {
    let (unit, set) = std::str::from_utf8(line).ok()?.split_once('=')?;
    // §14.1: units are case-insensitive.
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut ranges = Vec::new();
    let mut count = 0;
    for spec in set.split(',') {
        let spec = spec.trim_matches([' ', '\t']);
        if spec.is_empty() {
            continue;
        }
        count += 1;
        if count > RANGES_MAX {
            return None;
        }
        match range(spec, len) {
            Spec::Bytes(range) => ranges.push(range),
            Spec::Beyond => {}
            Spec::Nonsense => return None,
        }
    }
    if count == 0 {
        return None;
    }
    if ranges.is_empty() {
        return Some(RequestedRange::Nothing);
    }
    let total: u128 = ranges.iter().map(|range| u128::from(range.count())).sum();
    Some(if total > u128::from(len) {
        RequestedRange::All
    } else {
        RequestedRange::Some(ranges)
    })
}

/// One of a set of ranges.
enum Spec {
    Bytes(ByteRange),
    /// Not satisfiable.
    Beyond,
    /// Invalid.
    Nonsense,
}

fn range(spec: &str, len: u64) -> Spec {
    let Some((first, last)) = spec.split_once('-') else {
        return Spec::Nonsense;
    };
    if first.is_empty() {
        // A suffix. A 206 cannot describe a part of an empty representation: the response is 200.
        return match (number(last), len.checked_sub(1)) {
            (Some(0), _) => Spec::Beyond,
            (Some(count), Some(end)) => Spec::Bytes(ByteRange {
                first: len.saturating_sub(count),
                last: end,
            }),
            _ => Spec::Nonsense,
        };
    }
    let last = if last.is_empty() {
        Some(u64::MAX)
    } else {
        number(last)
    };
    match (number(first), last) {
        (Some(first), Some(last)) if first > last => Spec::Nonsense,
        (Some(first), Some(_)) if first >= len => Spec::Beyond,
        (Some(first), Some(last)) => Spec::Bytes(ByteRange {
            first,
            last: last.min(len - 1),
        }),
        _ => Spec::Nonsense,
    }
}

/// Any number of digits; values that are too large saturate.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}
