//! Priorities (RFC 9218 §4, §5, §7).
//!
//! Owns the two parameters, their text form, and how client's and server's opinions are merged (§8). What they mean for
//! who sends next is the transport's scheduler's business.

use lastbyte_quic::stream;

#[cfg(test)]
mod tests;

/// How important a response is (RFC 9218 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 (first) to 7 (last). Default: 3 (§4.1).
    pub urgency: u8,
    /// Whether parts of the response are of use, so that it may share with others. Default: no (§4.2).
    pub is_incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: stream::Priority::URGENCY_DEFAULT,
            is_incremental: false,
        }
    }
}

impl Priority {
    /// As the transport's scheduler has it.
    #[must_use]
    pub const fn for_transport(self) -> stream::Priority {
        stream::Priority::new(self.urgency, self.is_incremental)
    }
}

impl Priority {
    /// The priority after this text; what it leaves out stays.
    pub(crate) fn updated(self, _text: &[u8]) -> Self {
        self
    }
}
