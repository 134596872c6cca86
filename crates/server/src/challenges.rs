//! Challenges of a certificate authority (RFC 8555 §8): proofs that a server is reached by a name, answered over TCP.
//!
//! - `tls-alpn-01` (RFC 8737): a handshake for the name with the protocol `acme-tls/1` gets a certificate that contains a
//!   digest. The connection ends with it.
//! - `http-01` (RFC 8555 §8.3): a path below `/.well-known/acme-challenge/` of the plain-HTTP listener contains the proof.
//!
//! Pending ones are few: an ACME client adds one for each name of a certificate, and removes it when the authority has decided.

use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::{crypto::aws_lc_rs::sign::any_supported_type, sign::CertifiedKey};

use super::identity::IdentityError;

#[cfg(test)]
mod tests;

/// The protocol of `tls-alpn-01`.
pub(crate) const ACME_TLS: &[u8] = b"acme-tls/1";
/// The folder of `http-01`.
const FOLDER: &str = "/.well-known/acme-challenge/";

/// The pending challenges of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Challenges(Arc<RwLock<Vec<Challenge>>>);

#[derive(Debug)]
struct Challenge {
    name: String,
    token: String,
    key_authorization: Bytes,
    certificate: Arc<CertifiedKey>,
}

impl Challenges {
    /// Answers the challenges for `name` with this token until the result is dropped, by either method.
    /// `key_authorization` is RFC 8555's (§8.1).
    ///
    /// # Errors
    ///
    /// Returns an [`IdentityError`] if the name is not valid in a certificate.
    pub fn add(
        &self,
        name: &str,
        token: &str,
        key_authorization: &str,
    ) -> Result<PendingChallenge, IdentityError> {
        let certificate = Arc::new(certificate(name, key_authorization)?);
        let challenge = Challenge {
            name: name.to_owned(),
            token: token.to_owned(),
            key_authorization: Bytes::copy_from_slice(key_authorization.as_bytes()),
            certificate: Arc::clone(&certificate),
        };
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.push(challenge);
        Ok(PendingChallenge {
            challenges: self.clone(),
            certificate,
        })
    }

    /// The certificate that proves control of a name over TLS.
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        // The latest, if an earlier attempt has not ended.
        let mut latest = all.iter().rev();
        let found = latest.find(|challenge| challenge.name.eq_ignore_ascii_case(name))?;
        Some(Arc::clone(&found.certificate))
    }

    /// The proof at a path of plain HTTP.
    pub(crate) fn proof(&self, path: &str) -> Option<Bytes> {
        let token = path.strip_prefix(FOLDER)?;
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = all.iter().find(|challenge| challenge.token == token)?;
        Some(found.key_authorization.clone())
    }
}

/// A challenge that is answered until this is dropped.
#[derive(Debug)]
pub struct PendingChallenge {
    challenges: Challenges,
    /// Identifies it.
    certificate: Arc<CertifiedKey>,
}

impl Drop for PendingChallenge {
    fn drop(&mut self) {
        let all = &self.challenges.0;
        let mut all = all.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|challenge| !Arc::ptr_eq(&challenge.certificate, &self.certificate));
    }
}

/// A self-signed certificate for the name, with the digest of the key authorization (RFC 8737 §3).
fn certificate(name: &str, key_authorization: &str) -> Result<CertifiedKey, IdentityError> {
    let error = |why: &dyn std::fmt::Display| {
        IdentityError::new(format!(
            "cannot prove control of `{name}` by a certificate: {why}"
        ))
    };
    let mut params =
        CertificateParams::new(vec![name.to_owned()]).map_err(|found| error(&found))?;
    let digest = digest(&SHA256, key_authorization.as_bytes());
    let extension = CustomExtension::new_acme_identifier(digest.as_ref());
    params.custom_extensions.push(extension);
    let key = KeyPair::generate().map_err(|found| error(&found))?;
    let certificate = params.self_signed(&key).map_err(|found| error(&found))?;
    // Without rustls' check of the chain, for which the critical extension is an unknown one.
    let key = any_supported_type(&key.into()).map_err(|found| error(&found))?;
    Ok(CertifiedKey::new(vec![certificate.der().clone()], key))
}
