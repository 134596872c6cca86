//! Keys of Initial packets (RFC 9001 §5.2, RFC 9369 §3.3.1).
//!
//! Owns: their derivation, which needs the client's destination connection ID and nothing secret. Never: decides which
//! connection ID that is. After a Retry it is the one that the Retry gave.
//!
//! Decision: the TLS library derives them, as it does all others, so that there is one derivation in the house. That it
//! does so with the salts and labels that `lastbyte_wire` knows is a test.

use lastbyte_wire::{ConnectionId, Side, packet::Version};
use rustls::{Tls13CipherSuite, crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256, quic};

use super::{Keys, tls};

#[cfg(test)]
pub(super) mod tests;

/// `AEAD_AES_128_GCM` with SHA-256, whatever the handshake will agree on (RFC 9001 §5.2, §5.3).
static SUITE: &Tls13CipherSuite = match TLS13_AES_128_GCM_SHA256.tls13() {
    Some(suite) => suite,
    None => panic!("it is a suite of TLS 1.3"),
};

static ALGORITHM: &dyn quic::Algorithm = match SUITE.quic {
    Some(algorithm) => algorithm,
    None => panic!("it is a suite for QUIC"),
};

/// The keys of this side for Initial packets, given the destination connection ID of the client's first one, or of the
/// one that follows a Retry.
#[must_use]
pub fn keys(side: Side, version: Version, destination: &ConnectionId) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    quic::Keys::initial(
        tls::version(version),
        SUITE,
        ALGORITHM,
        destination.as_slice(),
        side,
    )
    .into()
}
