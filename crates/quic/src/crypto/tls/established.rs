//! A server's session once its handshake is complete and its tickets are written.
//!
//! Owns the values that a [`Session`](crate::crypto::Session) still has to return, and the traffic secrets, from which the first 1-RTT keys can be derived again. It accepts no messages: a client may not send any from here on, neither `KeyUpdate` (RFC 9001 §6) nor a
//! certificate, which a QUIC server does not request after the handshake (RFC 9001 §4.4).
//!
//! Decision: rustls uses about 4 KB for a connection, including its configuration, which would be kept as long as the
//! connection. rustls passes secrets only to the key log, so a key log of ours takes them from there.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_wire::{TransportError, packet::Version};
use rustls::{
    CipherSuite, HandshakeKind, KeyLog, SupportedCipherSuite, Tls13CipherSuite,
    crypto::tls13::OkmBlock,
    quic::{self, ServerConnection},
};

use crate::crypto::{
    EarlyData, Keys, NewKeys, Session, SessionError, Space, tickets::ResumedTicket, traffic,
};

#[cfg(test)]
mod tests;

/// The labels with which rustls logs the traffic secrets of client and server.
const LABELS: [&str; 2] = ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"];
/// The alert `unexpected_message` (RFC 8446 §6).
const UNEXPECTED_MESSAGE: u8 = 10;

/// A key log that stores secrets of one connection, and passes on everything that the configuration's own key log wants.
pub(super) struct SecretLog {
    next: Arc<dyn KeyLog>,
    /// In the order of [`LABELS`].
    secrets: Mutex<[Option<OkmBlock>; 2]>,
}

impl SecretLog {
    pub(super) fn new(next: Arc<dyn KeyLog>) -> Self {
        Self {
            next,
            secrets: Mutex::default(),
        }
    }

    fn take(&self) -> [Option<OkmBlock>; 2] {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *secrets)
    }
}

impl KeyLog for SecretLog {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if let Some(at) = LABELS.iter().position(|known| *known == label)
            && secret.len() <= OkmBlock::MAX_LEN
        {
            let mut kept = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
            kept[at] = Some(OkmBlock::new(secret));
        }
        if self.next.will_log(label) {
            self.next.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        LABELS.contains(&label) || self.next.will_log(label)
    }
}

/// Secrets are not shown.
impl fmt::Debug for SecretLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretLog(..)")
    }
}

/// A server's session whose handshake is complete.
pub(super) struct Established {
    version: Version,
    /// The same in rustls' type.
    key_version: quic::Version,
    early_data: EarlyData,
    kind: Option<HandshakeKind>,
    parameters: Option<Box<[u8]>>,
    alpn: Option<Box<[u8]>>,
    server_name: Option<Box<str>>,
    certificate: Option<Box<[u8]>>,
    suite: &'static Tls13CipherSuite,
    resumed: Option<Box<ResumedTicket>>,
    /// The traffic secrets of client and server.
    traffic: [OkmBlock; 2],
}

impl Established {
    /// The session of a complete handshake. `None` if its secrets are not known, or are of no use.
    pub(super) fn new(
        connection: &ServerConnection,
        (version, key_version): (Version, quic::Version),
        early_data: EarlyData,
        log: &SecretLog,
        resumed: Option<ResumedTicket>,
    ) -> Option<Self> {
        let Some(SupportedCipherSuite::Tls13(suite)) = connection.negotiated_cipher_suite() else {
            return None;
        };
        traffic::derivation(suite)?;
        let certificates = connection.peer_certificates().unwrap_or_default();
        let [client, server] = log.take();
        Some(Self {
            version,
            key_version,
            early_data,
            parameters: connection.quic_transport_parameters().map(Box::from),
            alpn: connection.alpn_protocol().map(Box::from),
            server_name: connection.server_name().map(Box::from),
            certificate: certificates.first().map(|first| Box::from(first.as_ref())),
            kind: connection.handshake_kind(),
            suite,
            traffic: [client?, server?],
            resumed: resumed.map(Box::new),
        })
    }
}

impl Session for Established {
    fn read_crypto(&mut self, space: Space, _: &[u8]) -> Result<(), SessionError> {
        if space != Space::Application {
            return Err(SessionError::misplaced(space, Space::Application));
        }
        Err(SessionError::new(
            TransportError::from_tls_alert(UNEXPECTED_MESSAGE),
            "a handshake message after the handshake",
        ))
    }

    fn write_crypto(&mut self, _: Space, _: &mut Vec<u8>) -> usize {
        0
    }

    fn next_keys(&mut self) -> Option<NewKeys> {
        None
    }

    fn version(&self) -> Version {
        self.version
    }

    /// Only a client follows.
    fn follow(&mut self, _: Version) {}

    fn is_handshaking(&self) -> bool {
        false
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        self.parameters.as_deref()
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        None
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
        Some(self.kind? == HandshakeKind::Resumed)
    }

    fn tickets_received(&self) -> u32 {
        0
    }

    fn resumed_ticket(&self) -> Option<&ResumedTicket> {
        self.resumed.as_deref()
    }

    fn cipher_suite(&self) -> Option<&'static str> {
        Some(suite_name(self.suite.common.suite))
    }

    fn peer_certificate(&self) -> Option<&[u8]> {
        self.certificate.as_deref()
    }

    fn one_rtt_keys(&self) -> Option<Keys> {
        let derivation = traffic::derivation(self.suite)?;
        let secrets = self.traffic.each_ref();
        Some(traffic::keys(derivation, self.key_version, secrets))
    }
}

impl fmt::Debug for Established {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Established(..)")
    }
}

/// The name of a cipher suite in logs.
pub(super) fn suite_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        _ => "another",
    }
}
