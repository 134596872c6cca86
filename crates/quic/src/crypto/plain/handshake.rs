//! A handshake with the messages of TLS 1.3, without cryptography.
//!
//! Owns the order of messages (RFC 8446 §2), the availability of keys, and the negotiation. It draws no
//! randomness: a session's bytes follow from the seed, the server's name and the transport parameters, which in QUIC
//! contain a connection ID and so are never the same twice.
//!
//! One round trip: `ClientHello` in Initial packets; `ServerHello` there and the rest of the server's messages in
//! Handshake packets; the client's Finished; one `NewSessionTicket`. A resumed handshake has no certificates.
//!
//! Decision: *resumption is a flag with the remembered parameters*, not a store of tickets, so that a simulation
//! decides which of its connections resume.

use std::collections::VecDeque;

use lastbyte_wire::{
    Side, TransportError,
    packet::{PacketType, Version},
};

use super::{
    KeyUpdates, Limits, Secret,
    config::{PlainServer, Resumption},
    hash::{Checksum, mix},
    messages::{
        self, ClientHello, EncryptedExtensions, HEADER_LEN, MessageType, ServerHello, Sizes,
    },
};
use crate::crypto::{
    CRYPTO_OUT_MAX, EarlyData, NewKeys, OneRttKeys, PerSpace, SessionError, Space, VersionOffer,
    key_update,
};

mod client;
mod server;
mod session;

/// What differs between the two roles.
pub(super) enum Role {
    Client(Option<Resumption>),
    /// With the versions that it prefers.
    Server(PlainServer, Vec<VersionOffer>),
}

/// A handshake without cryptography.
pub(super) struct PlainSession {
    role: Role,
    version: Version,
    seed: u64,
    sizes: Sizes,
    limits: Limits,
    /// Our own transport parameters.
    parameters: Vec<u8>,
    /// Received bytes that are not a complete message yet. A message has at most 64 KiB.
    incoming: Vec<u8>,
    outgoing: PerSpace<Vec<u8>>,
    /// The message expected next; `None` when the handshake is complete.
    expected: Option<MessageType>,
    /// A checksum of all messages so far.
    transcript: u64,
    keys: VecDeque<NewKeys>,
    early_data: EarlyData,
    resumed: Option<bool>,
    tickets_received: u32,
    server_name: Option<String>,
    alpn: Option<Vec<u8>>,
    peer_parameters: Option<Vec<u8>>,
    failed: Option<SessionError>,
}

/// The longest message accepted, as in rustls.
const MESSAGE_MAX: usize = 0xffff;

/// Alerts of RFC 8446 §6 and RFC 7301 §3.2.
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;
const DECRYPT_ERROR: u8 = 51;
const NO_APPLICATION_PROTOCOL: u8 = 120;

fn alert(alert: u8, reason: &'static str) -> SessionError {
    SessionError::new(TransportError::from_tls_alert(alert), reason)
}

fn decode_error<E>(_: E) -> SessionError {
    alert(DECODE_ERROR, "a handshake message is malformed")
}

fn too_long<E>(_: E) -> SessionError {
    SessionError::new(
        TransportError::INTERNAL_ERROR,
        "a field does not fit a handshake message",
    )
}

fn unexpected() -> SessionError {
    alert(
        UNEXPECTED_MESSAGE,
        "a handshake message came out of its turn",
    )
}

impl PlainSession {
    pub(super) fn new(
        role: Role,
        version: Version,
        (seed, sizes, limits): (u64, Sizes, Limits),
        parameters: &[u8],
    ) -> Self {
        let expected = match role {
            Role::Client(_) => MessageType::ServerHello,
            Role::Server(..) => MessageType::ClientHello,
        };
        Self {
            role,
            version,
            seed,
            sizes,
            limits,
            parameters: parameters.to_vec(),
            incoming: Vec::new(),
            outgoing: PerSpace::default(),
            expected: Some(expected),
            transcript: 0,
            keys: VecDeque::new(),
            early_data: EarlyData::Unavailable,
            resumed: None,
            tickets_received: 0,
            server_name: None,
            alpn: None,
            peer_parameters: None,
            failed: None,
        }
    }

    const fn side(&self) -> Side {
        match self.role {
            Role::Client(_) => Side::Client,
            Role::Server(..) => Side::Server,
        }
    }

    /// 8 bytes in place of a TLS random.
    fn random(&self) -> u64 {
        let mut checksum = Checksum::new(self.seed, self.side() as u64);
        checksum.add(self.server_name.as_deref().unwrap_or_default().as_bytes());
        checksum.add(&self.parameters);
        mix(checksum.word(), self.transcript)
    }

    const fn reading(&self) -> Space {
        match self.expected {
            Some(MessageType::ClientHello | MessageType::ServerHello) => Space::Initial,
            Some(_) => Space::Handshake,
            None => Space::Application,
        }
    }

    fn read(&mut self, space: Space, data: &[u8]) -> Result<(), SessionError> {
        let expected = self.reading();
        if space != expected {
            return Err(SessionError::misplaced(space, expected));
        }
        self.incoming.extend_from_slice(data);
        while let Some(len) = self.message_len()? {
            let rest = self.incoming.split_off(len);
            let message = std::mem::replace(&mut self.incoming, rest);
            let before = self.reading();
            self.on_message(&message)?;
            // Messages must not span a change of keys (RFC 8446 §5.1).
            if self.reading() != before && !self.incoming.is_empty() {
                return Err(unexpected());
            }
        }
        Ok(())
    }

    /// The length of the first message in `incoming`, if it is complete.
    fn message_len(&self) -> Result<Option<usize>, SessionError> {
        let Some([_, len @ ..]) = self.incoming.first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let [a, b, c] = *len;
        let len = u32::from_be_bytes([0, a, b, c]) as usize;
        if len > MESSAGE_MAX {
            return Err(decode_error(()));
        }
        let len = len + HEADER_LEN;
        Ok((self.incoming.len() >= len).then_some(len))
    }

    fn on_message(&mut self, message: &[u8]) -> Result<(), SessionError> {
        let (header, body) = message.split_at_checked(HEADER_LEN).unwrap_or_default();
        let message_type = header.first().copied().and_then(MessageType::from_u8);
        let message_type = message_type.ok_or_else(unexpected)?;
        if self
            .expected
            .is_some_and(|expected| expected != message_type)
        {
            return Err(unexpected());
        }
        let before = self.transcript;
        self.add_to_transcript(message);
        match message_type {
            MessageType::ClientHello => self.on_client_hello(body),
            MessageType::ServerHello => self.on_server_hello(body),
            MessageType::EncryptedExtensions => self.on_encrypted_extensions(body),
            MessageType::Certificate => {
                self.expected = Some(MessageType::CertificateVerify);
                Ok(())
            }
            MessageType::CertificateVerify => {
                self.expected = Some(MessageType::Finished);
                Ok(())
            }
            MessageType::Finished if self.expected.is_some() => self.on_finished(body, before),
            MessageType::NewSessionTicket if self.side() == Side::Client => {
                self.tickets_received = self.tickets_received.saturating_add(1);
                Ok(())
            }
            MessageType::Finished | MessageType::NewSessionTicket => Err(unexpected()),
        }
    }

    fn on_finished(&mut self, body: &[u8], transcript: u64) -> Result<(), SessionError> {
        if body.first_chunk() != Some(&transcript.to_be_bytes()) {
            return Err(alert(
                DECRYPT_ERROR,
                "the ends have not seen the same handshake",
            ));
        }
        self.expected = None;
        match self.side() {
            Side::Client => {
                let secret = self.secret();
                self.write_finished()?;
                self.add_one_rtt_keys(secret);
                Ok(())
            }
            Side::Server => self.write_message(Space::Application, |sizes, out| {
                let size = usize::from(sizes.new_session_ticket);
                messages::message(MessageType::NewSessionTicket, &[], size, out)
            }),
        }
    }

    fn write_finished(&mut self) -> Result<(), SessionError> {
        let body = self.transcript.to_be_bytes();
        self.write_message(Space::Handshake, |sizes, out| {
            messages::message(
                MessageType::Finished,
                &body,
                usize::from(sizes.finished),
                out,
            )
        })
    }

    /// Writes a message and adds it to the transcript.
    fn write_message(
        &mut self,
        space: Space,
        write: impl FnOnce(&Sizes, &mut Vec<u8>) -> Result<(), lastbyte_wire::BufferFull>,
    ) -> Result<(), SessionError> {
        let mut message = Vec::new();
        write(&self.sizes, &mut message).map_err(too_long)?;
        self.add_to_transcript(&message);
        let out = self.outgoing.get_mut(space);
        if out.len() + message.len() > CRYPTO_OUT_MAX {
            return Err(too_long(()));
        }
        out.append(&mut message);
        Ok(())
    }

    fn add_to_transcript(&mut self, message: &[u8]) {
        let mut checksum = Checksum::new(self.transcript, 0);
        checksum.add(message);
        self.transcript = checksum.word();
    }

    /// The secret of the keys of the next level.
    const fn secret(&self) -> Secret {
        Secret::new(self.transcript, self.limits)
    }

    fn add_handshake_keys(&mut self) {
        let keys = self.secret().keys(PacketType::Handshake, self.side());
        self.keys.push_back(NewKeys::Handshake(keys));
    }

    fn add_one_rtt_keys(&mut self, secret: Secret) {
        let side = self.side();
        let updates = KeyUpdates {
            secret,
            side,
            generation: 0,
        };
        let keys = OneRttKeys::new(
            secret.keys(PacketType::OneRtt, side),
            key_update::KeyUpdates::plain(updates),
        );
        self.keys.push_back(NewKeys::OneRtt(Box::new(keys)));
    }
}
