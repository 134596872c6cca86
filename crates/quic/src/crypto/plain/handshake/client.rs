//! The client's messages, and its processing of the server's (RFC 8446 §4.1.2, §4.1.3, §4.3.1).

use super::{
    ClientHello, EarlyData, EncryptedExtensions, MessageType, NewKeys, PacketType, PlainSession,
    Role, ServerHello, SessionError, Side, Space, Version, decode_error, too_long, unexpected,
};
use crate::crypto::plain::PlainClient;

impl PlainSession {
    /// A client that has sent its `ClientHello`.
    pub(in crate::crypto::plain) fn client(
        config: &PlainClient,
        version: Version,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Self, SessionError> {
        let role = Role::Client(config.resumption.clone());
        let settings = (config.seed, config.sizes, config.limits);
        let mut session = Self::new(role, version, settings, parameters);
        session.server_name = Some(server_name.to_owned());
        session.write_client_hello(&config.alpn)?;
        Ok(session)
    }

    fn write_client_hello(&mut self, alpn: &[Vec<u8>]) -> Result<(), SessionError> {
        let mut protocols = Vec::new();
        for protocol in alpn {
            protocols.push(u8::try_from(protocol.len()).map_err(too_long)?);
            protocols.extend_from_slice(protocol);
        }
        let (offers_ticket, offers_early_data) = match &self.role {
            Role::Client(Some(resumption)) => (true, resumption.early_data),
            Role::Client(None) | Role::Server(..) => (false, false),
        };
        let random = self.random();
        let server_name = self.server_name.clone().unwrap_or_default();
        let parameters = std::mem::take(&mut self.parameters);
        self.write_message(Space::Initial, |sizes, out| {
            ClientHello {
                random,
                offers_ticket,
                offers_early_data,
                server_name: server_name.as_bytes(),
                protocols: &protocols,
                parameters: &parameters,
            }
            .encode(sizes, out)
        })?;
        if offers_early_data {
            self.early_data = EarlyData::Offered;
            let keys = self.secret().directional(PacketType::ZeroRtt, Side::Client);
            self.keys.push_back(NewKeys::ZeroRtt(keys));
        }
        Ok(())
    }

    pub(super) fn on_server_hello(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let hello = ServerHello::decode(body).map_err(decode_error)?;
        if hello.resumes && !matches!(self.role, Role::Client(Some(_))) {
            return Err(unexpected());
        }
        self.resumed = Some(hello.resumes);
        self.add_handshake_keys();
        self.expected = Some(MessageType::EncryptedExtensions);
        Ok(())
    }

    pub(super) fn on_encrypted_extensions(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let extensions = EncryptedExtensions::decode(body).map_err(decode_error)?;
        if self.early_data == EarlyData::Offered {
            self.early_data = if extensions.accepts_early_data {
                EarlyData::Accepted
            } else {
                EarlyData::Rejected
            };
        }
        self.alpn = Some(extensions.protocol.to_vec());
        self.peer_parameters = Some(extensions.parameters.to_vec());
        self.expected = Some(if self.resumed == Some(true) {
            MessageType::Finished
        } else {
            MessageType::Certificate
        });
        Ok(())
    }
}
