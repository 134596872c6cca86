//! The content of a ticket besides the TLS library's session.
//!
//! Owns the fields, their bounds and layout. [`super::keys`] seals them; the session's encoding is the library's own.
//!
//! # Layout, sealed as a whole
//!
//! | bytes | |
//! |---|---|
//! | 8 | when it was issued, in seconds since the Unix epoch |
//! | 2 | length of our own data, at most [`OWN_MAX`] |
//! | 4 | version of QUIC (RFC 9369 §5) |
//! | 1 + n | its remembered transport parameters (RFC 9000 §7.4.1), after their length |
//! | n | session, to the end |

use std::time::Duration;

use lastbyte_wire::{Reader, UnexpectedEnd, packet::Version};

use crate::WallTime;

#[cfg(test)]
mod tests;

/// Maximum size of our own data in bytes.
pub(super) const OWN_MAX: usize = 160;
/// Maximum size of the transport parameters in bytes.
pub(super) const PARAMETERS_MAX: usize = OWN_MAX - FIXED_LEN;

/// Version, and the length of the parameters.
const FIXED_LEN: usize = 4 + 1;

/// The content of a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents<'a> {
    /// In whole seconds.
    pub(super) issued: WallTime,
    /// The number of the version of QUIC.
    pub(super) version: u32,
    /// Encoded; at most [`PARAMETERS_MAX`] bytes.
    pub(super) parameters: &'a [u8],
    pub(super) session: &'a [u8],
}

impl<'a> Contents<'a> {
    /// `None` if a field is too long.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        if self.parameters.len() > PARAMETERS_MAX {
            return None;
        }
        let own_len = FIXED_LEN + self.parameters.len();
        Some(
            [
                &self.issued.since_unix_epoch().as_secs().to_be_bytes()[..],
                &u16::try_from(own_len).ok()?.to_be_bytes(),
                &self.version.to_be_bytes(),
                &[u8::try_from(self.parameters.len()).ok()?],
                self.parameters,
                self.session,
            ]
            .concat(),
        )
    }

    /// Data sealed by this version always decodes; the error covers the rest.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(bytes);
        let issued = WallTime::from_unix(Duration::from_secs(u64::from_be_bytes(reader.array()?)));
        let own_len = reader.u16()?;
        let mut own = Reader::new(reader.bytes(own_len.into())?);
        let version = own.u32()?;
        let parameters_len = own.u8()?;
        let parameters = own.bytes(parameters_len.into())?;
        if !own.is_empty() {
            // Another layout, as of an earlier build.
            return Err(UnexpectedEnd);
        }
        Ok(Self {
            issued,
            version,
            parameters,
            session: reader.take_rest(),
        })
    }

    /// Whether it is a ticket of this QUIC version: others are not accepted (RFC 9369 §5).
    pub(super) fn is_of(&self, version: Version) -> bool {
        self.version == version.number().get()
    }
}
