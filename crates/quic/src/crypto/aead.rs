//! The library that protects packets and TLS records.
//!
//! Owns TLS 1.3 cipher suites whose AES-GCM comes from another library than the rest of the handshake. Which library is
//! faster is not decided here, since measuring needs a clock: `lastbyte_driver::aead` measures, and configurations are
//! built with the result.
//!
//! Decisions:
//!
//! - *AES-GCM and header protection only.* Key exchange, signatures, hashes, key derivation and TLS 1.2 stay with the
//!   handshake's provider, aws-lc. So do Initial packets and ChaCha20-Poly1305, where the libraries differ little.
//! - *AES-128 first.* Clients offer `TLS_AES_128_GCM_SHA256` before `TLS_AES_256_GCM_SHA384`, as browsers do: its AEAD has
//!   10 rounds instead of 14, and RFC 9001 §5.2 needs it anyway. SHA-384 alone is 10 % of a server's CPU time for a handshake, since
//!   CPUs have no instructions for it. Servers follow the client's order.
//! - *The limits of RFC 9001 §6.6 come with the suite.* rustls states the same limits for both libraries, which is
//!   tested.

use core::fmt;
use std::sync::LazyLock;

use rustls::{
    CipherSuite, CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite,
    crypto::{CryptoProvider, aws_lc_rs, ring},
};

#[cfg(test)]
mod tests;

/// A library that implements AES-GCM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AeadProvider {
    /// aws-lc, as for the handshake.
    #[default]
    AwsLc,
    /// ring. It has kernels for CPUs with VAES but without AVX-512, and a lower cost per packet.
    Ring,
}

/// `base`, with the AEAD and the header protection of `aead`.
fn combine(base: SupportedCipherSuite, aead: SupportedCipherSuite) -> Tls13CipherSuite {
    let (Some(base), Some(aead)) = (base.tls13(), aead.tls13()) else {
        unreachable!("both are cipher suites of TLS 1.3");
    };
    Tls13CipherSuite {
        common: CipherSuiteCommon {
            suite: base.common.suite,
            hash_provider: base.common.hash_provider,
            confidentiality_limit: aead.common.confidentiality_limit,
        },
        hkdf_provider: base.hkdf_provider,
        aead_alg: aead.aead_alg,
        quic: aead.quic,
    }
}

pub(super) static AES_128_GCM_BY_RING: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
    combine(
        aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
        ring::cipher_suite::TLS13_AES_128_GCM_SHA256,
    )
});

static AES_256_GCM_BY_RING: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
    combine(
        aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384,
        ring::cipher_suite::TLS13_AES_256_GCM_SHA384,
    )
});

impl AeadProvider {
    /// Both libraries.
    pub const ALL: [Self; 2] = [Self::AwsLc, Self::Ring];

    /// The aws-lc provider of rustls, with this library for AES-GCM in TLS 1.3 and `TLS_AES_128_GCM_SHA256` as the first
    /// cipher suite. For sessions that are kept, pass it to [`provider`](super::provider).
    pub fn crypto_provider(self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        provider
            .cipher_suites
            .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        for suite in &mut provider.cipher_suites {
            *suite = self.suite(*suite);
        }
        provider
    }

    /// The suite with this name and this library's AES-GCM; `base` itself if it is not a TLS 1.3 suite with AES-GCM.
    pub(super) fn suite(self, base: SupportedCipherSuite) -> SupportedCipherSuite {
        match (self, base.suite()) {
            (Self::Ring, CipherSuite::TLS13_AES_128_GCM_SHA256) => {
                SupportedCipherSuite::Tls13(&AES_128_GCM_BY_RING)
            }
            (Self::Ring, CipherSuite::TLS13_AES_256_GCM_SHA384) => {
                SupportedCipherSuite::Tls13(&AES_256_GCM_BY_RING)
            }
            _ => base,
        }
    }
}

impl fmt::Display for AeadProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AwsLc => "aws-lc",
            Self::Ring => "ring",
        })
    }
}
