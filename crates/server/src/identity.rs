//! A server's identity: a certificate chain and its key; its names, and when it is valid.

#![expect(
    clippy::disallowed_methods,
    reason = "certificates are read where the server is made"
)]

use std::{fmt, fs, net::IpAddr, path::Path};

use aws_lc_rs::digest::{SHA256, digest};
use lastbyte_units::date_of_days;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject},
};
use x509_cert::{
    certificate::{CertificateInner, Raw},
    der::{Decode, Encode},
    ext::pkix::{SubjectAltName, name::GeneralName},
};

#[cfg(test)]
mod tests;

/// The parser's own text has lines of the file as numbers.
const DAMAGED: &str = "cut off or damaged (expected PEM)";

/// A certificate chain and its key.
#[derive(Debug, PartialEq, Eq)]
pub struct Identity {
    /// The server's own certificate is first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first certificate.
    pub key: PrivateKeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
        }
    }
}

/// Why an identity cannot be created.
#[derive(Debug)]
pub struct IdentityError(String);

impl IdentityError {
    pub(crate) const fn new(why: String) -> Self {
        Self(why)
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for IdentityError {}

impl Identity {
    /// Reads PEM files, as certificate authorities issue them.
    ///
    /// # Errors
    ///
    /// Returns an [`IdentityError`] that names the file if it cannot be read, or has no certificate or no key.
    pub fn read(certificates: &Path, key: &Path) -> Result<Self, IdentityError> {
        let error = |path: &Path, what: &dyn fmt::Display| {
            IdentityError(format!("cannot read `{}`: {what}", path.display()))
        };
        // Opening a pipe would wait for another process, and a server that waits cannot be stopped.
        for path in [certificates, key] {
            if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
                return Err(error(path, &"not a regular file"));
            }
        }
        let text = fs::read(certificates).map_err(|found| error(certificates, &found))?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, _>>()
            .map_err(|_| error(certificates, &DAMAGED))?;
        if chain.is_empty() {
            let what = match PrivateKeyDer::from_pem_slice(&text) {
                Ok(_) => "a private key (expected a certificate chain in PEM)",
                Err(_) => "no certificate found (expected PEM)",
            };
            return Err(error(certificates, &what));
        }
        let text = fs::read(key).map_err(|found| error(key, &found))?;
        let key = PrivateKeyDer::from_pem_slice(&text).map_err(|found| match found {
            pem::Error::NoItemsFound => {
                let has_certificate = CertificateDer::from_pem_slice(&text).is_ok();
                let found = if has_certificate {
                    "a certificate"
                } else {
                    "no private key found"
                };
                error(key, &format!("{found} (expected a private key in PEM)"))
            }
            _ => error(key, &DAMAGED),
        })?;
        Ok(Self { chain, key })
    }

    /// Creates a self-signed certificate for these names and addresses, valid for two weeks, which is the limit of
    /// browsers for certificates trusted by their hash.
    ///
    /// # Errors
    ///
    /// Returns an [`IdentityError`] if a name is not valid in a certificate.
    pub fn self_signed(names: &[String], since_epoch_days: i64) -> Result<Self, IdentityError> {
        let error =
            |found: rcgen::Error| IdentityError(format!("cannot generate a certificate: {found}"));
        let mut params = CertificateParams::new(Vec::new()).map_err(error)?;
        for name in names {
            let name = match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into().map_err(error)?),
            };
            params.subject_alt_names.push(name);
        }
        params
            .distinguished_name
            .push(DnType::CommonName, "lastbyte, self-signed");
        let (from, until) = (since_epoch_days - 1, since_epoch_days + 12);
        let day = |days: i64| {
            let (year, month, day) = date_of_days(days);
            rcgen::date_time_ymd(year as i32, month as u8, day as u8)
        };
        params.not_before = day(from);
        params.not_after = day(until);
        let key = KeyPair::generate().map_err(error)?;
        let certificate = params.self_signed(&key).map_err(error)?;
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: key.into(),
        })
    }

    /// What the certificates contain.
    ///
    /// # Errors
    ///
    /// Returns an [`IdentityError`] if there is no certificate, or if one cannot be parsed.
    pub fn contents(&self) -> Result<Contents, IdentityError> {
        let own = self
            .chain
            .first()
            .ok_or_else(|| IdentityError("no certificate (expected a chain)".into()))?;
        let own = parse(own)?;
        let mut validity = Validity::of(&own);
        for other in &self.chain[1..] {
            let other = Validity::of(&parse(other)?);
            validity = Validity {
                from: validity.from.max(other.from),
                until: validity.until.min(other.until),
            };
        }
        let names = own.tbs_certificate.get::<SubjectAltName>();
        let names = names.map_err(|error| unusable(&error))?;
        let names = names.into_iter().flat_map(|(_, names)| names.0);
        let names = names.filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(name.as_str().to_owned()),
            _ => None,
        });
        Ok(Contents {
            names: names.collect(),
            validity,
        })
    }

    /// The hash of the public key for Chromium's `--ignore-certificate-errors-spki-list`: SHA-256 of
    /// `SubjectPublicKeyInfo` in base64. `None` if the certificate cannot be parsed.
    pub fn public_key_hash(&self) -> Option<String> {
        let certificate = parse(self.chain.first()?).ok()?;
        let key = certificate.tbs_certificate.subject_public_key_info;
        Some(base64(digest(&SHA256, &key.to_der().ok()?).as_ref()))
    }
}

/// The parts of a certificate chain by which a server chooses and replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The DNS names of the server's own certificate (RFC 5280 §4.2.1.6), some with a wildcard as their first label.
    pub names: Vec<String>,
    /// When all certificates of the chain are valid.
    pub validity: Validity,
}

/// The time in which certificates are valid (RFC 5280 §4.1.2.5), in seconds since 1970, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The latest `notBefore`.
    pub from: u64,
    /// The earliest `notAfter`.
    pub until: u64,
}

impl Validity {
    fn of(certificate: &Certificate) -> Self {
        let validity = &certificate.tbs_certificate.validity;
        Self {
            from: validity.not_before.to_unix_duration().as_secs(),
            until: validity.not_after.to_unix_duration().as_secs(),
        }
    }
}

/// A certificate whose numbers and names need not have the form of RFC 5280: clients decide about them.
type Certificate = CertificateInner<Raw>;

fn parse(certificate: &[u8]) -> Result<Certificate, IdentityError> {
    Certificate::from_der(certificate).map_err(|error| unusable(&error))
}

fn unusable(why: &dyn fmt::Display) -> IdentityError {
    IdentityError(format!("cannot parse a certificate of the chain: {why}"))
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, index| {
            bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0))
        });
        for index in 0..4 {
            if index <= chunk.len() {
                let digit = (bits >> (18 - 6 * index)) & 63;
                text.push(char::from(ALPHABET[digit as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}
