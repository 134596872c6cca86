//! The server's processing of a `ClientHello`, and its messages (RFC 8446 §2).

use super::{
    ClientHello, EarlyData, EncryptedExtensions, MessageType, NO_APPLICATION_PROTOCOL, NewKeys,
    PacketType, PlainSession, Role, ServerHello, SessionError, Side, Space, alert, decode_error,
    messages, unexpected,
};
use crate::crypto::best_offer;

impl PlainSession {
    pub(super) fn on_client_hello(&mut self, body: &[u8]) -> Result<(), SessionError> {
        let Role::Server(config, better) = &mut self.role else {
            return Err(unexpected());
        };
        let hello = ClientHello::decode(body).map_err(decode_error)?;
        if let Some(index) = best_offer(better, hello.parameters) {
            let best = better.swap_remove(index);
            (self.version, self.parameters) = (best.version, best.parameters);
        }
        let name = std::str::from_utf8(hello.server_name).map_err(decode_error)?;
        let protocol = config
            .alpn
            .iter()
            .find(|ours| hello.protocols().any(|theirs| theirs == ours.as_slice()))
            .ok_or_else(|| {
                alert(
                    NO_APPLICATION_PROTOCOL,
                    "the client knows none of our application protocols",
                )
            })?
            .clone();
        let resumes = hello.offers_ticket && config.resumes;
        let accepts_early_data = resumes && hello.offers_early_data && config.accepts_early_data;
        self.server_name = Some(name.to_owned());
        self.peer_parameters = Some(hello.parameters.to_vec());
        self.resumed = Some(resumes);
        if accepts_early_data {
            self.early_data = EarlyData::Accepted;
            let keys = self.secret().directional(PacketType::ZeroRtt, Side::Client);
            self.keys.push_back(NewKeys::ZeroRtt(keys));
        }
        self.write_server_flight(resumes, accepts_early_data, &protocol)?;
        self.alpn = Some(protocol);
        self.expected = Some(MessageType::Finished);
        Ok(())
    }

    fn write_server_flight(
        &mut self,
        resumes: bool,
        accepts_early_data: bool,
        protocol: &[u8],
    ) -> Result<(), SessionError> {
        let random = self.random();
        self.write_message(Space::Initial, |sizes, out| {
            ServerHello { random, resumes }.encode(sizes, out)
        })?;
        self.add_handshake_keys();
        let parameters = std::mem::take(&mut self.parameters);
        self.write_message(Space::Handshake, |sizes, out| {
            EncryptedExtensions {
                accepts_early_data,
                protocol,
                parameters: &parameters,
            }
            .encode(sizes, out)
        })?;
        if !resumes {
            for message_type in [MessageType::Certificate, MessageType::CertificateVerify] {
                self.write_message(Space::Handshake, |sizes, out| {
                    let size = match message_type {
                        MessageType::Certificate => sizes.certificate,
                        _ => sizes.certificate_verify,
                    };
                    messages::message(message_type, &[], usize::from(size), out)
                })?;
            }
        }
        self.write_finished()?;
        let secret = self.secret();
        self.add_one_rtt_keys(secret);
        Ok(())
    }
}
