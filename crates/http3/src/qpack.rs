//! Field compression for HTTP/3 (RFC 9204).
//!
//! [`Encoder`] and [`Decoder`] are the two ends of one direction; a connection has one of each. Field sections go over request streams, insertions over the encoder stream, acknowledgments over the decoder stream.
//!
//! | file | responsibility |
//! |---|---|
//! | `encoder` | the representation of each field, insertions, and the entries that the peer has acknowledged (§2.1) |
//! | `decoder` | field sections, blocked ones among them, and acknowledgments (§2.2) |
//! | `table` | the dynamic table: entries, their indices, eviction (§3.2) |
//! | `static_table` | the static table and its search (§3.1, Appendix A) |
//! | `integer`, `huffman` | integers with a prefix, and strings (§4.1; RFC 7541 §5) |
//!
//! Invariants: no reference to an entry that could be evicted before the peer has it; no more blocked streams than the
//! peer permits; no more memory than the settings allow; no field in the table that is marked as sensitive or carries
//! credentials.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;

pub use decoder::{Decoded, Decoder, SectionLimits};
pub use encoder::{EncodeOptions, Encoder};
pub(crate) use encoder::{encode_static, static_section};

use crate::Code;

/// The peer's compressed data is invalid: the connection must be closed (RFC 9204 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct QpackError {
    /// The code of the close.
    pub code: Code,
    /// The violated rule.
    pub reason: &'static str,
}

impl QpackError {
    const fn section(reason: &'static str) -> Self {
        Self {
            code: Code::QPACK_DECOMPRESSION_FAILED,
            reason,
        }
    }

    const fn encoder_stream(reason: &'static str) -> Self {
        Self {
            code: Code::QPACK_ENCODER_STREAM_ERROR,
            reason,
        }
    }

    const fn decoder_stream(reason: &'static str) -> Self {
        Self {
            code: Code::QPACK_DECODER_STREAM_ERROR,
            reason,
        }
    }
}

/// The overhead of an entry (RFC 9204 §3.2.1).
const ENTRY_OVERHEAD: u64 = 32;

#[cfg(test)]
mod tests;
