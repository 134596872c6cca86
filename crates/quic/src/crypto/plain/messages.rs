//! The messages of a handshake without cryptography: those of TLS 1.3 (RFC 8446 §4), with a simplified body.
//!
//! Owns their encoding and their sizes. `handshake.rs` decides which message is valid when.

use lastbyte_wire::{BufferFull, Reader, UnexpectedEnd};

/// Message sizes in bytes, with their header of 4 bytes, and without the server's name, the application protocols and
/// the transport parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// `ClientHello`. Default: 220, with X25519. A hybrid key exchange with ML-KEM-768 adds 1222.
    pub client_hello: u16,
    /// Bytes that a ticket adds to the `ClientHello`. Default: 219.
    pub ticket_offer: u16,
    /// `ServerHello`. Default: 90. A hybrid key exchange adds 1088.
    pub server_hello: u16,
    /// `EncryptedExtensions`. Default: 10.
    pub encrypted_extensions: u16,
    /// Certificate, with the chain. Default: 2400.
    pub certificate: u16,
    /// `CertificateVerify`. Default: 79, with ECDSA over P-256. With RSA of 2048 bits it is 264.
    pub certificate_verify: u16,
    /// Finished, of either side. Default: 36.
    pub finished: u16,
    /// `NewSessionTicket`. Default: 190.
    pub new_session_ticket: u16,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            client_hello: 220,
            ticket_offer: 219,
            server_hello: 90,
            encrypted_extensions: 10,
            certificate: 2400,
            certificate_verify: 79,
            finished: 36,
            new_session_ticket: 190,
        }
    }
}

/// The types of RFC 8446 §4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageType {
    ClientHello = 1,
    ServerHello = 2,
    NewSessionTicket = 4,
    EncryptedExtensions = 8,
    Certificate = 11,
    CertificateVerify = 15,
    Finished = 20,
}

impl MessageType {
    pub(super) const fn from_u8(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::ClientHello,
            2 => Self::ServerHello,
            4 => Self::NewSessionTicket,
            8 => Self::EncryptedExtensions,
            11 => Self::Certificate,
            15 => Self::CertificateVerify,
            20 => Self::Finished,
            _ => return None,
        })
    }
}

/// A `ClientHello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientHello<'a> {
    pub(super) random: u64,
    pub(super) offers_ticket: bool,
    pub(super) offers_early_data: bool,
    pub(super) server_name: &'a [u8],
    /// Each with its length in one byte before it (RFC 7301 §3.1).
    pub(super) protocols: &'a [u8],
    pub(super) parameters: &'a [u8],
}

/// A `ServerHello`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerHello {
    pub(super) random: u64,
    pub(super) resumes: bool,
}

/// The server's encrypted messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EncryptedExtensions<'a> {
    pub(super) accepts_early_data: bool,
    pub(super) protocol: &'a [u8],
    pub(super) parameters: &'a [u8],
}

/// The length of a message's header: type and length (RFC 8446 §4).
pub(super) const HEADER_LEN: usize = 4;

impl<'a> ClientHello<'a> {
    pub(super) fn encode(&self, sizes: &Sizes, out: &mut Vec<u8>) -> Result<(), BufferFull> {
        let mut body = self.random.to_be_bytes().to_vec();
        body.push(u8::from(self.offers_ticket) | u8::from(self.offers_early_data) << 1);
        let mut size = usize::from(sizes.client_hello);
        if self.offers_ticket {
            size += usize::from(sizes.ticket_offer);
        }
        for field in [self.server_name, self.protocols, self.parameters] {
            put(field, &mut body)?;
            size += field.len();
        }
        message(MessageType::ClientHello, &body, size, out)
    }

    pub(super) fn decode(body: &'a [u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        let random = u64::from_be_bytes(reader.array()?);
        let flags = reader.u8()?;
        Ok(Self {
            random,
            offers_ticket: flags & 1 != 0,
            offers_early_data: flags & 2 != 0,
            server_name: take(&mut reader)?,
            protocols: take(&mut reader)?,
            parameters: take(&mut reader)?,
        })
    }

    /// The protocols, each alone.
    pub(super) fn protocols(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.protocols;
        std::iter::from_fn(move || {
            let (len, tail) = rest.split_first()?;
            let (protocol, tail) = tail.split_at_checked(usize::from(*len))?;
            rest = tail;
            Some(protocol)
        })
    }
}

impl ServerHello {
    pub(super) fn encode(self, sizes: &Sizes, out: &mut Vec<u8>) -> Result<(), BufferFull> {
        let mut body = self.random.to_be_bytes().to_vec();
        body.push(u8::from(self.resumes));
        message(
            MessageType::ServerHello,
            &body,
            usize::from(sizes.server_hello),
            out,
        )
    }

    pub(super) fn decode(body: &[u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        Ok(Self {
            random: u64::from_be_bytes(reader.array()?),
            resumes: reader.u8()? & 1 != 0,
        })
    }
}

impl<'a> EncryptedExtensions<'a> {
    pub(super) fn encode(&self, sizes: &Sizes, out: &mut Vec<u8>) -> Result<(), BufferFull> {
        let mut body = vec![u8::from(self.accepts_early_data)];
        let mut size = usize::from(sizes.encrypted_extensions);
        for field in [self.protocol, self.parameters] {
            put(field, &mut body)?;
            size += field.len();
        }
        message(MessageType::EncryptedExtensions, &body, size, out)
    }

    pub(super) fn decode(body: &'a [u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        Ok(Self {
            accepts_early_data: reader.u8()? & 1 != 0,
            protocol: take(&mut reader)?,
            parameters: take(&mut reader)?,
        })
    }
}

/// Writes a message, padded to its size if it is shorter.
pub(super) fn message(
    message_type: MessageType,
    body: &[u8],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<(), BufferFull> {
    let len = body.len().max(size.saturating_sub(HEADER_LEN));
    let [high, len_bytes @ ..] = u32::try_from(len).map_err(|_| BufferFull)?.to_be_bytes();
    if high != 0 {
        return Err(BufferFull);
    }
    out.push(message_type as u8);
    out.extend_from_slice(&len_bytes);
    out.extend_from_slice(body);
    out.resize(out.len() + len - body.len(), 0);
    Ok(())
}

/// A field after its length in two bytes.
fn put(field: &[u8], body: &mut Vec<u8>) -> Result<(), BufferFull> {
    let len = u16::try_from(field.len()).map_err(|_| BufferFull)?;
    body.extend_from_slice(&len.to_be_bytes());
    body.extend_from_slice(field);
    Ok(())
}

fn take<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], UnexpectedEnd> {
    let len = reader.u16()?;
    reader.bytes(usize::from(len))
}
