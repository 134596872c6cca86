//! The message sent on a request stream (RFC 9114 §4.1), as a state machine.
//!
//! ```text
//!   head ──── start ────▶ body ──── end ────▶ ended ──── acknowledged ────▶ over
//!    │                     │                    │                            ▲
//!    └─────────────────────┴────── give_up ─────┴────────────────────────────┘
//! ```

use crate::SendError;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_head_a_body_and_an_end() {
        let mut sending = Sending::default();
        assert_eq!(sending.check_head(), Ok(()));
        assert_eq!(sending.check_body(1), Err(SendError::OutOfOrder));
        assert_eq!(sending.check_end(), Err(SendError::OutOfOrder));
        sending.start_body(None);
        assert_eq!(sending.check_head(), Err(SendError::OutOfOrder));
        assert_eq!(sending.check_body(u64::MAX), Ok(()));
        sending.on_body(u64::MAX);
        assert_eq!(sending.check_end(), Ok(()));
        sending.end();
        assert_eq!(sending.check_body(0), Err(SendError::OutOfOrder));
        assert!(!sending.is_over());
        assert!(sending.finish() && sending.is_over());
    }

    #[test]
    fn rfc9114_4_1_2_the_body_length_must_match_content_length() {
        let mut sending = Sending::default();
        sending.start_body(Some(10));
        assert_eq!(sending.check_body(11), Err(SendError::ContentLength));
        assert_eq!(sending.check_body(10), Ok(()));
        sending.on_body(4);
        assert_eq!(sending.check_body(7), Err(SendError::ContentLength));
        assert_eq!(sending.check_end(), Err(SendError::ContentLength));
        sending.on_body(6);
        assert_eq!(sending.check_end(), Ok(()));
    }

    #[test]
    fn a_finished_message_accepts_no_writes_and_finishes_once() {
        let mut sending = Sending::default();
        assert!(sending.finish());
        assert!(!sending.finish());
        assert_eq!(sending.check_head(), Err(SendError::UnknownStream));
        assert_eq!(sending.check_body(0), Err(SendError::UnknownStream));
        assert_eq!(sending.check_end(), Err(SendError::UnknownStream));
    }
}
