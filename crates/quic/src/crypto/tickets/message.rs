//! Observed handshake messages: `NewSessionTicket`, and message boundaries (RFC 8446 §4, §4.6.1).
//!
//! Owns the one message that is rewritten or saved, and the splitting of CRYPTO data into messages. All other messages
//! are left to the TLS library.

use lastbyte_wire::{Reader, UnexpectedEnd};

#[cfg(test)]
mod tests;

/// The type of `NewSessionTicket`.
pub(super) const NEW_SESSION_TICKET: u8 = 4;
/// Length of type and length fields.
pub(super) const HEADER_LEN: usize = 4;
/// Fixed part of a `NewSessionTicket`: lifetime, `age_add`, and three lengths.
const FIXED_LEN: usize = 4 + 4 + 1 + 2 + 2;
/// The longest message that is assembled, including its header. Tickets of other servers may be long.
pub(super) const MESSAGE_MAX: usize = 64 * 1024;

/// A `NewSessionTicket` (RFC 8446 §4.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewSessionTicket<'a> {
    /// Its lifetime, in seconds.
    pub(super) lifetime_s: u32,
    /// Added by a client to the ticket's age in milliseconds, to obfuscate it.
    pub(super) age_add: u32,
    /// Distinguishes the keys of the tickets of a connection.
    pub(super) nonce: &'a [u8],
    /// The ticket.
    pub(super) ticket: &'a [u8],
    /// The extensions, after their length.
    pub(super) extensions: &'a [u8],
}

impl<'a> NewSessionTicket<'a> {
    /// Parses a complete message. `None` if it is of another type, or malformed.
    pub(super) fn decode(message: &'a [u8]) -> Option<Self> {
        let (header, body) = message.split_first_chunk::<HEADER_LEN>()?;
        let [kind, length @ ..] = header;
        if *kind != NEW_SESSION_TICKET || body_len(*length) != body.len() {
            return None;
        }
        Self::decode_body(body).ok().flatten()
    }

    fn decode_body(body: &'a [u8]) -> Result<Option<Self>, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        let lifetime_s = reader.u32()?;
        let age_add = reader.u32()?;
        let nonce_len = reader.u8()?;
        let nonce = reader.bytes(nonce_len.into())?;
        let ticket_len = reader.u16()?;
        let ticket = reader.bytes(ticket_len.into())?;
        let extensions_len = reader.u16()?;
        let extensions = reader.bytes(extensions_len.into())?;
        Ok(reader.is_empty().then_some(Self {
            lifetime_s,
            age_add,
            nonce,
            ticket,
            extensions,
        }))
    }

    /// Encodes the message. `None` if a field is too long for its length.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let len = FIXED_LEN + self.nonce.len() + self.ticket.len() + self.extensions.len();
        let [0, len @ ..] = u32::try_from(len).ok()?.to_be_bytes() else {
            return None;
        };
        Some(
            [
                &[NEW_SESSION_TICKET][..],
                &len,
                &self.lifetime_s.to_be_bytes(),
                &self.age_add.to_be_bytes(),
                &[u8::try_from(self.nonce.len()).ok()?],
                self.nonce,
                &u16::try_from(self.ticket.len()).ok()?.to_be_bytes(),
                self.ticket,
                &u16::try_from(self.extensions.len()).ok()?.to_be_bytes(),
                self.extensions,
            ]
            .concat(),
        )
    }
}

/// The length in a header.
pub(super) fn body_len([high, middle, low]: [u8; 3]) -> usize {
    usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)
}

/// Splits a stream into messages, whatever its portions.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The start of a message: less than [`MESSAGE_MAX`] bytes once [`Self::next`] has returned `None`.
    pending: Vec<u8>,
}

impl Messages {
    /// Adds the next portion.
    pub(super) fn push(&mut self, data: &[u8]) {
        self.pending.extend_from_slice(data);
    }

    /// The next complete message.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let ([_, length @ ..], _) = self.pending.split_first_chunk::<HEADER_LEN>()?;
        let len = HEADER_LEN + body_len(*length);
        if self.pending.len() < len {
            return None;
        }
        let rest = self.pending.split_off(len);
        Some(std::mem::replace(&mut self.pending, rest))
    }

    /// Whether the pending message is too long to be assembled.
    pub(super) fn is_overlong(&self) -> bool {
        match self.pending.split_first_chunk::<HEADER_LEN>() {
            Some(([_, length @ ..], _)) => HEADER_LEN + body_len(*length) > MESSAGE_MAX,
            None => false,
        }
    }

    /// The rest, which is not a complete message.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}
