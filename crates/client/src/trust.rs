//! Whom to trust: how servers' certificates are verified (RFC 9110 §4.3.4, RFC 9525).
//!
//! All goes through one verifier of ours, which remembers what it found wrong: the transport only keeps the alert. It is
//! where pinned keys are looked for, too (as RFC 7469 §2.6 has it): in the server's own certificate, whoever vouches for it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};

use crate::{base64::base64, failure::Failure};

/// Whom to trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Whom the system trusts.
    #[default]
    System,
    /// These authorities, and no others: certificates in PEM.
    Authorities(Vec<u8>),
    /// No verification: vulnerable to man-in-the-middle attacks.
    DangerouslyAcceptAny,
}

impl Trust {
    /// # Errors
    ///
    /// There is nobody to trust. Says what to do.
    pub(crate) fn verifier(
        &self,
        pins: &[String],
        provider: &Arc<CryptoProvider>,
    ) -> Result<Verifier, String> {
        let roots = match self {
            Self::DangerouslyAcceptAny => None,
            Self::System => {
                let found = rustls_native_certs::load_native_certs();
                let mut roots = RootCertStore::empty();
                let (added, _) = roots.add_parsable_certificates(found.certs);
                if added == 0 {
                    let why = found.errors.first().map(ToString::to_string);
                    return Err(format!(
                        "the system has no certificate authorities ({}); name a file of them",
                        why.unwrap_or_else(|| "none were found".to_owned())
                    ));
                }
                Some(roots)
            }
            Self::Authorities(pem) => Some(authorities(pem)?),
        };
        let inner = match roots {
            None => None,
            Some(roots) => Some(
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
                    .build()
                    .map_err(|error| error.to_string())?,
            ),
        };
        Ok(Verifier {
            inner,
            pins: pins.to_vec(),
            provider: Arc::clone(provider),
            failure: Mutex::default(),
        })
    }
}

fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("not PEM: {error}"))?;
        roots
            .add(certificate)
            .map_err(|error| format!("no certificate authority: {error}"))?;
    }
    if roots.is_empty() {
        return Err("there is no certificate in it; it is to be PEM".to_owned());
    }
    Ok(roots)
}

/// Verifies, and remembers what was wrong last.
pub(crate) struct Verifier {
    /// Without one, anybody is trusted.
    inner: Option<Arc<WebPkiServerVerifier>>,
    /// Where there are any, one of them is to be the server's.
    pins: Vec<String>,
    provider: Arc<CryptoProvider>,
    failure: Mutex<Option<Failure>>,
}

impl Verifier {
    /// What was wrong with the last certificate that was refused.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        let last = self.failure.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner);
        // Attempts to connect to several addresses fail for the same reason.
        last.as_ref().map(Failure::duplicate)
    }

    fn record<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result {
            let failure = match error {
                Error::InvalidCertificate(error) => Failure::Certificate(describe(error)),
                error => Failure::Certificate(error.to_string()),
            };
            self.set_failure(failure);
        }
        result
    }

    fn set_failure(&self, failure: Failure) {
        let last = self.failure.lock();
        *last.unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    fn check_pins(&self, end_entity: &CertificateDer<'_>) -> Result<(), Error> {
        if self.pins.is_empty() {
            return Ok(());
        }
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, key.as_ref());
        let pin = base64(digest.as_ref());
        if self.pins.contains(&pin) {
            return Ok(());
        }
        self.set_failure(Failure::Pin(format!(
            "the server's key is `sha256//{pin}`, which is not pinned"
        )));
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

/// Who we are, to servers that ask: a certificate and its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those that vouch for it, in PEM.
    pub certificates: Vec<u8>,
    /// The private key, in PEM.
    pub key: Vec<u8>,
}

impl Identity {
    /// # Errors
    ///
    /// Says what is missing.
    pub(crate) fn parse(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificates).collect();
        let chain = chain.map_err(|error| format!("the client certificate is not PEM: {error}"))?;
        if chain.is_empty() {
            return Err("there is no client certificate in the file; it is to be PEM".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|error| format!("there is no private key of the client: {error}"))?;
        Ok((chain, key))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

/// What is wrong with a certificate, and what can be done.
pub(crate) fn describe(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "nobody who is trusted vouches for it; name its authority, if you trust it".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("it is for another name: {error}")
        }
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "it is not signed by whom it says; name its authority, if you trust it".to_owned()
        }
        CertificateError::Other(other) => match other.to_string().as_str() {
            // What the verifying library calls it.
            "CaUsedAsEndEntity" => {
                "it is an authority's (CA:TRUE), and no server's own; have it made with CA:FALSE"
                    .to_owned()
            }
            other => other.to_owned(),
        },
        error => error.to_string(),
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("trusts_anybody", &self.inner.is_none())
            .finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(inner) = &self.inner {
            self.record(inner.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ))?;
        }
        self.check_pins(end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.record(rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        ))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.record(rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        ))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
