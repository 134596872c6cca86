//! The `version_information` transport parameter (RFC 9368 §3).

use alloc::vec::Vec;

use super::TransportParameterErrorKind;
use crate::{BufferFull, Encode, Reader, Side, Writer, packet::VersionNumber};

/// The versions that an endpoint uses and supports (RFC 9368 §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionInformation {
    /// Chosen Version: the version in use.
    pub chosen: VersionNumber,
    /// Available Versions. From a client: the versions that are compatible with the first packet, in descending order
    /// of preference, including the chosen one. From a server: the versions that its deployment supports.
    pub available: Vec<VersionNumber>,
}

impl VersionInformation {
    pub(super) fn decode(
        reader: &mut Reader<'_>,
        sender: Side,
    ) -> Result<Self, TransportParameterErrorKind> {
        let chosen = VersionNumber::new(reader.u32()?);
        let mut available = Vec::with_capacity(reader.remaining() / 4);
        while !reader.is_empty() {
            available.push(VersionNumber::new(reader.u32()?));
        }
        if chosen == VersionNumber::NEGOTIATION || available.contains(&VersionNumber::NEGOTIATION) {
            return Err(TransportParameterErrorKind::VersionZero);
        }
        if sender == Side::Client && !available.contains(&chosen) {
            return Err(TransportParameterErrorKind::ChosenVersionNotAvailable);
        }
        Ok(Self { chosen, available })
    }
}

impl Encode for VersionInformation {
    fn encoded_len(&self) -> usize {
        4 + 4 * self.available.len()
    }

    fn encode(&self, writer: &mut Writer<'_>) -> Result<(), BufferFull> {
        writer.atomically(|writer| {
            writer.u32(self.chosen.get())?;
            self.available
                .iter()
                .try_for_each(|version| writer.u32(version.get()))
        })
    }
}
