//! TLS configurations of all listeners: certificates and ticket keys, over QUIC and over TCP.
//!
//! Certificate and ticket keys can be replaced while connections continue. No file is read here: the caller passes the contents.

mod tickets;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use lastbyte_driver::Clock;
use lastbyte_http3 as http3;
use lastbyte_quic::{
    WallTime,
    crypto::{
        AeadProvider,
        key_log::KeyLogLines,
        provider,
        tickets::{
            Tickets, ZeroRtt,
            clock::WallClock,
            keys::{SECRET_LEN, TicketKeys},
            replay_filter::ReplayFilter,
        },
        tls::TlsServer,
        token::TokenKeys,
    },
    endpoint::TokenStore,
    random::Seed,
};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use self::tickets::TcpTickets;
use super::identity::Identity;

/// Number of `ClientHello`s with 0-RTT that are recorded, so that none is accepted twice.
const STRIKES: usize = 1 << 16;
/// Certificate and ticket keys of a running server.
#[derive(Debug)]
pub(crate) struct Credentials {
    certificate: Arc<CurrentCertificate>,
    quic_tickets: Arc<Tickets>,
    tcp_tickets: Arc<TcpTickets>,
    tokens: Arc<TokenStore>,
}

/// Maximum plaintext of a TLS record over TCP, in bytes. A client can read nothing of a record before it has received
/// all of it: one of 16 KiB does not fit into Linux's initial window of ten packets, so the header in it would be read
/// a round trip late.
pub(crate) const RECORD_CONTENT: usize = (8 << 10) - RECORD_HEADER;
/// Type, version and length of a record (RFC 8446 §5.1). rustls counts them as part of a fragment.
const RECORD_HEADER: usize = 5;

/// The TLS configurations of a server.
pub(crate) struct TlsConfigs {
    pub(crate) credentials: Credentials,
    pub(crate) quic: TlsServer,
    pub(crate) tcp: ServerConfig,
}

/// Receives the lines of a key log, in the format of SSLKEYLOGFILE.
pub type KeyLog = Arc<dyn Fn(&str) + Send + Sync>;

/// The settings from which the TLS configurations are created.
pub(crate) struct TlsSettings<'a> {
    pub(crate) identity: &'a Identity,
    /// The content of the file that servers share; `None` for keys of this process alone.
    pub(crate) ticket_keys: Option<&'a [u8]>,
    pub(crate) takes_zero_rtt: bool,
    pub(crate) server_id: u64,
    pub(crate) aead: AeadProvider,
    pub(crate) key_log: Option<KeyLog>,
    /// Protocols over TCP, in order of preference.
    pub(crate) tcp_protocols: Vec<Vec<u8>>,
    /// The random secret of keys that belong to this process alone.
    pub(crate) ticket_secret: [u8; SECRET_LEN],
    pub(crate) random: Seed,
}

/// Creates the configurations.
pub(crate) fn configure(settings: TlsSettings<'_>) -> Result<TlsConfigs, String> {
    let certified = certified(settings.identity)?;
    let certificate = Arc::new(CurrentCertificate(RwLock::new(certified)));
    let keys = Keys::new(settings.ticket_keys, settings.ticket_secret)?;
    let mut quic_tickets =
        Tickets::new(keys.quic, Arc::new(TimeOfDay)).with_server_id(settings.server_id);
    if settings.takes_zero_rtt {
        // Tickets with keys of this process do not open in another one, so the replay filter misses nothing. Tickets
        // with shared keys do. `Tickets::set_keys` handles keys that are shared later.
        let started = settings.ticket_keys.map(|_| Clock::wall_time());
        let replay_filter = ReplayFilter::new(STRIKES, started);
        quic_tickets = quic_tickets.with_zero_rtt(ZeroRtt::AnyServer(Arc::new(replay_filter)));
    }
    let tcp_tickets = keys.tcp;
    let tokens = TokenStore::new(keys.tokens, settings.random);
    let quic_tickets = Arc::new(quic_tickets);
    let tcp_tickets = Arc::new(tcp_tickets);

    let text = |error: &dyn fmt::Display| error.to_string();
    let key_log = settings
        .key_log
        .map(|key_log| Arc::new(KeyLogLines(move |line: &str| key_log(line))));
    let base = settings.aead.crypto_provider();
    let mut quic = ServerConfig::builder_with_provider(Arc::new(provider(base.clone())))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| text(&error))?
        .with_no_client_auth()
        .with_cert_resolver(certificate.clone());
    quic.alpn_protocols = vec![http3::ALPN.to_vec()];
    // A client has one connection to a server at a time, and receives another ticket with each (RFC 8446, Appendix C.4).
    quic.send_tls13_tickets = 1;
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let mut tcp = ServerConfig::builder_with_provider(Arc::new(base))
        .with_protocol_versions(&versions)
        .map_err(|error| text(&error))?
        .with_no_client_auth()
        .with_cert_resolver(certificate.clone());
    tcp.alpn_protocols = settings.tcp_protocols;
    tcp.max_fragment_size = Some(RECORD_HEADER + RECORD_CONTENT);
    // Stateless, for TLS 1.3 and 1.2. It does not support 0-RTT, and there is none over TCP here.
    tcp.ticketer = tcp_tickets.clone();
    if let Some(key_log) = key_log {
        quic.key_log = key_log.clone();
        tcp.key_log = key_log;
    }
    let quic =
        TlsServer::with_tickets(quic, Arc::clone(&quic_tickets)).map_err(|error| text(&error))?;
    let credentials = Credentials {
        certificate,
        quic_tickets,
        tcp_tickets,
        tokens: Arc::new(tokens),
    };
    Ok(TlsConfigs {
        credentials,
        quic,
        tcp,
    })
}

impl Credentials {
    /// Replaces the certificate for new connections.
    pub(crate) fn set_identity(&self, identity: &Identity) -> Result<(), String> {
        let certified = certified(identity)?;
        let mut current = self
            .certificate
            .0
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = certified;
        Ok(())
    }

    /// Replaces the keys.
    pub(crate) fn set_ticket_keys(&self, text: &[u8]) -> Result<(), String> {
        let keys = Keys::shared(text)?;
        self.quic_tickets.set_keys(keys.quic);
        self.tcp_tickets.replace(keys.tcp);
        self.tokens.set_keys(keys.tokens);
        Ok(())
    }

    /// Address validation tokens of all workers.
    pub(crate) fn tokens(&self) -> Arc<TokenStore> {
        Arc::clone(&self.tokens)
    }
}

/// Whether certificate and key match and can be used.
pub(crate) fn check(identity: &Identity) -> Result<(), String> {
    certified(identity).map(|_| ())
}

/// Whether a text is a list of ticket keys.
pub(crate) fn check_ticket_keys(text: &[u8]) -> Result<(), String> {
    Keys::shared(text).map(|_| ())
}

fn certified(identity: &Identity) -> Result<Arc<CertifiedKey>, String> {
    CertifiedKey::from_der(
        identity.chain.clone(),
        identity.key.clone_key(),
        &default_provider(),
    )
    .map(Arc::new)
    .map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            "the private key does not match the first certificate".to_owned()
        }
        error => error.to_string(),
    })
}

/// The keys derived from the secrets of ticket keys.
struct Keys {
    quic: TicketKeys,
    tcp: TcpTickets,
    tokens: TokenKeys,
}

impl Keys {
    /// From the content of a shared file, or otherwise from a secret of this process.
    fn new(text: Option<&[u8]>, secret: [u8; SECRET_LEN]) -> Result<Self, String> {
        match text {
            Some(text) => Self::shared(text),
            None => Self::of(
                TicketKeys::new(&[secret]).map_err(|error| error.to_string())?,
                &[secret],
            ),
        }
    }

    fn shared(text: &[u8]) -> Result<Self, String> {
        // This reports the reason.
        let quic = TicketKeys::parse(text).map_err(|error| error.to_string())?;
        Self::of(quic, &tickets::secrets(text))
    }

    fn of(quic: TicketKeys, secrets: &[[u8; SECRET_LEN]]) -> Result<Self, String> {
        Ok(Self {
            quic,
            tcp: TcpTickets::new(secrets)?,
            tokens: TokenKeys::derive(secrets).ok_or("unusable ticket key")?,
        })
    }
}

/// The certificate of new connections.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

/// The wall clock.
#[derive(Debug)]
struct TimeOfDay;

impl WallClock for TimeOfDay {
    fn now(&self) -> WallTime {
        Clock::wall_time()
    }
}

#[cfg(test)]
mod tests;
