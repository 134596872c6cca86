//! A batch of outgoing datagrams.

use crate::{NetworkPath, ack::Ecn};

/// Outgoing datagrams: contiguous in the buffer, all of one size except the last, which may be shorter, as UDP
/// segmentation offload requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The source and destination addresses.
    pub path: NetworkPath,
    /// The ECN codepoint of each datagram.
    pub ecn: Ecn,
    /// Number of bytes used in the buffer.
    pub len: usize,
    /// Size in bytes of each datagram but the last.
    pub segment_len: usize,
}
