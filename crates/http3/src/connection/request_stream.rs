//! One request and its response (RFC 9114 §4.1): one message received and one sent.

use super::{receiving::Receiving, sending::Sending, stalls::Marks};
use crate::{Code, Priority};

/// A request stream.
#[derive(Debug, Default)]
pub(super) struct RequestStream {
    pub(super) receiving: Receiving,
    pub(super) sending: Sending,
    /// Of the response.
    pub(super) priority: Priority,
    /// Whether the application does not know of this stream.
    pub(super) is_hidden: bool,
    /// Whether the request came while no other was in progress, and some time after the response before it.
    pub(super) is_sparse: bool,
    /// The code with which the peer stopped our message, until the application learns of it.
    pub(super) stopped: Option<Code>,
    /// Whether it was counted as cancelled.
    pub(super) is_counted: bool,
    /// The progress of its bodies at the last check.
    pub(super) marks: Marks,
}

impl RequestStream {
    /// Whether the stream is finished.
    pub(super) fn is_over(&self) -> bool {
        self.receiving.is_over() && self.sending.is_over()
    }
}
