//! Restores a saved session into rustls.
//!
//! Owns the handshake in memory, its server, and a verifier that accepts its signature. None of these is used by the
//! connection itself.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lastbyte_wire::packet::Version;
use rustls::{
    ClientConfig, DigitallySignedStruct, DistinguishedName, Error, NamedGroup, NoKeyLog,
    ServerConfig, SignatureAlgorithm, SignatureScheme,
    client::{
        ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    quic::{ClientConnection, ServerConnection},
    sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey},
};

use super::{
    super::{LIFETIME_MAX, clock::TlsTime, message::NewSessionTicket},
    ClientSessions, SavedSession,
};
use crate::{
    WallTime,
    crypto::{kdf_hook, tls},
};

/// Maximum number of turns of the handshake in memory.
const FLIGHTS_MAX: usize = 8;

/// The configuration of a connection that resumes this session, if that is still possible.
pub(super) fn restore(
    sessions: &ClientSessions,
    config: &ClientConfig,
    name: &ServerName<'static>,
    server: &str,
    version: Version,
    saved: &SavedSession,
) -> Option<ClientConfig> {
    let is_meant = saved.server == server
        && saved.version == version
        && config.alpn_protocols.contains(&saved.alpn);
    if !is_meant {
        return None;
    }
    let message = aged(saved, sessions.clock.now())?;
    let verifier = Arc::new(Verifier {
        inner: Arc::clone(&sessions.verifier),
        is_restoring: AtomicBool::new(true),
    });
    let slot = Arc::new(Slot {
        group: NamedGroup::from(saved.group),
        is_restoring: AtomicBool::new(true),
        session: Mutex::new(None),
    });
    let mut config = config.clone();
    let dangerous = verifier.clone();
    config.dangerous().set_certificate_verifier(dangerous);
    config.resumption = Resumption::store(slot.clone());

    let handshake = handshake(sessions, &config, name, version, saved, &message);
    verifier.is_restoring.store(false, Ordering::SeqCst);
    slot.is_restoring.store(false, Ordering::SeqCst);
    handshake?;
    slot.session().is_some().then_some(config)
}

/// The ticket as a server would send it now: with its remaining lifetime, and an offset that makes an age counted from
/// now correct. `None` if it has expired.
fn aged(saved: &SavedSession, now: WallTime) -> Option<Vec<u8>> {
    let ticket = NewSessionTicket::decode(&saved.message)?;
    let passed = now.since(saved.saved);
    let lifetime_max_s = u32::try_from(LIFETIME_MAX.as_secs()).ok()?;
    let lifetime_s = ticket
        .lifetime_s
        .min(lifetime_max_s)
        .checked_sub(u32::try_from(passed.as_secs()).ok()?)
        .filter(|left| *left > 0)?;
    let passed_ms = u32::try_from(passed.as_millis()).ok()?;
    NewSessionTicket {
        lifetime_s,
        age_add: ticket.age_add.wrapping_add(passed_ms),
        ..ticket
    }
    .encode()
}

/// Runs a complete handshake, followed by the ticket.
fn handshake(
    sessions: &ClientSessions,
    config: &ClientConfig,
    name: &ServerName<'static>,
    version: Version,
    saved: &SavedSession,
    message: &[u8],
) -> Option<()> {
    let mut config = config.clone();
    config.key_log = Arc::new(NoKeyLog);
    let server = Arc::new(server(sessions, config.crypto_provider(), saved)?);
    let version = tls::version(version);
    let mut client =
        ClientConnection::new(Arc::new(config), version, name.clone(), Vec::new()).ok()?;
    let mut server = ServerConnection::new(server, version, saved.parameters.clone()).ok()?;

    let mut hello = Vec::new();
    client.write_hs(&mut hello);
    server.read_hs(&hello).ok()?;
    for _ in 0..FLIGHTS_MAX {
        let mut sent_data = Vec::new();
        let change = server.write_hs(&mut sent_data);
        if change.is_none() && sent_data.is_empty() {
            break;
        }
        client.read_hs(&sent_data).ok()?;
    }
    if client.is_handshaking() {
        return None;
    }
    let (result, was_asked) = kdf_hook::answer(&saved.psk, || client.read_hs(message));
    result.ok().filter(|()| was_asked)
}

/// A server that presents the saved certificates, and selects the saved protocol and cipher suite.
fn server(
    sessions: &ClientSessions,
    provider: &CryptoProvider,
    saved: &SavedSession,
) -> Option<ServerConfig> {
    let suites = provider.cipher_suites.iter();
    let suite = suites
        .copied()
        .find(|suite| suite.tls13().is_some() && u16::from(suite.suite()) == saved.suite)?;
    let mut provider = CryptoProvider {
        cipher_suites: vec![suite],
        ..provider.clone()
    };
    // The client sends a key share of that group; a server that prefers another would request it.
    let group = NamedGroup::from(saved.group);
    if provider.kx_groups.iter().any(|known| known.name() == group) {
        provider.kx_groups.retain(|known| known.name() == group);
    }
    let chain = saved.chain.iter().cloned().map(CertificateDer::from);
    let certified = CertifiedKey::new(chain.collect(), Arc::new(NoKey));
    let time = Arc::new(TlsTime(Arc::clone(&sessions.clock)));
    let mut config = ServerConfig::builder_with_details(Arc::new(provider), time)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .ok()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    config.alpn_protocols = vec![saved.alpn.clone()];
    config.send_tls13_tickets = 0;
    Some(config)
}

/// Replaces the private key of the server's certificate, and signs with an empty signature.
#[derive(Debug)]
struct NoKey;

#[derive(Debug)]
struct EmptySignature(SignatureScheme);

impl SigningKey for NoKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = offered.first()?;
        Some(Box::new(EmptySignature(*scheme)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::Anonymous
    }
}

impl Signer for EmptySignature {
    fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(Vec::new())
    }

    fn scheme(&self) -> SignatureScheme {
        self.0
    }
}

/// Verifies like the inner verifier. Only while a session is restored it accepts the signature of the handshake;
/// certificates are verified even then. It is created for one connection, since rustls resumes only sessions that were
/// established with the same verifier.
#[derive(Debug)]
struct Verifier {
    inner: Arc<dyn ServerCertVerifier>,
    is_restoring: AtomicBool,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.inner
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.is_restoring.load(Ordering::SeqCst) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        self.inner
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.inner.requires_raw_public_keys()
    }

    fn root_hint_subjects(&self) -> Option<&[DistinguishedName]> {
        self.inner.root_hint_subjects()
    }
}

/// A store for one session: filled while it is restored, emptied by the connection.
struct Slot {
    group: NamedGroup,
    is_restoring: AtomicBool,
    session: Mutex<Option<Tls13ClientSessionValue>>,
}

impl Slot {
    fn session(&self) -> std::sync::MutexGuard<'_, Option<Tls13ClientSessionValue>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Slot {
    fn set_kx_hint(&self, _server: ServerName<'static>, _group: NamedGroup) {}

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        Some(self.group)
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, _session: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, session: Tls13ClientSessionValue) {
        // Sessions of the connection itself go to the store of saved sessions.
        if self.is_restoring.load(Ordering::SeqCst) {
            *self.session() = Some(session);
        }
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.session().take()
    }
}

/// Sessions are secret.
impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}
