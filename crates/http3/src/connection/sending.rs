//! The message sent on a request stream (RFC 9114 §4.1), as a state machine.
//!
//! ```text
//!   head ──── start ────▶ body ──── end ────▶ ended ──── acknowledged ────▶ over
//!    │                     │                    │                            ▲
//!    └─────────────────────┴────── give_up ─────┴────────────────────────────┘
//! ```

use crate::SendError;

#[cfg(test)]
mod tests;

/// The state of a message being sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sending {
    /// The header has not been sent.
    #[default]
    Head,
    /// The header has been sent; body, trailers or the end follow.
    Body {
        /// Remaining bytes of body, if `content-length` announced them.
        left: Option<u64>,
    },
    /// All of it was passed to the transport; not all is acknowledged.
    Ended,
    /// Acknowledged or cancelled.
    Over,
}

impl Sending {
    /// Whether the message is finished.
    pub(super) fn is_over(self) -> bool {
        self == Self::Over
    }

    /// Whether a header may be sent.
    pub(super) fn check_head(self) -> Result<(), SendError> {
        match self {
            Self::Head => Ok(()),
            Self::Over => Err(SendError::UnknownStream),
            Self::Body { .. } | Self::Ended => Err(SendError::OutOfOrder),
        }
    }

    /// The header was sent, and a body of `content_length` bytes follows.
    pub(super) const fn start_body(&mut self, content_length: Option<u64>) {
        *self = Self::Body {
            left: content_length,
        };
    }

    /// Whether `len` bytes of body may be sent.
    pub(super) fn check_body(self, len: u64) -> Result<(), SendError> {
        match self {
            Self::Body { left } if left.is_some_and(|left| left < len) => {
                Err(SendError::ContentLength)
            }
            Self::Body { .. } => Ok(()),
            Self::Over => Err(SendError::UnknownStream),
            Self::Head | Self::Ended => Err(SendError::OutOfOrder),
        }
    }

    /// Bytes of body were sent, as permitted by [`Sending::check_body`].
    pub(super) const fn on_body(&mut self, len: u64) {
        if let Self::Body { left: Some(left) } = self {
            *left -= len;
        }
    }

    /// Whether the message may end: no announced body data is missing.
    pub(super) fn check_end(self) -> Result<(), SendError> {
        self.check_body(0)?;
        match self {
            Self::Body { left: Some(1..) } => Err(SendError::ContentLength),
            _ => Ok(()),
        }
    }

    /// The end was sent.
    pub(super) const fn end(&mut self) {
        *self = Self::Ended;
    }

    /// The message was cancelled, or all of it is acknowledged. Returns whether this is new.
    pub(super) fn finish(&mut self) -> bool {
        std::mem::replace(self, Self::Over) != Self::Over
    }
}
