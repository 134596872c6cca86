//! Verification of server certificates (RFC 9110 §4.3.4, RFC 9525), and client certificates.
//!
//! The verifier keeps the reason of the last rejection, because the transport only keeps the TLS alert. It also
//! compares the key of the server's end-entity certificate with the pinned keys (cf. RFC 7469 §2.6).

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
    pki_types::{
        CertificateDer, PrivateKeyDer, ServerName, UnixTime,
        pem::{self, PemObject},
    },
    server::ParsedCertificate,
};

use crate::{base64::base64, failure::Failure};

/// The trusted certificate authorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The authorities that the system trusts.
    #[default]
    System,
    /// Only these authorities: certificates in PEM.
    Authorities(Vec<u8>),
    /// No verification: vulnerable to man-in-the-middle attacks.
    DangerouslyAcceptAny,
}

impl Trust {
    /// Builds the verifier.
    ///
    /// # Errors
    ///
    /// Returns a message if there are no usable trusted roots.
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
                        "no certificate authorities on this system: {} (specify a PEM file)",
                        why.unwrap_or_else(|| "none found".to_owned())
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
        let certificate =
            certificate.map_err(|_| "cut off or damaged (expected PEM)".to_owned())?;
        roots
            .add(certificate)
            .map_err(|error| format!("invalid certificate authority: {error}"))?;
    }
    if roots.is_empty() {
        return Err("no certificate found (expected PEM)".to_owned());
    }
    Ok(roots)
}

/// A verifier that keeps the last failure.
pub(crate) struct Verifier {
    /// `None` accepts any certificate.
    inner: Option<Arc<WebPkiServerVerifier>>,
    /// If not empty, the server's key must match one of these hashes.
    pins: Vec<String>,
    provider: Arc<CryptoProvider>,
    failure: Mutex<Option<Failure>>,
}

impl Verifier {
    /// Why the last certificate was rejected.
    pub(crate) fn last_failure(&self) -> Option<Failure> {
        let last = self.failure.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner);
        // It is copied, because attempts to several addresses fail for the same reason.
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
            "server key `sha256//{pin}` does not match any pinned key"
        )));
        Err(CertificateError::ApplicationVerificationFailure.into())
    }
}

/// A client certificate and its private key.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate chain in PEM.
    pub certificates: Vec<u8>,
    /// The private key, in PEM.
    pub key: Vec<u8>,
}

impl Identity {
    /// Parses the certificate chain and the key.
    ///
    /// # Errors
    ///
    /// Returns a message if the chain or the key is missing or not valid PEM.
    pub(crate) fn parse(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificates).collect();
        let chain =
            chain.map_err(|_| "client certificate cut off or damaged (expected PEM)".to_owned())?;
        if chain.is_empty() {
            return Err("no client certificate found (expected PEM)".to_owned());
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| {
            let what = match error {
                pem::Error::NoItemsFound => "not found",
                _ => "cut off or damaged",
            };
            format!("private key of the client certificate {what} (expected PEM)")
        })?;
        Ok((chain, key))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

/// Describes the defect of a certificate, with a remedy if there is one.
pub(crate) fn describe(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => "unknown issuer".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("issued for another name: {error}")
        }
        CertificateError::BadSignature
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. }
        | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "invalid signature".to_owned()
        }
        CertificateError::Other(other) => match other.to_string().as_str() {
            // The name of the error in the webpki crate.
            "CaUsedAsEndEntity" => {
                "a CA certificate (CA:TRUE) cannot identify a server (issue it with CA:FALSE)"
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
            .field("accepts_any", &self.inner.is_none())
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
