//! Entity tags and dates (RFC 9110 §5.6.7, §8.8).

use std::{
    fmt,
    time::{Duration, UNIX_EPOCH},
};

/// An entity tag (§8.8.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityTag {
    is_weak: bool,
    /// Without the quotes.
    opaque: String,
}

impl EntityTag {
    /// A tag that changes whenever a byte does. Characters that a tag must not contain are omitted.
    #[must_use]
    pub fn strong(opaque: &str) -> Self {
        let is_allowed = |c: &char| matches!(*c, '!' | '#'..='~') || *c > '\u{7f}';
        Self {
            is_weak: false,
            opaque: opaque.chars().filter(is_allowed).collect(),
        }
    }

    /// A tag that may stay the same although bytes change.
    #[must_use]
    pub fn weak(opaque: &str) -> Self {
        Self {
            is_weak: true,
            ..Self::strong(opaque)
        }
    }

    /// Strong comparison (§8.8.3.2).
    pub fn matches_strongly(&self, other: &Self) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// Weak comparison.
    pub fn matches_weakly(&self, other: &Self) -> bool {
        self.opaque == other.opaque
    }

    /// The most tags in a list.
    pub const LIST_MAX: usize = 100;

    /// A list of tags: `"a", W/"b"`. `None` if it is invalid, or has more than [`EntityTag::LIST_MAX`]: over HTTP/2 and 3, a
    /// request of 84 bytes can refer to 15,000.
    pub fn parse_list(text: &[u8]) -> Option<Vec<Self>> {
        let mut rest = std::str::from_utf8(text).ok()?;
        let mut tags = Vec::new();
        loop {
            // Empty elements must be accepted (§5.6.1.2).
            rest = rest.trim_start_matches([' ', '\t', ',']);
            if rest.is_empty() {
                return Some(tags);
            }
            let (tag, behind) = Self::parse(rest).filter(|_| tags.len() < Self::LIST_MAX)?;
            tags.push(tag);
            rest = behind.trim_start_matches([' ', '\t']);
            if !rest.is_empty() && !rest.starts_with(',') {
                return None;
            }
        }
    }

    /// A tag at the start of a text, and the rest.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (is_weak, quoted) = match text.strip_prefix("W/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (opaque, rest) = quoted.strip_prefix('"')?.split_once('"')?;
        let tag = Self {
            is_weak,
            opaque: opaque.to_owned(),
        };
        Some((tag, rest))
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = if self.is_weak { "W/" } else { "" };
        write!(f, "{prefix}\"{}\"", self.opaque)
    }
}

/// The latest date with a year of four digits, as the format requires.
const DATE_MAX: Duration = Duration::from_secs(253_402_300_799);

/// Formats a time since the Unix epoch as an HTTP date (§5.6.7).
pub fn http_date(since_epoch: Duration) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + since_epoch.min(DATE_MAX))
}

/// Parses a date in any of the three formats, to seconds since the Unix epoch.
pub fn parse_date(text: &[u8]) -> Option<u64> {
    let date = httpdate::parse_http_date(std::str::from_utf8(text).ok()?.trim()).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}
