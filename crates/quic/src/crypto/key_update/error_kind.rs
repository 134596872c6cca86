//! Errors of key updates by the peer or by this side (RFC 9001 §6).

use std::fmt;

use lastbyte_congestion::Time;

/// A violation of the key update rules by the peer (RFC 9001 §6): a `KEY_UPDATE_ERROR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUpdateErrorKind {
    /// It updated again before it could know that we had followed (§6.2).
    Consecutive,
    /// It used old keys in a packet sent after one with newer keys (§6.4).
    OldKeys,
    /// It acknowledged a packet with newer keys in one with old keys (§6.2).
    AcknowledgedWithOldKeys,
}

impl fmt::Display for KeyUpdateErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Consecutive => "the peer updated keys twice without awaiting confirmation",
            Self::OldKeys => "the peer used old keys in a packet after one with newer keys",
            Self::AcknowledgedWithOldKeys => {
                "the peer acknowledged a packet with newer keys in one with old keys"
            }
        })
    }
}

impl std::error::Error for KeyUpdateErrorKind {}

/// Why keys cannot be updated now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoUpdate {
    /// The handshake is not confirmed (RFC 9001 §6).
    Unconfirmed,
    /// No packet of this generation has been acknowledged (§6.1).
    Unacknowledged,
    /// The last update was too recent (§6.5).
    TooSoon(Time),
}

impl fmt::Display for NoUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unconfirmed => f.write_str("the handshake is not confirmed"),
            Self::Unacknowledged => f.write_str("no packet with these keys has been acknowledged"),
            Self::TooSoon(until) => write!(f, "the last key update is too recent, until {until:?}"),
        }
    }
}

impl std::error::Error for NoUpdate {}
