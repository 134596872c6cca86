//! Whom to trust: how servers' certificates are verified (RFC 9110 §4.3.4, RFC 9525).
//!
//! All goes through one verifier of ours, which remembers what it found wrong: the transport only keeps the alert.

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
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

/// Whom to trust.
#[derive(Clone, Debug, Default)]
pub enum Trust {
    /// Whom the system trusts.
    #[default]
    System,
    /// These authorities, and no others: certificates in PEM.
    Authorities(Vec<u8>),
    /// Anybody. What is fetched may come from anyone on the way.
    Anybody,
}

impl Trust {
    /// # Errors
    ///
    /// There is nobody to trust. Says what to do.
    pub(crate) fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
        let roots = match self {
            Self::Anybody => None,
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
            provider: Arc::clone(provider),
            complaint: Mutex::default(),
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
    provider: Arc<CryptoProvider>,
    complaint: Mutex<Option<String>>,
}

impl Verifier {
    /// What was wrong with the last certificate that was refused; once.
    pub(crate) fn take_complaint(&self) -> Option<String> {
        let mut complaint = self
            .complaint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        complaint.take()
    }

    fn note<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(error) = &result {
            let text = match error {
                Error::InvalidCertificate(error) => describe(error),
                error => error.to_string(),
            };
            let mut complaint = self
                .complaint
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *complaint = Some(text);
        }
        result
    }
}

fn describe(error: &CertificateError) -> String {
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
        match &self.inner {
            None => Ok(ServerCertVerified::assertion()),
            Some(inner) => self.note(inner.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            )),
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // QUIC has no TLS 1.2.
        Err(Error::General("TLS 1.2".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.note(rustls::crypto::verify_tls13_signature(
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
