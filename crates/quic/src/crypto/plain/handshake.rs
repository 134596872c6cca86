//! A handshake of the shape of TLS 1.3, without cryptography.
//!
//! Owns: which message is answered by which (RFC 8446 §2), when there are keys, and what is agreed on. Never: draws
//! randomness: a session's bytes follow from the seed, the server's name and the transport parameters it is started
//! with, which in QUIC hold a connection ID and so are never twice the same.
//!
//! One round trip: `ClientHello` in Initial packets; `ServerHello` there and the rest of the server's messages in
//! Handshake packets; the client's Finished; one `NewSessionTicket`. A resumed handshake has no certificates.
//!
//! Decision: *resumption is a flag with the remembered parameters*, not a store of tickets, so that a simulation says
//! which of its connections resume.

use std::{collections::VecDeque, fmt};

use lastbyte_wire::{ConnectionId, Side, TransportError, packet::PacketType, packet::Version};

use super::{
    KeyUpdates, Limits, Secret,
    hash::{Checksum, mix},
    initial_keys,
    messages::{self, ClientHello, EncryptedExtensions, HEADER_LEN, MessageType, ServerHello},
};
use crate::crypto::{
    CRYPTO_OUT_MAX, ClientCrypto, EarlyData, ExportError, Keys, NewKeys, OneRttKeys, PerSpace,
    ServerCrypto, Session, SessionError, Space, StartError, key_update,
};

pub use messages::Sizes;

mod client;
mod server;

/// Where a client's sessions come from.
#[derive(Clone, Debug)]
pub struct PlainClient {
    /// All bytes follow from it.
    pub seed: u64,
    /// The application protocols offered, by preference, of 255 bytes each at most.
    pub alpn: Vec<Vec<u8>>,
    /// How long messages are.
    pub sizes: Sizes,
    /// How often keys may be used.
    pub limits: Limits,
    /// An earlier connection to be resumed.
    pub resumption: Option<Resumption>,
}

/// What a client remembers of an earlier connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumption {
    /// The server's transport parameters (RFC 9000 §7.4.1).
    pub parameters: Vec<u8>,
    /// Whether 0-RTT is offered.
    pub early_data: bool,
}

/// Where a server's sessions come from.
#[derive(Clone, Debug)]
pub struct PlainServer {
    /// All bytes follow from it.
    pub seed: u64,
    /// The application protocols, by preference.
    pub alpn: Vec<Vec<u8>>,
    /// How long messages are.
    pub sizes: Sizes,
    /// How often keys may be used.
    pub limits: Limits,
    /// Whether earlier connections are resumed. Default: true.
    pub resumes: bool,
    /// Whether 0-RTT of resumed connections is accepted. Default: true.
    pub accepts_early_data: bool,
}

impl PlainClient {
    /// A client that resumes nothing.
    #[must_use]
    pub fn new(seed: u64, alpn: Vec<Vec<u8>>) -> Self {
        Self {
            seed,
            alpn,
            sizes: Sizes::default(),
            limits: Limits::default(),
            resumption: None,
        }
    }
}

impl PlainServer {
    /// A server that resumes and accepts 0-RTT.
    #[must_use]
    pub fn new(seed: u64, alpn: Vec<Vec<u8>>) -> Self {
        Self {
            seed,
            alpn,
            sizes: Sizes::default(),
            limits: Limits::default(),
            resumes: true,
            accepts_early_data: true,
        }
    }
}

impl ClientCrypto for PlainClient {
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        initial_keys(Side::Client, version, destination)
    }

    fn start(
        &self,
        _version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, StartError> {
        let mut session = PlainSession::new(
            Role::Client(self.resumption.clone()),
            self.seed,
            self.sizes,
            self.limits,
            parameters,
        );
        session.server_name = Some(server_name.to_owned());
        session
            .say_client_hello(&self.alpn)
            .map_err(|error| StartError::Configuration(error.to_string()))?;
        Ok(Box::new(session))
    }
}

impl ServerCrypto for PlainServer {
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        initial_keys(Side::Server, version, destination)
    }

    fn start(&self, _version: Version, parameters: &[u8]) -> Result<Box<dyn Session>, StartError> {
        Ok(Box::new(PlainSession::new(
            Role::Server(self.clone()),
            self.seed,
            self.sizes,
            self.limits,
            parameters,
        )))
    }
}

/// What the two sides know that the other does not.
enum Role {
    Client(Option<Resumption>),
    Server(PlainServer),
}

/// A handshake without cryptography.
struct PlainSession {
    role: Role,
    seed: u64,
    sizes: Sizes,
    limits: Limits,
    /// Our own transport parameters.
    parameters: Vec<u8>,
    /// What came and is not a whole message yet. A message has 64 KiB at most.
    incoming: Vec<u8>,
    outgoing: PerSpace<Vec<u8>>,
    /// What is to come next; `None` when the handshake is complete.
    expected: Option<MessageType>,
    /// A checksum of all messages so far.
    transcript: u64,
    /// What exported keying material follows from.
    exporter: u64,
    keys: VecDeque<NewKeys>,
    early_data: EarlyData,
    resumed: Option<bool>,
    tickets_received: u32,
    server_name: Option<String>,
    alpn: Option<Vec<u8>>,
    peer_parameters: Option<Vec<u8>>,
    failed: Option<SessionError>,
}

/// The longest message that is read, as in rustls.
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
    fn new(role: Role, seed: u64, sizes: Sizes, limits: Limits, parameters: &[u8]) -> Self {
        let expected = match role {
            Role::Client(_) => MessageType::ServerHello,
            Role::Server(_) => MessageType::ClientHello,
        };
        Self {
            role,
            seed,
            sizes,
            limits,
            parameters: parameters.to_vec(),
            incoming: Vec::new(),
            outgoing: PerSpace::default(),
            expected: Some(expected),
            transcript: 0,
            exporter: 0,
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
            Role::Server(_) => Side::Server,
        }
    }

    /// 8 bytes in the place of a TLS random.
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

    /// How long the first message in `incoming` is, if it is whole.
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
                self.exporter = self.transcript;
                self.say_finished()?;
                self.add_one_rtt_keys(secret);
                Ok(())
            }
            Side::Server => self.say(Space::Application, |sizes, out| {
                let size = usize::from(sizes.new_session_ticket);
                messages::message(MessageType::NewSessionTicket, &[], size, out)
            }),
        }
    }

    fn say_finished(&mut self) -> Result<(), SessionError> {
        let body = self.transcript.to_be_bytes();
        self.say(Space::Handshake, |sizes, out| {
            messages::message(
                MessageType::Finished,
                &body,
                usize::from(sizes.finished),
                out,
            )
        })
    }

    /// Writes a message and adds it to the transcript.
    fn say(
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

    /// What the keys of the level that begins now follow from.
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

impl Session for PlainSession {
    fn read_crypto(&mut self, space: Space, data: &[u8]) -> Result<(), SessionError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.read(space, data);
        self.failed = result.clone().err();
        result
    }

    fn write_crypto(&mut self, space: Space, out: &mut Vec<u8>) -> usize {
        let data = self.outgoing.get_mut(space);
        let len = data.len();
        out.append(data);
        len
    }

    fn next_keys(&mut self) -> Option<NewKeys> {
        self.keys.pop_front()
    }

    fn is_handshaking(&self) -> bool {
        self.expected.is_some()
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        if self.side() == Side::Client && self.is_handshaking() {
            return None;
        }
        self.peer_parameters.as_deref()
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        match &self.role {
            Role::Client(Some(resumption)) => Some(&resumption.parameters),
            Role::Client(None) | Role::Server(_) => None,
        }
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    fn early_data(&self) -> EarlyData {
        self.early_data
    }

    fn is_resumed(&self) -> Option<bool> {
        self.resumed
    }

    fn tickets_received(&self) -> u32 {
        self.tickets_received
    }

    fn cipher_suite(&self) -> Option<&'static str> {
        self.resumed.map(|_| "plain")
    }

    fn peer_certificate(&self) -> Option<&[u8]> {
        None
    }

    fn export_keying_material(
        &self,
        label: &[u8],
        context: Option<&[u8]>,
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        if self.is_handshaking() {
            return Err(ExportError);
        }
        let mut checksum = Checksum::new(self.exporter, out.len() as u64);
        checksum.add(label);
        checksum.add(context.unwrap_or_default());
        for (number, chunk) in (0..).zip(out.chunks_mut(8)) {
            let word = mix(checksum.word(), number).to_be_bytes();
            for (to, from) in chunk.iter_mut().zip(word) {
                *to = from;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for PlainSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainSession")
            .field("side", &self.side())
            .field("expected", &self.expected)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
