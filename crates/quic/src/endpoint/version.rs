//! Version Negotiation packets (RFC 8999 §6, RFC 9000 §6.1).
//!
//! Owns their encoding.

use lastbyte_wire::{
    Writer,
    packet::{LongInvariant, Version, VersionNegotiation, VersionNumber},
};

/// Writes a response to a packet: its IDs, of up to 255 bytes each, swapped; our versions; and a reserved one, so that
/// clients must ignore unknown versions (RFC 9000 §6.3). Returns its length; `None` if it does not fit.
pub(super) fn write(
    buffer: &mut [u8],
    packet: &LongInvariant<'_>,
    versions: &[Version],
    random: u64,
) -> Option<usize> {
    let mut list = [VersionNumber::NEGOTIATION; VERSIONS_MAX];
    let mut grease = VersionNumber::reserved(random as u32);
    if grease == packet.version {
        // The client offered this version: the response must not contain it (RFC 8999 §6).
        grease = VersionNumber::reserved(!random as u32);
    }
    let mut len = 0;
    let all = core::iter::once(grease).chain(versions.iter().map(|version| version.number()));
    for (entry, version) in list.iter_mut().zip(all) {
        *entry = version;
        len += 1;
    }
    let mut writer = Writer::new(buffer);
    VersionNegotiation::encode(
        &mut writer,
        (random >> 32) as u8,
        packet.source,
        packet.destination,
        list.get(..len)?,
    )
    .ok()?;
    Some(writer.position())
}

/// The reserved one, and room for more than there are others.
const VERSIONS_MAX: usize = 8;
