//! Keys of Initial packets (RFC 9001 §5.2, RFC 9369 §3.3.1).
//!
//! Owns their derivation, which needs only the client's destination connection ID and no secret. The caller passes the
//! right ID: after a Retry, the one from the Retry packet.
//!
//! Decision: the TLS library derives them, like all other keys, so that there is only one implementation. A test checks
//! that it uses the salts and labels known to `lastbyte_wire`.

use std::sync::LazyLock;

use lastbyte_wire::{ConnectionId, Side, packet::Version};
use rustls::{Tls13CipherSuite, crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256, quic};

use super::{
    Keys,
    aead::{AES_128_GCM_BY_RING, AeadProvider},
    kdf_hook, tls,
};

#[cfg(test)]
mod tests;

fn for_quic(base: &'static Tls13CipherSuite) -> quic::Suite {
    let (Some(suite), Some(quic)) = (kdf_hook::hooked(base), base.quic) else {
        unreachable!("AES-128-GCM with SHA-256 is for QUIC");
    };
    quic::Suite { suite, quic }
}

/// `AEAD_AES_128_GCM` with SHA-256, whatever the handshake negotiates (RFC 9001 §5.2, §5.3).
static AWS_LC: LazyLock<quic::Suite> = LazyLock::new(|| {
    let Some(suite) = TLS13_AES_128_GCM_SHA256.tls13() else {
        unreachable!("a cipher suite of TLS 1.3");
    };
    for_quic(suite)
});

/// The keys of this side for Initial packets, for the destination connection ID of the client's first packet, or of its
/// first packet after a Retry.
pub fn keys(side: Side, version: Version, destination: &ConnectionId) -> Keys {
    keys_by(AeadProvider::AwsLc, side, version, destination)
}

/// The same keys, with this library's AES-GCM: to test and measure the libraries.
pub fn keys_by(
    aead: AeadProvider,
    side: Side,
    version: Version,
    destination: &ConnectionId,
) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    let suite = match aead {
        AeadProvider::AwsLc => *AWS_LC,
        AeadProvider::Ring => for_quic(&AES_128_GCM_BY_RING),
    };
    suite
        .keys(destination.as_slice(), side, tls::version(version))
        .into()
}
