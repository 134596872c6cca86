//! Saves sessions from the tickets that a client receives.
//!
//! Observes the CRYPTO data of 1-RTT packets as it is read, without delaying or changing it. What cannot be parsed is
//! not saved; rustls decides whether it is an error.

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

/// Observes one connection.
pub(in crate::crypto) struct SessionWatch {
    sessions: Arc<ClientSessions>,
    server: String,
    version: Version,
    messages: Messages,
    /// A message was too long to be assembled. The rest is not observed.
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

    /// The connection continues in another version, to which its tickets then belong (RFC 9369 §5).
    pub(in crate::crypto) const fn follow(&mut self, version: Version) {
        self.version = version;
    }

    /// Lets rustls read, and saves the sessions of all tickets that are complete.
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
        // A lifetime of 0 means that it must be discarded (RFC 8446 §4.6.1).
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
