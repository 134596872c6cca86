//! 1-RTT keys from their traffic secrets (RFC 9001 §5.1), so that an idle connection need not keep the keys.
//!
//! Owns the cipher suites with which rustls derives them. It keeps no secrets.
//!
//! Decision: rustls derives keys from secrets of its own, or, for Initial packets, from a connection ID with the HKDF of a
//! suite. So the suites here have an HKDF that takes both secrets in place of a connection ID, and returns them as the
//! initial secrets. All keys are then made by rustls, and by the same library as before.

use std::sync::LazyLock;

use rustls::{
    CipherSuiteCommon, Tls13CipherSuite,
    crypto::{
        aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
        hash::HashAlgorithm,
        hmac::Tag,
        tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError},
    },
    quic,
};

use super::{Keys, kdf_hook};

/// The label of the client's initial secret (RFC 9001 §5.2).
const CLIENT_LABEL: &[u8] = b"client in";

/// The HKDF of a suite here. All but the first step is that of another.
struct FromSecrets(&'static dyn Hkdf);

/// Both secrets: the client's, then the server's, of the same length.
struct Secrets(Box<[u8]>);

impl Hkdf for FromSecrets {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        self.0.extract_from_zero_ikm(salt)
    }

    fn extract_from_secret(&self, _: Option<&[u8]>, secrets: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(Secrets(secrets.into()))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        self.0.expander_for_okm(okm)
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        self.0.hmac_sign(key, message)
    }
}

impl HkdfExpander for Secrets {
    fn expand_slice(&self, _: &[&[u8]], _: &mut [u8]) -> Result<(), OutputLengthError> {
        Err(OutputLengthError)
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        let (client, server) = self.0.split_at(self.hash_len());
        OkmBlock::new(if info.contains(&CLIENT_LABEL) {
            client
        } else {
            server
        })
    }

    fn hash_len(&self) -> usize {
        self.0.len() / 2
    }
}

fn suite(hkdf_provider: &'static FromSecrets) -> Tls13CipherSuite {
    let Some(base) = TLS13_AES_128_GCM_SHA256.tls13() else {
        unreachable!("a cipher suite of TLS 1.3");
    };
    Tls13CipherSuite {
        // Not used.
        common: CipherSuiteCommon {
            suite: base.common.suite,
            hash_provider: base.common.hash_provider,
            confidentiality_limit: base.common.confidentiality_limit,
        },
        hkdf_provider,
        aead_alg: base.aead_alg,
        quic: None,
    }
}

static SHA256: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
    static HKDF: FromSecrets = FromSecrets(&kdf_hook::SHA256);
    suite(&HKDF)
});

static SHA384: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
    static HKDF: FromSecrets = FromSecrets(&kdf_hook::SHA384);
    suite(&HKDF)
});

/// What derives the keys of a connection with this suite. `None` if it does not support QUIC, or has another hash.
pub(super) fn derivation(negotiated: &Tls13CipherSuite) -> Option<quic::Suite> {
    let suite = match negotiated.common.hash_provider.algorithm() {
        HashAlgorithm::SHA256 => &*SHA256,
        HashAlgorithm::SHA384 => &*SHA384,
        _ => return None,
    };
    let quic = negotiated.quic?;
    Some(quic::Suite { suite, quic })
}

/// A server's keys of the first generation, from the secrets of client and server.
pub(super) fn keys(
    derivation: quic::Suite,
    version: quic::Version,
    secrets: [&OkmBlock; 2],
) -> Keys {
    let secrets = secrets.map(AsRef::as_ref).concat();
    derivation
        .keys(&secrets, rustls::Side::Server, version)
        .into()
}
