//! The TLS 1.3 handshake (RFC 9001 §4, §8), with rustls.
//!
//! Adapts rustls to [`Session`]; owns the check in which space data may arrive, and the error codes. It reads neither
//! the environment nor a clock, and stores no tickets, which belong to the configuration's stores or to
//! [`super::tickets`]. rustls itself draws randomness, and uses the configuration's `time_provider`.
//!
//! Decisions:
//!
//! - *Configurations are rustls' own*, checked when they are wrapped: certificates, verifiers, tickets and the key log
//!   ([`super::key_log`]) are handled by rustls, and wrapping them would only rename them.
//! - *A server's rustls state is freed when its work is done* ([`established`]), if there are [`super::tickets`]: a
//!   connection lives much longer than its handshake.
//! - *Errors are permanent*: rustls must not be called again after an error.
//! - *rustls does not check encryption levels when it reads*, so this file does (RFC 9001 §4.1.3).
//! - *rustls accepts a `ClientHello` of QUIC's drafts, and one with a session ID*; [`hello`] refuses both (RFC 9001
//!   §8.2, §8.4). A client's rustls refuses extensions that it did not offer.
//! - *The version can change in the handshake* (RFC 9368 §2.3), though rustls derives all keys for the version it
//!   started with. A server parses the `ClientHello` before rustls starts ([`hello`]). A client derives keys with the
//!   labels of the other version ([`super::kdf_hook`]), and so does a server for 0-RTT, which stays in the first
//!   version. Without a provider that supports it no client lists other versions, and no server changes them with
//!   0-RTT.

use std::{collections::VecDeque, fmt, sync::Arc};

use lastbyte_wire::{TransportError, packet::Version};
use rustls::{
    Error, HandshakeKind,
    quic::{self, Connection, KeyChange},
};

use super::{
    CRYPTO_OUT_MAX, EarlyData, NewKeys, OneRttKeys, PerSpace, Session, SessionError, Space,
    VersionOffer, best_offer, kdf_hook,
    key_update::KeyUpdates,
    tickets::{ResumedTicket, ServerTickets, client::SessionWatch},
};

mod config;
mod established;
mod hello;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use config::{ConfigError, TlsClient, TlsServer};
use established::{Established, SecretLog, suite_name};

/// The same version in rustls' type.
pub(super) const fn version(version: Version) -> quic::Version {
    match version {
        Version::V1 => quic::Version::V1,
        Version::V2 => quic::Version::V2,
    }
}

/// A handshake with rustls.
struct TlsSession {
    connection: Box<Connection>,
    /// Data to be sent, at most [`CRYPTO_OUT_MAX`] bytes per space.
    outgoing: PerSpace<Vec<u8>>,
    /// The space of rustls' next output.
    writing: Space,
    /// Keys not taken yet: at most three.
    keys: VecDeque<NewKeys>,
    /// The client offered 0-RTT; at a server: it is accepted.
    offered: bool,
    /// A server requested another `ClientHello` from a client, which prevents 0-RTT (RFC 8446 §4.2.10).
    retried: bool,
    has_one_rtt_keys: bool,
    server_name: Option<String>,
    remembered: Option<Vec<u8>>,
    failed: Option<SessionError>,
    resumption: Resumption,
    version: Version,
    /// Which version's labels are used to derive keys, if not those of the version known to rustls.
    labels: Option<Version>,
    /// The start of a `ClientHello` that is not complete yet, at a server.
    hello: Vec<u8>,
    /// A server that has yet to choose its version.
    choice: Option<Box<Choice>>,
}

/// The versions to choose from.
struct Choice {
    server: TlsServer,
    better: Vec<VersionOffer>,
}

/// How sessions are stored for resumption, apart from rustls.
enum Resumption {
    /// Not here: by the configuration's stores.
    Stores,
    /// A server's tickets, and the secrets of an established session.
    Server(ServerTickets, Arc<SecretLog>),
    /// The client's sessions to be saved.
    Client(SessionWatch),
}

impl TlsSession {
    fn new(connection: Connection, version: Version, resumption: Resumption) -> Self {
        Self {
            connection: Box::new(connection),
            outgoing: PerSpace::default(),
            writing: Space::Initial,
            keys: VecDeque::new(),
            offered: false,
            retried: false,
            has_one_rtt_keys: false,
            server_name: None,
            remembered: None,
            failed: None,
            resumption,
            version,
            labels: None,
            hello: Vec::new(),
            choice: None,
        }
    }

    /// A client that has written its `ClientHello`.
    fn client(
        connection: quic::ClientConnection,
        version: Version,
        server_name: &str,
        resumption: Resumption,
    ) -> Result<Self, SessionError> {
        let connection: Connection = connection.into();
        let zero_rtt = connection.zero_rtt_keys();
        let remembered = connection.quic_transport_parameters().map(<[u8]>::to_vec);
        let mut session = Self::new(connection, version, resumption);
        session.server_name = Some(server_name.to_owned());
        if let Some(keys) = zero_rtt {
            session.remembered = remembered;
            session.offered = true;
            session.keys.push_back(NewKeys::ZeroRtt(keys.into()));
        }
        session.pump()?;
        Ok(session)
    }

    /// The only space in which data may arrive now (RFC 9001 §4.1.3): Initial before there are Handshake keys; then
    /// Handshake until the handshake is complete.
    fn reading(&self) -> Space {
        if self.writing == Space::Initial {
            Space::Initial
        } else if self.is_handshaking() {
            Space::Handshake
        } else {
            Space::Application
        }
    }

    fn read(&mut self, space: Space, data: &[u8]) -> Result<(), SessionError> {
        let expected = self.reading();
        if space != expected {
            return Err(SessionError::misplaced(space, expected));
        }
        if self.is_client() || space != Space::Initial {
            return self.read_whole(space, data, None);
        }
        self.hello.extend_from_slice(data);
        if !hello::is_whole(&self.hello) {
            return Ok(());
        }
        let hello = std::mem::take(&mut self.hello);
        let seen = hello::look(&hello)?;
        let choice = self.choice.take();
        let first = choice.and_then(|choice| self.choose(&choice, &seen));
        self.read_whole(space, &hello, first)
    }

    /// Continues in the best version that the client lists. Returns the one that it started with, if that differs.
    fn choose(&mut self, choice: &Choice, seen: &hello::Seen<'_>) -> Option<Version> {
        let best = &choice.better[best_offer(&choice.better, seen.parameters?)?];
        let first = self.version;
        if seen.offers_early_data && !choice.server.can_relabel() {
            return None;
        }
        // rustls accepted this configuration before.
        let (connection, resumption) = choice
            .server
            .connect(first, best.version, &best.parameters)
            .ok()?;
        *self.connection = connection;
        self.resumption = resumption;
        self.version = best.version;
        Some(first)
    }

    /// The result of a `ClientHello`, with the client's first version if the server has chosen another.
    fn read_whole(
        &mut self,
        space: Space,
        data: &[u8],
        first: Option<Version>,
    ) -> Result<(), SessionError> {
        let connection = &mut *self.connection;
        let result = match &mut self.resumption {
            Resumption::Client(watch) if space == Space::Application => {
                watch.read(connection, data)
            }
            Resumption::Server(tickets, _) if space == Space::Initial => {
                tickets.on_initial(data);
                connection.read_hs(data)
            }
            _ => connection.read_hs(data),
        };
        if let Err(error) = result {
            return Err(describe(connection, &error));
        }
        if let Resumption::Server(tickets, _) = &mut self.resumption
            && let Some(kind) = connection.handshake_kind()
        {
            tickets.on_answered(kind == HandshakeKind::Resumed);
        }
        if matches!(connection, Connection::Server(_))
            && space == Space::Initial
            && let Some(keys) = kdf_hook::with_labels(first, || connection.zero_rtt_keys())
        {
            self.offered = true;
            self.keys.push_back(NewKeys::ZeroRtt(keys.into()));
        }
        let len_before = self.outgoing.get_mut(Space::Initial).len();
        self.pump()?;
        if self.is_client() && self.outgoing.get_mut(Space::Initial).len() > len_before {
            self.retried = true;
        }
        Ok(())
    }

    /// Takes rustls' output and keys.
    fn pump(&mut self) -> Result<(), SessionError> {
        loop {
            let out = self.outgoing.get_mut(self.writing);
            let before = out.len();
            let change = kdf_hook::with_labels(self.labels, || self.connection.write_hs(out));
            if let Resumption::Server(tickets, _) = &mut self.resumption
                && self.writing == Space::Application
            {
                tickets.rewrite(out, before);
            }
            if out.len() > CRYPTO_OUT_MAX {
                return Err(SessionError::new(
                    TransportError::INTERNAL_ERROR,
                    "the handshake takes more bytes than are held for a packet number space",
                ));
            }
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.writing = Space::Handshake;
                    self.keys.push_back(NewKeys::Handshake(keys.into()));
                }
                Some(KeyChange::OneRtt { keys, next }) => {
                    self.writing = Space::Application;
                    self.has_one_rtt_keys = true;
                    let keys = OneRttKeys::new(keys.into(), KeyUpdates::tls(next, self.labels));
                    self.keys.push_back(NewKeys::OneRtt(Box::new(keys)));
                }
                None => return Ok(()),
            }
        }
    }

    fn is_client(&self) -> bool {
        matches!(*self.connection, Connection::Client(_))
    }
}

/// The error code: the alert that TLS raised (RFC 9001 §4.8). Without one it is an internal error, unless rustls blames
/// the peer.
fn describe(connection: &Connection, error: &Error) -> SessionError {
    let code = match (connection.alert(), error) {
        (Some(alert), _) => TransportError::from_tls_alert(alert.into()),
        (
            None,
            Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::InvalidMessage(_)
            | Error::PeerIncompatible(_)
            | Error::PeerMisbehaved(_)
            | Error::InvalidCertificate(_),
        ) => TransportError::PROTOCOL_VIOLATION,
        (None, _) => TransportError::INTERNAL_ERROR,
    };
    SessionError {
        code,
        reason: error.to_string().into(),
    }
}

impl Session for TlsSession {
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
        // Its memory is not needed again: a handshake has little output.
        let mut data = std::mem::take(data);
        if out.is_empty() {
            *out = data;
        } else {
            out.append(&mut data);
        }
        len
    }

    fn next_keys(&mut self) -> Option<NewKeys> {
        let keys = self.keys.pop_front();
        if keys.is_none() {
            // Called about three times in a connection's life.
            self.keys = VecDeque::new();
        }
        keys
    }

    fn version(&self) -> Version {
        self.version
    }

    fn follow(&mut self, version: Version) {
        self.labels = Some(version);
        self.version = version;
        if let Resumption::Client(watch) = &mut self.resumption {
            watch.follow(version);
        }
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        // Until then a client may return the remembered ones.
        if self.is_client() && !self.has_one_rtt_keys {
            return None;
        }
        self.connection.quic_transport_parameters()
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        self.remembered.as_deref()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    fn server_name(&self) -> Option<&str> {
        match &*self.connection {
            Connection::Client(_) => self.server_name.as_deref(),
            Connection::Server(server) => server.server_name(),
        }
    }

    fn early_data(&self) -> EarlyData {
        if !self.offered {
            return EarlyData::Unavailable;
        }
        match &*self.connection {
            Connection::Server(_) => EarlyData::Accepted,
            Connection::Client(_) if self.retried => EarlyData::Rejected,
            Connection::Client(client) if client.is_early_data_accepted() => EarlyData::Accepted,
            Connection::Client(_) if self.has_one_rtt_keys => EarlyData::Rejected,
            Connection::Client(_) => EarlyData::Offered,
        }
    }

    fn is_resumed(&self) -> Option<bool> {
        Some(self.connection.handshake_kind()? == HandshakeKind::Resumed)
    }

    fn tickets_received(&self) -> u32 {
        match &*self.connection {
            Connection::Client(client) => client.tls13_tickets_received(),
            Connection::Server(_) => 0,
        }
    }

    fn resumed_ticket(&self) -> Option<&ResumedTicket> {
        match &self.resumption {
            Resumption::Server(tickets, _) => tickets.resumed(),
            Resumption::Stores | Resumption::Client(_) => None,
        }
    }

    fn cipher_suite(&self) -> Option<&'static str> {
        Some(suite_name(
            self.connection.negotiated_cipher_suite()?.suite(),
        ))
    }

    fn peer_certificate(&self) -> Option<&[u8]> {
        let certificates = self.connection.peer_certificates()?;
        certificates.first().map(AsRef::as_ref)
    }

    /// Once a server's tickets are written, rustls has nothing more to do.
    fn established(&mut self) -> Option<Box<dyn Session>> {
        let early_data = self.early_data();
        let has_output = Space::ALL
            .into_iter()
            .any(|space| !self.outgoing.get(space).is_empty());
        let (Connection::Server(server), Resumption::Server(tickets, log)) =
            (&*self.connection, &mut self.resumption)
        else {
            return None;
        };
        if server.is_handshaking() || has_output || !self.keys.is_empty() {
            return None;
        }
        let resumed = tickets.take_resumed();
        let versions = (self.version, version(self.version));
        let established = Established::new(server, versions, early_data, log, resumed)?;
        Some(Box::new(established))
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession")
            .field("connection", &self.connection)
            .field("reading", &self.reading())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
