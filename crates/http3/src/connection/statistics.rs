//! What has been counted.

/// What has been counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests received or sent.
    pub requests: u64,
    /// Final responses received or sent.
    pub responses: u64,
    /// Messages that came to no end.
    pub resets: u64,
    /// Of those, requests that a server gave up since their clients were too slow.
    pub stalled: u64,
    /// Bytes of field sections sent, as they were encoded.
    pub sections_sent: u64,
    /// The same as text, with the 32 bytes a field that limits count.
    pub text_sent: u64,
    /// Bytes of field sections received, as they were encoded.
    pub sections_received: u64,
    /// The same as text, with the 32 bytes a field that limits count.
    pub text_received: u64,
    /// Received sections that had to wait for the QPACK encoder stream.
    pub blocked: u64,
}
