//! TLS configurations of all listeners: certificates and ticket keys, over QUIC and over TCP.
//!
//! Certificates and ticket keys can be replaced while connections continue. No file is read here: the caller passes the contents.

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
    ServerConfig, SignatureScheme,
    crypto::aws_lc_rs::default_provider,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use self::tickets::TcpTickets;
use super::{
    challenges::{ACME_TLS, Challenges},
    identity::{Contents, Identity},
};

/// Number of `ClientHello`s with 0-RTT that are recorded, so that none is accepted twice.
const STRIKES: usize = 1 << 16;
/// Certificates and ticket keys of a running server.
#[derive(Debug)]
pub(crate) struct Credentials {
    certificates: Arc<CurrentCertificates>,
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
    pub(crate) identities: &'a [Identity],
    /// Answered over TCP.
    pub(crate) challenges: Option<Challenges>,
    /// The content of the file that servers share; `None` for keys of this process alone.
    pub(crate) ticket_keys: Option<&'a [u8]>,
    pub(crate) takes_zero_rtt: bool,
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
    let certified = certified(settings.identities)?;
    let certificates = Arc::new(CurrentCertificates {
        certified: RwLock::new(certified),
        challenges: settings.challenges,
    });
    let keys = Keys::new(settings.ticket_keys, settings.ticket_secret)?;
    let mut quic_tickets = Tickets::new(keys.quic, Arc::new(TimeOfDay));
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
        .with_cert_resolver(certificates.clone());
    quic.alpn_protocols = vec![http3::ALPN.to_vec()];
    // A client has one connection to a server at a time, and receives another ticket with each (RFC 8446, Appendix C.4).
    quic.send_tls13_tickets = 1;
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let mut tcp = ServerConfig::builder_with_provider(Arc::new(base))
        .with_protocol_versions(&versions)
        .map_err(|error| text(&error))?
        .with_no_client_auth()
        .with_cert_resolver(certificates.clone());
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
        certificates,
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
    /// Replaces the certificates for new connections.
    pub(crate) fn set_identities(&self, identities: &[Identity]) -> Result<(), String> {
        let certified = certified(identities)?;
        let current = &self.certificates.certified;
        *current.write().unwrap_or_else(PoisonError::into_inner) = certified;
        Ok(())
    }

    /// The certificates in use.
    pub(crate) fn certificates(&self) -> Arc<CurrentCertificates> {
        Arc::clone(&self.certificates)
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

/// Whether certificates and keys match and can be used.
pub(crate) fn check(identities: &[Identity]) -> Result<(), String> {
    certified(identities).map(|_| ())
}

/// Whether a text is a list of ticket keys.
pub(crate) fn check_ticket_keys(text: &[u8]) -> Result<(), String> {
    Keys::shared(text).map(|_| ())
}

/// Certificates with their keys, each with what it contains.
type Certified = Arc<[(Arc<CertifiedKey>, Contents)]>;

fn certified(identities: &[Identity]) -> Result<Certified, String> {
    if identities.is_empty() {
        return Err("no certificate (expected one with its key)".into());
    }
    let certified = identities.iter().map(|identity| {
        let contents = identity.contents().map_err(|error| error.to_string())?;
        let key = CertifiedKey::from_der(
            identity.chain.clone(),
            identity.key.clone_key(),
            &default_provider(),
        )
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let names = named(&contents);
                format!("the private key does not match the first certificate{names}")
            }
            error => error.to_string(),
        })?;
        Ok((Arc::new(key), contents))
    });
    certified.collect()
}

/// Names the certificate in an error.
fn named(contents: &Contents) -> String {
    let first = contents.names.first();
    first.map_or_else(String::new, |name| format!(", that of `{name}`"))
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

/// The certificates of new connections, each with its key, and those that answer challenges.
#[derive(Debug, Default)]
pub(crate) struct CurrentCertificates {
    certified: RwLock<Certified>,
    challenges: Option<Challenges>,
}

impl CurrentCertificates {
    fn read(&self) -> Certified {
        Arc::clone(
            &self
                .certified
                .read()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    /// The first name of each, and the end of its validity in seconds since 1970.
    pub(crate) fn ends(&self) -> Vec<(String, u64)> {
        let name = |contents: &Contents| contents.names.first().cloned().unwrap_or_default();
        let read = self.read();
        let all = read.iter().map(|(_, contents)| contents);
        all.map(|contents| (name(contents), contents.validity.until))
            .collect()
    }
}

impl ResolvesServerCert for CurrentCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let (server_name, schemes) = (hello.server_name(), hello.signature_schemes());
        let mut protocols = hello.alpn().into_iter().flatten();
        if let Some(challenges) = &self.challenges
            && protocols.next() == Some(ACME_TLS)
            && protocols.next().is_none()
        {
            return challenges.certificate(server_name?);
        }
        let read = self.read();
        choose(&read, server_name, schemes).map(|chosen| Arc::clone(&chosen.0))
    }
}

/// The certificate for a client that sent this server name and these signature schemes: of those with the name, the first
/// whose key can sign, an equal name before a wildcard; or else the first certificate (RFC 6066 §3 allows to continue).
fn choose<'a>(
    certified: &'a [(Arc<CertifiedKey>, Contents)],
    server_name: Option<&str>,
    schemes: &[SignatureScheme],
) -> Option<&'a (Arc<CertifiedKey>, Contents)> {
    let order = |(key, contents): &&(Arc<CertifiedKey>, Contents)| {
        let kind = server_name.map_or(Match::None, |name| Match::of(&contents.names, name));
        let signs = key.key.choose_scheme(schemes).is_some();
        (kind == Match::None, !signs, kind)
    };
    certified.iter().min_by_key(order)
}

/// How the names of a certificate contain a server name, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    Equal,
    Wildcard,
    None,
}

impl Match {
    /// A wildcard is the first label, as a whole, and stands for one label (RFC 6125 §6.4.3).
    fn of(names: &[String], server_name: &str) -> Self {
        let parent = server_name.split_once('.').map(|(_, parent)| parent);
        let kinds = names.iter().map(|name| {
            if name.eq_ignore_ascii_case(server_name) {
                return Self::Equal;
            }
            match (name.strip_prefix("*."), parent) {
                (Some(name), Some(parent)) if name.eq_ignore_ascii_case(parent) => Self::Wildcard,
                _ => Self::None,
            }
        });
        kinds.min().unwrap_or(Self::None)
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
