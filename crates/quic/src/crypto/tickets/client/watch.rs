//! From the tickets that a client is given to saved sessions.
//!
//! Owns: the CRYPTO data of 1-RTT packets, as they are read. Never: holds them back, changes them, or complains: what is
//! not understood is not saved, and rustls judges it.

use std::{sync::Arc, time::Duration};

use lastbyte_wire::{Side, packet::Version, transport_parameters::TransportParameters};
use rustls::{Error, quic::Connection};

use super::{
    super::message::{Messages, NewSessionTicket},
    ClientSessions, SavedSession,
};
use crate::{
    WallTime,
    crypto::kdf_hook::{self, Derived},
};

/// Watches one connection.
pub(in crate::crypto) struct SessionWatch {
    sessions: Arc<ClientSessions>,
    server: String,
    version: Version,
    messages: Messages,
    /// A message came that is too long to be put together. The rest is not watched.
    has_given_up: bool,
}

impl SessionWatch {
    pub(in crate::crypto) fn new(
        sessions: Arc<ClientSessions>,
        server: &str,
        version: Version,
    ) -> Self {
        Self {
            sessions,
            server: server.to_owned(),
            version,
            messages: Messages::default(),
            has_given_up: false,
        }
    }

    /// The connection goes on in another version, which its tickets are then of (RFC 9369 §5).
    pub(in crate::crypto) const fn follow(&mut self, version: Version) {
        self.version = version;
    }

    /// Lets rustls read, and saves the sessions of all tickets that became complete.
    pub(in crate::crypto) fn read(
        &mut self,
        connection: &mut Connection,
        data: &[u8],
    ) -> Result<(), Error> {
        let (result, derived) = kdf_hook::record(|| connection.read_hs(data));
        result?;
        if self.has_given_up {
            return Ok(());
        }
        self.messages.push(data);
        while let Some(message) = self.messages.next() {
            if let Some(session) = self.session(connection, message, &derived) {
                self.sessions.store.put(session);
            }
        }
        if self.messages.is_overlong() {
            self.messages.take_rest();
            self.has_given_up = true;
        }
        Ok(())
    }

    fn session(
        &self,
        connection: &Connection,
        message: Vec<u8>,
        derived: &[Derived],
    ) -> Option<SavedSession> {
        let ticket = NewSessionTicket::decode(&message)?;
        // A life of 0 means not to keep it (RFC 8446 §4.6.1).
        if ticket.lifetime_s == 0 {
            return None;
        }
        let psk = derived
            .iter()
            .find(|derived| derived.nonce == ticket.nonce)?
            .psk
            .clone();
        let parameters = connection.quic_transport_parameters()?;
        let parameters = TransportParameters::decode(parameters, Side::Server).ok()?;
        let now = self.sessions.clock.now();
        let session = SavedSession {
            server: self.server.clone(),
            version: self.version,
            suite: connection.negotiated_cipher_suite()?.suite().into(),
            group: connection.negotiated_key_exchange_group()?.name().into(),
            saved: WallTime::from_unix(Duration::from_millis(
                u64::try_from(now.since_unix_epoch().as_millis()).ok()?,
            )),
            alpn: connection.alpn_protocol()?.to_vec(),
            psk,
            parameters: parameters.remembered().to_vec(),
            chain: connection
                .peer_certificates()?
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
            message,
        };
        session.fits().then_some(session)
    }
}
