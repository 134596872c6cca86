//! One request and its response (RFC 9114 §4.1): a message that is received, and one that is sent.

use super::{receiving::Receiving, sending::Sending, stalls::Marks};
use crate::Priority;

/// A request stream.
#[derive(Debug, Default)]
pub(super) struct RequestStream {
    pub(super) receiving: Receiving,
    pub(super) sending: Sending,
    /// Of the response.
    pub(super) priority: Priority,
    /// Whether the application knows nothing of this stream.
    pub(super) is_hidden: bool,
    /// Whether it was counted as given up.
    pub(super) is_counted: bool,
    /// The progress of its bodies when that was last checked.
    pub(super) marks: Marks,
}

impl RequestStream {
    /// Whether nothing will happen any more.
    pub(super) fn is_over(&self) -> bool {
        self.receiving.is_over() && self.sending.is_over()
    }
}
