//! The TLS 1.3 handshake (RFC 9001 §4, §8), by rustls.
//!
//! Owns: what of rustls' behaviour a QUIC connection has to know, said in the words of [`Session`]; which space data may
//! come in; what an error is called on the wire. Never: reads the environment or a clock itself, or keeps tickets, which
//! are for the configuration's stores or for [`super::tickets`]. rustls draws randomness inside, and asks the configuration's `time_provider`.
//!
//! Decisions:
//!
//! - *Configurations are rustls' own*, checked when they are wrapped: certificates, verifiers, tickets and the key log
//!   ([`super::key_log`]) are rustls' business, and hiding them would only rename them.
//! - *A session fails once and for all*: rustls must not be asked again after an error.
//! - *rustls knows no encryption levels when it reads*, so this file does (RFC 9001 §4.1.3).
//! - *The version can change in the handshake* (RFC 9368 §2.3), though rustls derives all keys for the one that it began
//!   with. A server looks into the `ClientHello` before rustls begins ([`hello`]). A client derives keys with the labels of
//!   the other version ([`super::kdf_hook`]), and so does a server those of 0-RTT, which stays in the first. Without a provider
//!   that allows it no client lists other versions, and no server changes them under 0-RTT.

use std::{collections::VecDeque, fmt};

use lastbyte_wire::{TransportError, packet::Version};
use rustls::{
    CipherSuite, Error, HandshakeKind,
    quic::{self, Connection, KeyChange},
};

use super::{
    CRYPTO_OUT_MAX, EarlyData, ExportError, NewKeys, OneRttKeys, PerSpace, Session, SessionError,
    Space, VersionOffer, best_offer, kdf_hook,
    key_update::KeyUpdates,
    tickets::{ApplicationDataTooLong, ResumedTicket, ServerTickets, client::SessionWatch},
};

mod config;
mod hello;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use config::{ConfigError, TlsClient, TlsServer};

/// The same version in rustls' words.
pub(super) const fn version(version: Version) -> quic::Version {
    match version {
        Version::V1 => quic::Version::V1,
        Version::V2 => quic::Version::V2,
    }
}

/// A handshake by rustls.
struct TlsSession {
    connection: Connection,
    /// Data to be sent. [`CRYPTO_OUT_MAX`] bytes a space at most.
    outgoing: PerSpace<Vec<u8>>,
    /// The space that what rustls writes next belongs to.
    writing: Space,
    /// Keys not taken yet: three at most.
    keys: VecDeque<NewKeys>,
    /// The client offered 0-RTT; at a server: it is accepted.
    offered: bool,
    /// A server asked a client for another `ClientHello`, which rules 0-RTT out (RFC 8446 §4.2.10).
    retried: bool,
    has_one_rtt_keys: bool,
    server_name: Option<String>,
    remembered: Option<Vec<u8>>,
    failed: Option<SessionError>,
    resumption: Resumption,
    version: Version,
    /// With whose labels keys are derived, if not with those of the version that rustls knows.
    labels: Option<Version>,
    /// A server that has yet to choose its version.
    choice: Option<Box<Choice>>,
}

/// What a server may choose from.
struct Choice {
    server: TlsServer,
    better: Vec<VersionOffer>,
    /// What came of the `ClientHello`.
    hello: Vec<u8>,
}

/// Who sees to it that sessions can be resumed, beside rustls.
enum Resumption {
    /// No session: it is for the configuration's stores.
    Stores,
    /// A server's tickets.
    Server(ServerTickets),
    /// What is to be saved of a client's.
    Client(SessionWatch),
}

impl TlsSession {
    fn new(connection: Connection, version: Version, resumption: Resumption) -> Self {
        Self {
            connection,
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
            choice: None,
        }
    }

    /// A client, with its `ClientHello` said.
    fn client(
        connection: quic::ClientConnection,
        version: Version,
        server_name: &str,
        resumption: Resumption,
    ) -> Result<Self, SessionError> {
        let mut session = Self::new(connection.into(), version, resumption);
        session.server_name = Some(server_name.to_owned());
        if let Some(keys) = session.connection.zero_rtt_keys() {
            let remembered = session.connection.quic_transport_parameters();
            session.remembered = remembered.map(<[u8]>::to_vec);
            session.offered = true;
            session.keys.push_back(NewKeys::ZeroRtt(keys.into()));
        }
        session.pump()?;
        Ok(session)
    }

    /// The only space that data may come in now (RFC 9001 §4.1.3). Before Handshake keys are there, Initial; then
    /// Handshake until the handshake is complete.
    fn reading(&self) -> Space {
        if self.writing == Space::Initial {
            Space::Initial
        } else if self.connection.is_handshaking() {
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
        if let Some(mut choice) = self.choice.take() {
            choice.hello.extend_from_slice(data);
            if !hello::is_whole(&choice.hello) {
                self.choice = Some(choice);
                return Ok(());
            }
            let first = self.choose(&choice);
            return self.read_whole(space, &choice.hello, first);
        }
        self.read_whole(space, data, None)
    }

    /// Goes on in the best version that the client lists. Returns the one that it began with, if that is another.
    fn choose(&mut self, choice: &Choice) -> Option<Version> {
        let seen = hello::look(&choice.hello);
        let best = &choice.better[best_offer(&choice.better, seen.parameters)?];
        let first = self.version;
        if seen.offers_early_data && !choice.server.can_relabel() {
            return None;
        }
        // rustls took this configuration before.
        let (connection, resumption) = choice
            .server
            .connect(first, best.version, &best.parameters)
            .ok()?;
        self.connection = connection;
        self.resumption = resumption;
        self.version = best.version;
        Some(first)
    }

    /// Of a `ClientHello`, with the version that the client began with, if the server has chosen another.
    fn read_whole(
        &mut self,
        space: Space,
        data: &[u8],
        first: Option<Version>,
    ) -> Result<(), SessionError> {
        let result = match &mut self.resumption {
            Resumption::Client(watch) if space == Space::Application => {
                watch.read(&mut self.connection, data)
            }
            Resumption::Server(tickets) if space == Space::Initial => {
                tickets.on_initial(data);
                self.connection.read_hs(data)
            }
            _ => self.connection.read_hs(data),
        };
        if let Err(error) = result {
            return Err(self.describe(&error));
        }
        if let Resumption::Server(tickets) = &mut self.resumption
            && let Some(kind) = self.connection.handshake_kind()
        {
            tickets.on_answered(kind == HandshakeKind::Resumed);
        }
        if !self.is_client()
            && space == Space::Initial
            && let Some(keys) = kdf_hook::with_labels(first, || self.connection.zero_rtt_keys())
        {
            self.offered = true;
            self.keys.push_back(NewKeys::ZeroRtt(keys.into()));
        }
        let said = self.outgoing.get_mut(Space::Initial).len();
        self.pump()?;
        if self.is_client() && self.outgoing.get_mut(Space::Initial).len() > said {
            self.retried = true;
        }
        Ok(())
    }

    /// Takes from rustls what it has to say, and keys.
    fn pump(&mut self) -> Result<(), SessionError> {
        loop {
            let out = self.outgoing.get_mut(self.writing);
            let before = out.len();
            let connection = &mut self.connection;
            let change = kdf_hook::with_labels(self.labels, || connection.write_hs(out));
            if let Resumption::Server(tickets) = &mut self.resumption
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

    /// What an error is called on the wire: the alert that TLS raised (RFC 9001 §4.8). Without one it is ours, unless
    /// rustls blames the peer.
    fn describe(&self, error: &Error) -> SessionError {
        let code = match (self.connection.alert(), error) {
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

    const fn is_client(&self) -> bool {
        matches!(self.connection, Connection::Client(_))
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
        // Its memory is not needed again: a handshake says most things once.
        out.append(&mut std::mem::take(data));
        len
    }

    fn next_keys(&mut self) -> Option<NewKeys> {
        self.keys.pop_front()
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
        // Until then a client's may be those it remembers.
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
        match &self.connection {
            Connection::Client(_) => self.server_name.as_deref(),
            Connection::Server(connection) => connection.server_name(),
        }
    }

    fn early_data(&self) -> EarlyData {
        if !self.offered {
            return EarlyData::Unavailable;
        }
        match &self.connection {
            Connection::Server(_) => EarlyData::Accepted,
            Connection::Client(_) if self.retried => EarlyData::Rejected,
            Connection::Client(client) if client.is_early_data_accepted() => EarlyData::Accepted,
            Connection::Client(_) if self.has_one_rtt_keys => EarlyData::Rejected,
            Connection::Client(_) => EarlyData::Offered,
        }
    }

    fn is_resumed(&self) -> Option<bool> {
        let kind = self.connection.handshake_kind()?;
        Some(kind == HandshakeKind::Resumed)
    }

    fn tickets_received(&self) -> u32 {
        match &self.connection {
            Connection::Client(connection) => connection.tls13_tickets_received(),
            Connection::Server(_) => 0,
        }
    }

    fn resumed_ticket(&self) -> Option<&ResumedTicket> {
        match &self.resumption {
            Resumption::Server(tickets) => tickets.resumed(),
            Resumption::Stores | Resumption::Client(_) => None,
        }
    }

    fn set_ticket_data(&mut self, data: &[u8]) -> Result<(), ApplicationDataTooLong> {
        match &mut self.resumption {
            Resumption::Server(tickets) => tickets.set_application(data),
            Resumption::Stores | Resumption::Client(_) => Ok(()),
        }
    }

    fn cipher_suite(&self) -> Option<&'static str> {
        let suite = self.connection.negotiated_cipher_suite()?;
        Some(match suite.suite() {
            CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
            CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
            CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
            _ => "another",
        })
    }

    fn peer_certificate(&self) -> Option<&[u8]> {
        let certificates = self.connection.peer_certificates()?;
        certificates.first().map(AsRef::as_ref)
    }

    fn export_keying_material(
        &self,
        label: &[u8],
        context: Option<&[u8]>,
        out: &mut [u8],
    ) -> Result<(), ExportError> {
        self.connection
            .export_keying_material(out, label, context)
            .map(drop)
            .map_err(|_| ExportError)
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
