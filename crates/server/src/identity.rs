//! The server's identity: its certificate chain and key.

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

#[cfg(test)]
mod tests;

/// A certificate chain and its key.
#[derive(Debug)]
pub struct Identity {
    /// The server's own certificate is first.
    pub chain: Vec<CertificateDer<'static>>,
    /// The key of the first certificate.
    pub key: PrivateKeyDer<'static>,
}

/// Why an identity cannot be created.
#[derive(Debug)]
pub struct IdentityError(String);

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
        let text = fs::read(certificates).map_err(|found| error(certificates, &found))?;
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<_, _>>()
            .map_err(|found| error(certificates, &found))?;
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
            found => error(key, &found),
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

    /// The hash of the public key for Chromium's `--ignore-certificate-errors-spki-list`: SHA-256 of
    /// `SubjectPublicKeyInfo` in base64. `None` if the certificate cannot be parsed.
    #[must_use]
    pub fn public_key_hash(&self) -> Option<String> {
        let info = public_key_info(self.chain.first()?)?;
        Some(base64(digest(&SHA256, info).as_ref()))
    }
}

/// `SubjectPublicKeyInfo` of a certificate in DER (RFC 5280 §4.1), with its header.
fn public_key_info(certificate: &[u8]) -> Option<&[u8]> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut rest, _) = element(certificate)?;
    // The version is optional, and tagged [0]. Then: serial number, algorithm, issuer, validity, subject.
    if rest.first() == Some(&0xa0) {
        rest = element(rest)?.2;
    }
    for _ in 0..5 {
        rest = element(rest)?.2;
    }
    let (whole, ..) = element(rest)?;
    Some(whole)
}

/// The first element: complete, its content, and the rest.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let first = usize::from(*bytes.get(1)?);
    let (header_len, len) = if first < 0x80 {
        (2, first)
    } else {
        let count = first - 0x80;
        let digits = bytes.get(2..2 + count).filter(|_| count <= 4)?;
        let len = digits
            .iter()
            .fold(0, |len, digit| len << 8 | usize::from(*digit));
        (2 + count, len)
    };
    let (whole, rest) = bytes.split_at_checked(header_len.checked_add(len)?)?;
    Some((whole, &whole[header_len..], rest))
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
