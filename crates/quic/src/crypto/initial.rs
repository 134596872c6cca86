//! Keys of Initial packets (RFC 9001 §5.2, RFC 9369 §3.3.1).
//!
//! Owns: their derivation, which needs the client's destination connection ID and nothing secret. Never: decides which
//! connection ID that is. After a Retry it is the one that the Retry gave.
//!
//! Decision: the TLS library derives them, as it does all others, so that there is one derivation in the house. That it
//! does so with the salts and labels that `lastbyte_wire` knows is a test.

use std::sync::LazyLock;

use lastbyte_wire::{ConnectionId, Side, packet::Version};
use rustls::{Tls13CipherSuite, crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256, quic};

use super::{
    Keys,
    aead::{AES_128_GCM_BY_RING, AeadProvider},
    kdf_hook, tls,
};

#[cfg(test)]
pub(super) mod tests;

fn for_quic(base: &'static Tls13CipherSuite) -> quic::Suite {
    let (Some(suite), Some(quic)) = (kdf_hook::hooked(base), base.quic) else {
        unreachable!("AES-128-GCM with SHA-256 is for QUIC");
    };
    quic::Suite { suite, quic }
}

/// `AEAD_AES_128_GCM` with SHA-256, whatever the handshake will agree on (RFC 9001 §5.2, §5.3).
static AWS_LC: LazyLock<quic::Suite> = LazyLock::new(|| {
    let Some(suite) = TLS13_AES_128_GCM_SHA256.tls13() else {
        unreachable!("a cipher suite of TLS 1.3");
    };
    for_quic(suite)
});

/// The keys of this side for Initial packets, given the destination connection ID of the client's first one, or of the
/// one that follows a Retry.
#[must_use]
pub fn keys(side: Side, version: Version, destination: &ConnectionId) -> Keys {
    keys_by(AeadProvider::AwsLc, side, version, destination)
}

/// The same keys, with the AES-GCM of this library: to test and to measure the libraries.
#[must_use]
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
