//! Error codes of HTTP/3 and QPACK (RFC 9114 §8.1, RFC 9204 §6).

use core::fmt;

use lastbyte_wire::VarInt;

/// Why a stream is reset, or a connection closed. Unknown codes are treated as [`Code::NO_ERROR`] (RFC 9114 §9).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(VarInt);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self(VarInt::from_u32($value));)*

            /// The name in the registry, if the code is registered.
            pub const fn name(self) -> Option<&'static str> {
                match self.0.get() {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Nothing is wrong.
    NO_ERROR = 0x100, "H3_NO_ERROR";
    /// A protocol violation without a code of its own.
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// An internal error.
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR";
    /// A stream that the peer may not open.
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR";
    /// A stream that the connection requires was closed.
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame that is not permitted where it was received.
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame with an invalid layout or size.
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR";
    /// The peer generates excessive load.
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD";
    /// An identifier is used incorrectly.
    ID_ERROR = 0x108, "H3_ID_ERROR";
    /// A setting with an invalid value.
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream does not start with SETTINGS.
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS";
    /// The request was not processed and may be retried.
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED";
    /// The request or its response is no longer needed.
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED";
    /// The client's stream ended before the request did.
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// The message is malformed.
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR";
    /// The connection of a CONNECT request was reset or closed.
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR";
    /// The request cannot be served over HTTP/3.
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK";
    /// A field section could not be decoded.
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// An instruction on the encoder stream could not be interpreted.
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// An instruction on the decoder stream could not be interpreted.
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR";
}

impl Code {
    /// Any code.
    #[must_use]
    pub const fn new(code: VarInt) -> Self {
        Self(code)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl From<VarInt> for Code {
    fn from(code: VarInt) -> Self {
        Self(code)
    }
}

impl From<Code> for VarInt {
    fn from(code: Code) -> Self {
        code.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.get()),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
