//! A batch of datagrams to be sent.

use crate::{NetworkPath, ack::EcnCodepoint};

/// Datagrams to be sent: those in the buffer, back to back, all of one size but the last, which may be shorter. That is
/// the shape of UDP segmentation offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The source and destination addresses.
    pub path: NetworkPath,
    /// The ECN codepoint of each datagram.
    pub ecn: EcnCodepoint,
    /// Bytes of the buffer that are filled.
    pub len: usize,
    /// Bytes of each datagram but the last.
    pub segment_len: usize,
}
