//! How far a handshake is (RFC 9001 §4.1).

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// In progress.
    Handshaking,
    /// Complete on this side (§4.1.1).
    Complete,
    /// Known to be complete on both sides (§4.1.2).
    Confirmed,
}
