//! The anti-amplification limit: an address that is not validated may be sent three times the bytes received from it
//! (RFC 9000 §8.1).

/// Bytes that may be sent for each byte received (RFC 9000 §8.1).
const FACTOR: u64 = 3;

/// The anti-amplification limit of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amplification {
    /// `None` once the address is validated.
    credit: Option<u64>,
}

impl Amplification {
    /// An address that may be spoofed: nothing may be sent before something was received.
    #[must_use]
    pub const fn limited() -> Self {
        Self { credit: Some(0) }
    }

    /// An address that is known to be the peer's: a server's address for its client, or one with a valid token.
    #[must_use]
    pub const fn unlimited() -> Self {
        Self { credit: None }
    }

    /// A datagram was received from the address. All of it counts, whatever it contains.
    pub fn on_datagram_received(&mut self, bytes: u64) {
        if let Some(credit) = &mut self.credit {
            *credit = credit.saturating_add(bytes.saturating_mul(FACTOR));
        }
    }

    /// A datagram was sent to the address.
    pub fn on_datagram_sent(&mut self, bytes: u64) {
        if let Some(credit) = &mut self.credit {
            *credit = credit.saturating_sub(bytes);
        }
    }

    /// The address is validated: by a Handshake packet from it, a token, or a response to a challenge.
    pub fn validate(&mut self) {
        self.credit = None;
    }

    /// Whether the address is validated.
    pub const fn is_validated(&self) -> bool {
        self.credit.is_none()
    }

    /// Bytes that may be sent.
    pub fn budget(&self) -> u64 {
        self.credit.unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
