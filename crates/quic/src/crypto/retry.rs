//! The Retry Integrity Tag (RFC 9001 §5.8, RFC 9369 §3.3.3).
//!
//! Owns the tag of a Retry packet. Its keys are public, so it shows that the sender of the Retry saw the client's
//! Initial packet, and that the Retry is unmodified. Whether a Retry is acceptable (RFC 9000 §17.2.5.2) and the content
//! of its token ([`super::token`]) are decided elsewhere.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use lastbyte_wire::{
    ConnectionId, Writer,
    packet::{Retry, Version, encode_retry_pseudo_packet},
};

use super::TAG_LEN;

#[cfg(test)]
mod tests;

/// The tag of a Retry packet with these bytes, in response to a packet with this destination connection ID. `None` if
/// the AEAD fails, which does not happen.
pub fn tag(
    version: Version,
    original_destination: &ConnectionId,
    without_tag: &[u8],
) -> Option<[u8; TAG_LEN]> {
    let key = UnboundKey::new(&AES_128_GCM, version.retry_key()).ok()?;
    let nonce = Nonce::assume_unique_for_key(*version.retry_nonce());
    let mut pseudo_packet = vec![0; 1 + original_destination.len() + without_tag.len()];
    let mut writer = Writer::new(&mut pseudo_packet);
    encode_retry_pseudo_packet(original_destination, without_tag, &mut writer).ok()?;
    let tag = LessSafeKey::new(key)
        .seal_in_place_separate_tag(nonce, Aad::from(writer.written()), &mut [])
        .ok()?;
    tag.as_ref().first_chunk().copied()
}

/// Whether a Retry packet has the right tag for the destination connection ID of the client's first Initial packet. If
/// not, it must be dropped (RFC 9000 §17.2.5.2).
pub fn is_authentic(retry: &Retry<'_>, original_destination: &ConnectionId) -> bool {
    // Comparison in variable time is harmless: anyone can compute the tag.
    tag(retry.version, original_destination, retry.without_tag) == Some(retry.integrity_tag)
}
