//! A client's session as bytes (RFC 8446 §4.6.1).
//!
//! Owns the content, its layout, and the errors of decoding. Whether a session is still valid is decided by
//! [`super::restore`].
//!
//! The bytes are a **secret**: with them, anyone can resume the session as this client and decrypt its 0-RTT data. A file
//! that contains them must not be readable by others.
//!
//! # Layout
//!
//! | bytes | |
//! |---|---|
//! | 4 | `LbS1` |
//! | 1 + n | version of rustls, after its length |
//! | 1 + n | name of the server |
//! | 4 | version of QUIC |
//! | 2, 2 | cipher suite, group of the key exchange |
//! | 8 | when it was saved, in milliseconds since the Unix epoch |
//! | 1 + n, 1 + n | application protocol, pre-shared key |
//! | 2 + n | transport parameters of the server, as far as they are remembered |
//! | 2 + n | `NewSessionTicket`, the whole message |
//! | 1 | number of certificates, then each as 2 + n, the server's own first |
//! | 16 | SHA-256 of all before, cut: detects truncated files, not forgeries |

use std::{fmt, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use lastbyte_wire::{Reader, UnexpectedEnd, packet::Version};

use super::super::{RUSTLS_VERSION, message::NewSessionTicket};
use crate::WallTime;

#[cfg(test)]
pub(super) mod tests;

/// Maximum size of a saved session in bytes.
pub const SAVED_MAX: usize = 64 * 1024;

const MAGIC: [u8; 4] = *b"LbS1";
const CHECK_LEN: usize = 16;

/// A session that can be resumed once.
#[derive(Clone, PartialEq, Eq)]
pub struct SavedSession {
    pub(super) server: String,
    pub(super) version: Version,
    pub(super) suite: u16,
    pub(super) group: u16,
    /// When it was saved, in whole milliseconds.
    pub(super) saved: WallTime,
    pub(super) alpn: Vec<u8>,
    pub(super) psk: Vec<u8>,
    pub(super) parameters: Vec<u8>,
    pub(super) message: Vec<u8>,
    pub(super) chain: Vec<Vec<u8>>,
}

/// Why bytes are not a session that can be resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SavedSessionError {
    /// The bytes do not start like a session.
    #[error("this is not a saved session")]
    NotASession,
    /// They were saved with this version of rustls, and can only be read with that version.
    #[error("the session was saved with rustls `{0}`, and this is `{RUSTLS_VERSION}`")]
    OtherVersion(String),
    /// They are truncated or corrupt.
    #[error("the saved session was cut short or changed")]
    Corrupt,
}

impl SavedSession {
    /// The name of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The QUIC version in which it can be resumed (RFC 9369 §5).
    pub const fn version(&self) -> Version {
        self.version
    }

    /// When its ticket expires.
    pub fn expires(&self) -> WallTime {
        let lifetime_s = NewSessionTicket::decode(&self.message).map(|ticket| ticket.lifetime_s);
        let lifetime = Duration::from_secs(lifetime_s.unwrap_or_default().into());
        self.saved + lifetime.min(super::super::LIFETIME_MAX)
    }

    /// Encodes the session, in at most [`SAVED_MAX`] bytes, which are secret.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode(RUSTLS_VERSION)
    }

    /// Sessions that do not fit are never created: [`Self::fits`].
    fn encode(&self, rustls_version: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        prefixed_8(&mut bytes, rustls_version.as_bytes());
        prefixed_8(&mut bytes, self.server.as_bytes());
        bytes.extend_from_slice(&self.version.number().get().to_be_bytes());
        bytes.extend_from_slice(&self.suite.to_be_bytes());
        bytes.extend_from_slice(&self.group.to_be_bytes());
        let saved_ms = u64::try_from(self.saved.since_unix_epoch().as_millis()).unwrap_or(u64::MAX);
        bytes.extend_from_slice(&saved_ms.to_be_bytes());
        prefixed_8(&mut bytes, &self.alpn);
        prefixed_8(&mut bytes, &self.psk);
        prefixed_16(&mut bytes, &self.parameters);
        prefixed_16(&mut bytes, &self.message);
        bytes.push(self.chain.len() as u8);
        for certificate in &self.chain {
            prefixed_16(&mut bytes, certificate);
        }
        let check = check(&bytes);
        bytes.extend_from_slice(&check);
        bytes
    }

    /// Whether all lengths fit, individually and in total.
    pub(super) fn fits(&self) -> bool {
        let short = [self.server.as_bytes(), &self.alpn, &self.psk];
        let mut long = [&self.parameters, &self.message]
            .into_iter()
            .chain(&self.chain);
        u8::try_from(self.chain.len()).is_ok()
            && short.iter().all(|field| u8::try_from(field.len()).is_ok())
            && long.all(|field| u16::try_from(field.len()).is_ok())
            && self.to_bytes().len() <= SAVED_MAX
    }

    /// Decodes the result of [`Self::to_bytes`].
    ///
    /// # Errors
    ///
    /// Returns [`SavedSessionError`] if the bytes are not a session, or one that this version of the program cannot
    /// resume. The client then does a full handshake.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SavedSessionError> {
        let corrupt = |UnexpectedEnd| SavedSessionError::Corrupt;
        if bytes.len() > SAVED_MAX {
            return Err(SavedSessionError::NotASession);
        }
        let mut reader = Reader::new(bytes);
        match reader.array() {
            Ok(MAGIC) => {}
            Err(UnexpectedEnd) if MAGIC.starts_with(bytes) => {
                return Err(SavedSessionError::Corrupt);
            }
            Ok(_) | Err(UnexpectedEnd) => return Err(SavedSessionError::NotASession),
        }
        let rustls_version = text(read_8(&mut reader).map_err(corrupt)?)?;
        let body_len = bytes.len().saturating_sub(CHECK_LEN);
        let (body, found) = bytes
            .split_at_checked(body_len)
            .ok_or(SavedSessionError::Corrupt)?;
        if check(body) != found {
            return Err(SavedSessionError::Corrupt);
        }
        if rustls_version != RUSTLS_VERSION {
            return Err(SavedSessionError::OtherVersion(rustls_version));
        }
        let rest = body
            .get(reader.position()..)
            .ok_or(SavedSessionError::Corrupt)?;
        Self::decode(&mut Reader::new(rest))
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, SavedSessionError> {
        let corrupt = |UnexpectedEnd| SavedSessionError::Corrupt;
        let server = text(read_8(reader).map_err(corrupt)?)?;
        let number = reader.u32().map_err(corrupt)?;
        let version = [Version::V1, Version::V2]
            .into_iter()
            .find(|version| version.number().get() == number)
            .ok_or(SavedSessionError::Corrupt)?;
        let session = Self {
            server,
            version,
            suite: reader.u16().map_err(corrupt)?,
            group: reader.u16().map_err(corrupt)?,
            saved: WallTime::from_unix(Duration::from_millis(u64::from_be_bytes(
                reader.array().map_err(corrupt)?,
            ))),
            alpn: read_8(reader).map_err(corrupt)?.to_vec(),
            psk: read_8(reader).map_err(corrupt)?.to_vec(),
            parameters: read_16(reader).map_err(corrupt)?.to_vec(),
            message: read_16(reader).map_err(corrupt)?.to_vec(),
            chain: {
                let count = reader.u8().map_err(corrupt)?;
                (0..count)
                    .map(|_| read_16(reader).map(<[u8]>::to_vec))
                    .collect::<Result<_, _>>()
                    .map_err(corrupt)?
            },
        };
        if reader.is_empty() {
            Ok(session)
        } else {
            Err(SavedSessionError::Corrupt)
        }
    }
}

fn text(bytes: &[u8]) -> Result<String, SavedSessionError> {
    String::from_utf8(bytes.to_vec()).map_err(|_| SavedSessionError::Corrupt)
}

fn check(bytes: &[u8]) -> Vec<u8> {
    let mut check = digest(&SHA256, bytes).as_ref().to_vec();
    check.truncate(CHECK_LEN);
    check
}

fn prefixed_8(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.push(field.len() as u8);
    bytes.extend_from_slice(field);
}

fn prefixed_16(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(&(field.len() as u16).to_be_bytes());
    bytes.extend_from_slice(field);
}

fn read_8<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], UnexpectedEnd> {
    let len = reader.u8()?;
    reader.bytes(len.into())
}

fn read_16<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], UnexpectedEnd> {
    let len = reader.u16()?;
    reader.bytes(len.into())
}

/// Keys are secret.
impl fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedSession")
            .field("server", &self.server)
            .field("version", &self.version)
            .field("saved", &self.saved)
            .finish_non_exhaustive()
    }
}
