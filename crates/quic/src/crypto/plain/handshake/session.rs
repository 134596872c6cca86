//! The session interface of a handshake without cryptography.

use std::fmt;

use lastbyte_wire::{Side, packet::Version};

use super::{EarlyData, NewKeys, PlainSession, Role, SessionError, Space};
use crate::crypto::Session;

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
        // Its memory is not needed again: a handshake has little output.
        out.append(&mut std::mem::take(data));
        len
    }

    fn next_keys(&mut self) -> Option<NewKeys> {
        self.keys.pop_front()
    }

    fn version(&self) -> Version {
        self.version
    }

    /// Keys depend only on the handshake.
    fn follow(&mut self, version: Version) {
        self.version = version;
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
            Role::Client(None) | Role::Server(..) => None,
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
