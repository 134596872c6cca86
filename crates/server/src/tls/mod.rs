//! What clients are shown and what they can resume with: certificates and ticket keys, over QUIC and over TCP.
//!
//! Owns: the configurations of TLS, and that certificate and ticket keys can be changed while connections go on. Never:
//! reads a file; whoever does says what was in it.

mod tickets;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use lastbyte_driver::Clock;
use lastbyte_http3 as http3;
use lastbyte_quic::{
    crypto::{
        key_log::KeyLogLines,
        provider,
        tickets::{
            Tickets, ZeroRtt,
            clock::WallClock,
            keys::{SECRET_LEN, TicketKeys},
            register::StrikeRegister,
        },
        tls::TlsServer,
    },
    random::Seed,
};
use rustls::{
    ServerConfig,
    crypto::aws_lc_rs::default_provider,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use self::tickets::TcpTickets;
use super::{identity::Identity, server::KeyLog};

/// How many `ClientHello`s with 0-RTT are remembered, so that none is taken twice.
const STRIKES: usize = 1 << 16;
/// Register and ticket agree within this on a ticket's age: nobody can replay after a restart what came before it, once
/// this has passed twice.
const BLIND_SPAN: Duration = Duration::from_secs(120);

/// Certificate and ticket keys of a server that runs.
#[derive(Debug)]
pub(crate) struct Credentials {
    certificate: Arc<CurrentCertificate>,
    quic_tickets: Arc<Tickets>,
    tcp_tickets: Arc<TcpTickets>,
}

/// The largest piece of plaintext in a TLS record over TCP, in bytes. A client can read nothing of a record before it has all
/// of it: one of 16 KiB does not fit into Linux's first window of ten packets, and the head of a response that is in it would
/// be read a round trip late.
const RECORD_LEN: usize = 8 << 10;

/// What is made of them.
pub(crate) struct Made {
    pub(crate) credentials: Credentials,
    pub(crate) quic: TlsServer,
    pub(crate) tcp: ServerConfig,
}

/// What decides.
pub(crate) struct Wanted<'a> {
    pub(crate) identity: &'a Identity,
    /// The text of the file that servers share; `None` for keys of this process alone.
    pub(crate) ticket_keys: Option<&'a [u8]>,
    pub(crate) takes_zero_rtt: bool,
    pub(crate) server_id: u8,
    pub(crate) key_log: Option<KeyLog>,
    /// Protocols over TCP, the one that is liked best first.
    pub(crate) tcp_protocols: Vec<Vec<u8>>,
    pub(crate) random: Seed,
}

/// Makes the configurations.
pub(crate) fn make(wanted: Wanted<'_>) -> Result<Made, String> {
    let certified = certified(wanted.identity)?;
    let certificate = Arc::new(CurrentCertificate(RwLock::new(certified)));
    let (keys, tcp_tickets) = keys(wanted.ticket_keys, wanted.random)?;
    let mut quic_tickets =
        Tickets::new(keys, Arc::new(TimeOfDay)).with_server_id(u64::from(wanted.server_id));
    if wanted.takes_zero_rtt {
        // Tickets under keys of this process alone do not open in another, so there is nothing that an earlier one saw
        // and this one has forgotten. Those under shared keys do.
        let blind = if wanted.ticket_keys.is_some() {
            BLIND_SPAN
        } else {
            Duration::ZERO
        };
        let register = StrikeRegister::new(STRIKES, blind);
        quic_tickets = quic_tickets.with_zero_rtt(if wanted.ticket_keys.is_some() {
            ZeroRtt::AnyServer(Arc::new(register))
        } else {
            ZeroRtt::ThisServer(Arc::new(register))
        });
    }
    let quic_tickets = Arc::new(quic_tickets);
    let tcp_tickets = Arc::new(tcp_tickets);

    let say = |error: &dyn fmt::Display| error.to_string();
    let key_log = wanted
        .key_log
        .map(|key_log| Arc::new(KeyLogLines(move |line: &str| key_log(line))));
    let base = Arc::new(provider(default_provider()));
    let mut quic = ServerConfig::builder_with_provider(base)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| say(&error))?
        .with_no_client_auth()
        .with_cert_resolver(certificate.clone());
    quic.alpn_protocols = vec![http3::ALPN.to_vec()];
    let versions = [&rustls::version::TLS13, &rustls::version::TLS12];
    let mut tcp = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&versions)
        .map_err(|error| say(&error))?
        .with_no_client_auth()
        .with_cert_resolver(certificate.clone());
    tcp.alpn_protocols = wanted.tcp_protocols;
    tcp.max_fragment_size = Some(RECORD_LEN);
    // Stateless, for TLS 1.3 and 1.2 alike. There is no 0-RTT with it, and none over TCP here.
    tcp.ticketer = tcp_tickets.clone();
    if let Some(key_log) = key_log {
        quic.key_log = key_log.clone();
        tcp.key_log = key_log;
    }
    let quic =
        TlsServer::with_tickets(quic, Arc::clone(&quic_tickets)).map_err(|error| say(&error))?;
    let credentials = Credentials {
        certificate,
        quic_tickets,
        tcp_tickets,
    };
    Ok(Made {
        credentials,
        quic,
        tcp,
    })
}

impl Credentials {
    /// New connections see this certificate.
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

    /// Seals and opens with these keys from now on.
    pub(crate) fn set_ticket_keys(&self, text: &[u8]) -> Result<(), String> {
        let (keys, tcp) = keys(Some(text), Seed::default())?;
        self.quic_tickets.set_keys(keys);
        self.tcp_tickets.replace(tcp);
        Ok(())
    }
}

/// Whether certificate and key belong together, and can be used.
pub(crate) fn check(identity: &Identity) -> Result<(), String> {
    certified(identity).map(|_| ())
}

/// Whether a text is one of ticket keys.
pub(crate) fn check_ticket_keys(text: &[u8]) -> Result<(), String> {
    keys(Some(text), Seed::default()).map(|_| ())
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
            "the key is not that of the first certificate".to_owned()
        }
        error => error.to_string(),
    })
}

fn keys(text: Option<&[u8]>, random: Seed) -> Result<(TicketKeys, TcpTickets), String> {
    let Some(text) = text else {
        let secrets: [[u8; SECRET_LEN]; 1] = [random];
        let quic = TicketKeys::new(&secrets).map_err(|error| error.to_string())?;
        return Ok((quic, TcpTickets::new(&secrets)?));
    };
    // Which says what is wrong with it, if anything is.
    let quic = TicketKeys::parse(text).map_err(|error| error.to_string())?;
    Ok((quic, TcpTickets::new(&tickets::secrets(text))?))
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

/// The time of day.
#[derive(Debug)]
struct TimeOfDay;

impl WallClock for TimeOfDay {
    fn since_epoch(&self) -> Duration {
        Clock::since_epoch()
    }
}

#[cfg(test)]
mod tests;
