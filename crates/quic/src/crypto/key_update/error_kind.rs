//! Errors of key updates by the peer or by this side (RFC 9001 §6).

use lastbyte_congestion::Time;

/// A violation of the key update rules by the peer (RFC 9001 §6): a `KEY_UPDATE_ERROR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyUpdateErrorKind {
    /// It updated again before it could know that we had followed (§6.2).
    #[error("the peer updated keys twice without awaiting confirmation")]
    Consecutive,
    /// It used old keys in a packet sent after one with newer keys (§6.4).
    #[error("the peer used old keys in a packet after one with newer keys")]
    OldKeys,
    /// It acknowledged a packet with newer keys in one with old keys (§6.2).
    #[error("the peer acknowledged a packet with newer keys in one with old keys")]
    AcknowledgedWithOldKeys,
}

/// Why keys cannot be updated now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoUpdate {
    /// The handshake is not confirmed (RFC 9001 §6).
    #[error("the handshake is not confirmed")]
    Unconfirmed,
    /// No packet of this generation has been acknowledged (§6.1).
    #[error("no packet with these keys has been acknowledged")]
    Unacknowledged,
    /// The last update was too recent (§6.5).
    #[error("the last key update is too recent, until {0:?}")]
    TooSoon(Time),
}
