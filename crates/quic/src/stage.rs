//! Handshake stages (RFC 9001 §4.1).

/// The stage of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// In progress.
    Handshaking,
    /// Complete on this side (§4.1.1).
    Complete,
    /// Known to be complete on both sides (§4.1.2).
    Confirmed,
}
