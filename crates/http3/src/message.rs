//! Messages: their headers, and the rules of well-formed messages (RFC 9114 §4).
//!
//! | file | owns |
//! |---|---|
//! | `request`, `response` | headers as applications see them |
//! | `check` | validity of received and outgoing headers |
//! | `target` | request targets |
//! | `text` | bytes permitted in names and values |

pub(crate) mod check;
mod request;
mod response;
pub mod target;
pub(crate) mod text;

pub use request::Request;
pub use response::Response;

use crate::{Fields, Priority};

/// The content after the header of a message.
#[derive(Default)]
pub enum Body {
    /// Nothing: the message ends with its header.
    #[default]
    Empty,
    /// All of a source, and then the message ends. It is read when packets are filled, and never held in memory.
    Source(Box<dyn lastbyte_quic::stream::Source>),
    /// What the application passes to [`Connection::write`](crate::Connection::write), until
    /// [`Connection::finish`](crate::Connection::finish) or [`Connection::trailers`](crate::Connection::trailers).
    Follows,
}

impl core::fmt::Debug for Body {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Source(source) => write!(f, "Source({} bytes)", source.len()),
            Self::Follows => f.write_str("Follows"),
        }
    }
}

/// The positions of a request's pseudo-headers among its lines (RFC 9114 §4.3.1), counted from 1; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PseudoHeaders {
    at: [u8; 5],
    count: u8,
}

const NAMES: [&str; 5] = [":method", ":scheme", ":authority", ":path", ":protocol"];

impl PseudoHeaders {
    /// The next line has this name. Returns whether it is permitted: known, and not repeated.
    pub(crate) fn note(&mut self, name: &[u8]) -> bool {
        self.count += 1;
        let count = self.count;
        NAMES
            .iter()
            .position(|known| known.as_bytes() == name)
            .and_then(|which| self.at.get_mut(which))
            .filter(|at| **at == 0)
            .map(|at| *at = count)
            .is_some()
    }

    pub(crate) const fn count(self) -> u8 {
        self.count
    }

    /// The value of one of [`NAMES`], by its index.
    pub(crate) fn value(self, which: usize, fields: &Fields) -> Option<&[u8]> {
        let index = self.at.get(which)?.checked_sub(1)?;
        Some(fields.line(index)?.value)
    }

    fn of(self, which: usize, fields: &Fields) -> Option<&str> {
        core::str::from_utf8(self.value(which, fields)?).ok()
    }

    pub(crate) fn method(self, fields: &Fields) -> Option<&str> {
        self.of(0, fields)
    }

    pub(crate) fn scheme(self, fields: &Fields) -> Option<&str> {
        self.of(1, fields)
    }

    pub(crate) fn authority(self, fields: &Fields) -> Option<&str> {
        self.of(2, fields)
    }

    pub(crate) fn path(self, fields: &Fields) -> Option<&str> {
        self.of(3, fields)
    }

    pub(crate) fn protocol(self, fields: &Fields) -> Option<&str> {
        self.of(4, fields)
    }
}

/// The priority in the `priority` field; `otherwise` provides omitted parameters (RFC 9218 §5, §8).
pub(crate) fn priority_of(fields: &Fields, otherwise: Priority) -> Priority {
    let mut lines = fields.get_all("priority");
    let Some(first) = lines.next() else {
        return otherwise;
    };
    if lines.next().is_none() {
        return otherwise.updated(first);
    }
    // RFC 8941 §4.2: several lines are joined with commas.
    let mut joined = Vec::new();
    fields.join("priority", ", ", &mut joined);
    otherwise.updated(&joined)
}

#[cfg(test)]
mod tests;
