//! Counters of a connection.

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests received or sent.
    pub requests: u64,
    /// Final responses received or sent.
    pub responses: u64,
    /// Messages that were not completed.
    pub resets: u64,
    /// Of those, requests that a server cancelled because their clients were too slow.
    pub stalled: u64,
    /// Encoded size of field sections sent, in bytes.
    pub sections_sent: u64,
    /// The same uncompressed, with 32 bytes added per field (RFC 9114 §4.2.2).
    pub text_sent: u64,
    /// Encoded size of field sections received, in bytes.
    pub sections_received: u64,
    /// The same uncompressed, with 32 bytes added per field (RFC 9114 §4.2.2).
    pub text_received: u64,
    /// Received sections that were blocked on the QPACK encoder stream.
    pub blocked: u64,
}
