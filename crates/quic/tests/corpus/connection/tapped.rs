//! Sessions whose keys can be had a second time: a twin with the same seed reads the same bytes.

use std::sync::{Arc, Mutex};

use lastbyte_quic::crypto::{
    ClientCrypto, EarlyData, Keys, NewKeys, ServerCrypto, Session, SessionError, Space, StartError,
    VersionOffer,
};
use lastbyte_wire::{ConnectionId, packet::Version};

use super::packets::KeyRing;

/// Where sessions come from, and where their keys go.
#[derive(Debug)]
pub(crate) struct Tapped<C> {
    crypto: C,
    ring: Arc<Mutex<KeyRing>>,
}

impl<C> Tapped<C> {
    pub(crate) const fn new(crypto: C, ring: Arc<Mutex<KeyRing>>) -> Self {
        Self { crypto, ring }
    }

    /// The keys of both ends' Initial packets follow from the same ID.
    fn begin(&self, destination: &ConnectionId) {
        self.ring.lock().expect("unpoisoned").begin(*destination);
    }

    fn pair(
        &self,
        start: impl Fn() -> Result<Box<dyn Session>, StartError>,
    ) -> Result<Box<dyn Session>, StartError> {
        Ok(Box::new(Pair {
            session: start()?,
            twin: start()?,
            ring: Arc::clone(&self.ring),
        }))
    }
}

impl<C: ClientCrypto> ClientCrypto for Tapped<C> {
    fn can_follow(&self) -> bool {
        self.crypto.can_follow()
    }

    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        self.begin(destination);
        self.crypto.initial_keys(version, destination)
    }

    fn start(
        &self,
        version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, StartError> {
        self.pair(|| self.crypto.start(version, server_name, parameters))
    }
}

impl<C: ServerCrypto> ServerCrypto for Tapped<C> {
    fn initial_keys(&self, version: Version, destination: &ConnectionId) -> Keys {
        self.begin(destination);
        self.crypto.initial_keys(version, destination)
    }

    fn start(&self, version: Version, parameters: &[u8]) -> Result<Box<dyn Session>, StartError> {
        self.start_with(version, parameters, Vec::new())
    }

    fn start_with(
        &self,
        version: Version,
        parameters: &[u8],
        better: Vec<VersionOffer>,
    ) -> Result<Box<dyn Session>, StartError> {
        self.pair(|| self.crypto.start_with(version, parameters, better.clone()))
    }
}

#[derive(Debug)]
struct Pair {
    session: Box<dyn Session>,
    twin: Box<dyn Session>,
    ring: Arc<Mutex<KeyRing>>,
}

impl Session for Pair {
    fn read_crypto(&mut self, space: Space, data: &[u8]) -> Result<(), SessionError> {
        let _ = self.twin.read_crypto(space, data);
        self.session.read_crypto(space, data)
    }

    fn write_crypto(&mut self, space: Space, out: &mut Vec<u8>) -> usize {
        self.twin.write_crypto(space, &mut Vec::new());
        self.session.write_crypto(space, out)
    }

    fn next_keys(&mut self) -> Option<NewKeys> {
        if let Some(keys) = self.twin.next_keys() {
            self.ring.lock().expect("unpoisoned").add(keys);
        }
        self.session.next_keys()
    }

    fn version(&self) -> Version {
        self.session.version()
    }

    fn follow(&mut self, version: Version) {
        self.twin.follow(version);
        self.session.follow(version);
    }

    fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        self.session.peer_parameters()
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        self.session.remembered_parameters()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.session.alpn()
    }

    fn server_name(&self) -> Option<&str> {
        self.session.server_name()
    }

    fn early_data(&self) -> EarlyData {
        self.session.early_data()
    }

    fn is_resumed(&self) -> Option<bool> {
        self.session.is_resumed()
    }

    fn tickets_received(&self) -> u32 {
        self.session.tickets_received()
    }

    fn cipher_suite(&self) -> Option<&'static str> {
        self.session.cipher_suite()
    }

    fn peer_certificate(&self) -> Option<&[u8]> {
        self.session.peer_certificate()
    }
}
