//! Parses what a server needs from a `ClientHello` before rustls reads it (RFC 8446 §4.1.2, RFC 9368 §2.3).
//!
//! Owns the length of a `ClientHello`, the lookup of its fields, and the rules of RFC 9001 §8 that rustls does not
//! check. A message that cannot be parsed breaks none of them: rustls reports what is invalid.

use lastbyte_wire::{Reader, TransportError, UnexpectedEnd};

use crate::crypto::SessionError;

#[cfg(test)]
mod tests;

/// The longest message that is assembled: as long as rustls accepts.
const MESSAGE_MAX: usize = 0xffff;
/// Type and length of a handshake message.
const HEADER_LEN: usize = 4;

const CLIENT_HELLO: u8 = 1;
/// RFC 8446 §4.2.10.
const EARLY_DATA: u16 = 42;
/// RFC 9001 §8.2.
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;
/// RFC 8446 §6.
const MISSING_EXTENSION: u8 = 109;

/// Fields of a `ClientHello`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen<'a> {
    /// The client's transport parameters, encoded.
    pub(super) parameters: Option<&'a [u8]>,
    /// Whether 0-RTT is offered.
    pub(super) offers_early_data: bool,
    /// Whether the `legacy_session_id` is not empty.
    has_session_id: bool,
}

impl Seen<'_> {
    /// Checks what rustls accepts and QUIC does not: the compatibility mode of TLS over TCP (RFC 9001 §8.4), and
    /// transport parameters only in the extension of QUIC's drafts, 0xffa5 (§8.2).
    fn check(&self) -> Result<(), SessionError> {
        if self.has_session_id {
            return Err(SessionError::new(
                TransportError::PROTOCOL_VIOLATION,
                "a ClientHello with a legacy_session_id",
            ));
        }
        if self.parameters.is_none() {
            return Err(SessionError::new(
                TransportError::from_tls_alert(MISSING_EXTENSION),
                "a ClientHello without quic_transport_parameters",
            ));
        }
        Ok(())
    }
}

/// Whether the message can be parsed: it is complete, or never will be.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    let Some([kind, length @ ..]) = bytes.first_chunk::<HEADER_LEN>() else {
        return bytes.first().is_some_and(|kind| *kind != CLIENT_HELLO);
    };
    let [a, b, c] = *length;
    let len = u32::from_be_bytes([0, a, b, c]) as usize;
    *kind != CLIENT_HELLO || len > MESSAGE_MAX || bytes.len() >= HEADER_LEN + len
}

/// Finds the fields in a complete message, and checks them. A malformed message, or another one, has no fields.
pub(super) fn look(message: &[u8]) -> Result<Seen<'_>, SessionError> {
    if message.first() != Some(&CLIENT_HELLO) {
        return Ok(Seen::default());
    }
    match fields(message) {
        Ok(seen) => seen.check().map(|()| seen),
        Err(UnexpectedEnd) => Ok(Seen::default()),
    }
}

fn fields(message: &[u8]) -> Result<Seen<'_>, UnexpectedEnd> {
    let mut seen = Seen::default();
    let mut reader = Reader::new(message);
    reader.bytes(HEADER_LEN)?;
    // Version and random; session ID, cipher suites and compression methods, each after its length.
    reader.bytes(2 + 32)?;
    let len = reader.u8()?;
    reader.bytes(len.into())?;
    seen.has_session_id = len > 0;
    let len = reader.u16()?;
    reader.bytes(len.into())?;
    let len = reader.u8()?;
    reader.bytes(len.into())?;
    let len = reader.u16()?;
    let mut reader = Reader::new(reader.bytes(len.into())?);
    while !reader.is_empty() {
        let kind = reader.u16()?;
        let len = reader.u16()?;
        let body = reader.bytes(len.into())?;
        match kind {
            EARLY_DATA => seen.offers_early_data = true,
            QUIC_TRANSPORT_PARAMETERS => seen.parameters = Some(body),
            _ => {}
        }
    }
    Ok(seen)
}
