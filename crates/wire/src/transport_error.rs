//! Transport error codes (RFC 9000 §20.1).

use core::fmt;

use crate::VarInt;

#[cfg(test)]
mod tests;

/// Why a connection is closed, in the transport's own words (RFC 9000 §20.1).
///
/// Any code may arrive; those this crate has no name for are shown as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransportError(VarInt);

/// Names, in the order of their codes, from 0 on (RFC 9000 §20.1; the last is RFC 9368 §10.2).
const NAMES: [&str; 18] = [
    "NO_ERROR",
    "INTERNAL_ERROR",
    "CONNECTION_REFUSED",
    "FLOW_CONTROL_ERROR",
    "STREAM_LIMIT_ERROR",
    "STREAM_STATE_ERROR",
    "FINAL_SIZE_ERROR",
    "FRAME_ENCODING_ERROR",
    "TRANSPORT_PARAMETER_ERROR",
    "CONNECTION_ID_LIMIT_ERROR",
    "PROTOCOL_VIOLATION",
    "INVALID_TOKEN",
    "APPLICATION_ERROR",
    "CRYPTO_BUFFER_EXCEEDED",
    "KEY_UPDATE_ERROR",
    "AEAD_LIMIT_REACHED",
    "NO_VIABLE_PATH",
    "VERSION_NEGOTIATION_ERROR",
];

/// The first code of the range that carries TLS alerts (RFC 9000 §20.1, RFC 9001 §4.8).
const CRYPTO_ERROR: u32 = 0x0100;

impl TransportError {
    /// The connection is closed without an error.
    pub const NO_ERROR: Self = Self::of(0x00);
    /// The endpoint cannot go on.
    pub const INTERNAL_ERROR: Self = Self::of(0x01);
    /// The server takes no new connection.
    pub const CONNECTION_REFUSED: Self = Self::of(0x02);
    /// More data than was allowed.
    pub const FLOW_CONTROL_ERROR: Self = Self::of(0x03);
    /// A stream beyond the limit.
    pub const STREAM_LIMIT_ERROR: Self = Self::of(0x04);
    /// A frame for a stream that may not have it in its state.
    pub const STREAM_STATE_ERROR: Self = Self::of(0x05);
    /// A final size that changed, or that lies below data received.
    pub const FINAL_SIZE_ERROR: Self = Self::of(0x06);
    /// A malformed frame.
    pub const FRAME_ENCODING_ERROR: Self = Self::of(0x07);
    /// Malformed, invalid, missing or forbidden transport parameters.
    pub const TRANSPORT_PARAMETER_ERROR: Self = Self::of(0x08);
    /// More connection IDs than were allowed.
    pub const CONNECTION_ID_LIMIT_ERROR: Self = Self::of(0x09);
    /// A violation that no other code names.
    pub const PROTOCOL_VIOLATION: Self = Self::of(0x0a);
    /// A client's Initial with an invalid Retry token.
    pub const INVALID_TOKEN: Self = Self::of(0x0b);
    /// The application closed the connection, and may not say so yet.
    pub const APPLICATION_ERROR: Self = Self::of(0x0c);
    /// More CRYPTO data than can be buffered.
    pub const CRYPTO_BUFFER_EXCEEDED: Self = Self::of(0x0d);
    /// An error in updating keys.
    pub const KEY_UPDATE_ERROR: Self = Self::of(0x0e);
    /// The AEAD may not be used any more with these keys.
    pub const AEAD_LIMIT_REACHED: Self = Self::of(0x0f);
    /// No path can carry the connection.
    pub const NO_VIABLE_PATH: Self = Self::of(0x10);
    /// Version negotiation failed or was tampered with (RFC 9368 §10.2).
    pub const VERSION_NEGOTIATION_ERROR: Self = Self::of(0x11);

    const fn of(code: u32) -> Self {
        Self(VarInt::from_u32(code))
    }

    /// The code that carries a TLS alert (RFC 9001 §4.8).
    #[must_use]
    pub const fn from_tls_alert(alert: u8) -> Self {
        Self::of(CRYPTO_ERROR | alert as u32)
    }

    /// The TLS alert in it, if it carries one.
    #[must_use]
    pub const fn tls_alert(self) -> Option<u8> {
        if self.0.get() >> 8 == 1 {
            Some(self.0.get() as u8)
        } else {
            None
        }
    }

    /// The name the RFC gives it, if it has one.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        if self.tls_alert().is_some() {
            return Some("CRYPTO_ERROR");
        }
        NAMES.get(usize::try_from(self.0.get()).ok()?).copied()
    }

    /// The code.
    #[must_use]
    pub const fn code(self) -> VarInt {
        self.0
    }
}

impl From<VarInt> for TransportError {
    fn from(code: VarInt) -> Self {
        Self(code)
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.tls_alert()) {
            (Some(name), Some(alert)) => write!(f, "{name}(alert {alert})"),
            (Some(name), None) => f.write_str(name),
            (None, _) => write!(f, "error {:#x}", self.0.get()),
        }
    }
}

impl fmt::Debug for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
