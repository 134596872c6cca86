//! Transport error codes (RFC 9000 §20.1).

use core::fmt;

use crate::VarInt;

#[cfg(test)]
mod tests;

/// A transport error code, as carried in `CONNECTION_CLOSE` frames of type 0x1c (RFC 9000 §20.1).
///
/// Every code can be represented. Codes without a name are displayed as numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransportError(VarInt);

/// The first code of the range that carries TLS alerts (RFC 9000 §20.1, RFC 9001 §4.8).
const CRYPTO_ERROR: u32 = 0x0100;

/// Declares the codes: a constant for each, and its name (RFC 9000 §20.1).
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl TransportError {
            $($(#[$doc])* pub const $name: Self = Self::of($code);)*

            /// The RFC's name for the code, if it has one.
            pub const fn name(self) -> Option<&'static str> {
                match self.0.get() {
                    $($code => Some(stringify!($name)),)*
                    _ if self.tls_alert().is_some() => Some("CRYPTO_ERROR"),
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// The connection is closed without an error.
    NO_ERROR = 0x00;
    /// The endpoint encountered an internal error and cannot continue with the connection.
    INTERNAL_ERROR = 0x01;
    /// The server refused to accept a new connection.
    CONNECTION_REFUSED = 0x02;
    /// The peer sent more data than the flow control limits permit.
    FLOW_CONTROL_ERROR = 0x03;
    /// The peer opened a stream beyond the stream limit.
    STREAM_LIMIT_ERROR = 0x04;
    /// The peer sent a frame for a stream in a state that does not permit it.
    STREAM_STATE_ERROR = 0x05;
    /// The final size of a stream changed, or is below the data already received.
    FINAL_SIZE_ERROR = 0x06;
    /// A frame is malformed.
    FRAME_ENCODING_ERROR = 0x07;
    /// The transport parameters are malformed, contain an invalid value, or omit or include a parameter in violation of
    /// the protocol.
    TRANSPORT_PARAMETER_ERROR = 0x08;
    /// The peer issued more connection IDs than `active_connection_id_limit` permits.
    CONNECTION_ID_LIMIT_ERROR = 0x09;
    /// A protocol violation not covered by a more specific code.
    PROTOCOL_VIOLATION = 0x0a;
    /// The Retry token in a client's Initial packet is invalid.
    INVALID_TOKEN = 0x0b;
    /// The application closed the connection before its own error code could be sent.
    APPLICATION_ERROR = 0x0c;
    /// The peer sent more CRYPTO data than the endpoint can buffer.
    CRYPTO_BUFFER_EXCEEDED = 0x0d;
    /// A key update failed or violated the protocol.
    KEY_UPDATE_ERROR = 0x0e;
    /// The confidentiality or integrity limit of the AEAD has been reached for these keys.
    AEAD_LIMIT_REACHED = 0x0f;
    /// No network path can carry the connection.
    NO_VIABLE_PATH = 0x10;
    /// Version negotiation failed or was tampered with (RFC 9368 §10.2).
    VERSION_NEGOTIATION_ERROR = 0x11;
}

impl TransportError {
    const fn of(code: u32) -> Self {
        Self(VarInt::from_u32(code))
    }

    /// The `CRYPTO_ERROR` code for a TLS alert (RFC 9001 §4.8).
    #[must_use]
    pub const fn from_tls_alert(alert: u8) -> Self {
        Self::of(CRYPTO_ERROR | alert as u32)
    }

    /// The TLS alert, if this is a `CRYPTO_ERROR` code.
    pub const fn tls_alert(self) -> Option<u8> {
        if self.0.get() >> 8 == 1 {
            Some(self.0.get() as u8)
        } else {
            None
        }
    }

    /// The code as it is encoded.
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
