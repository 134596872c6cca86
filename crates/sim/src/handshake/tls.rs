//! Real TLS, with the library of `lastbyte serve` and `lastbyte get`.
//!
//! All messages have a fixed length: X25519, Ed25519 (ECDSA signatures vary by a byte), and an extension that pads the
//! certificate to the length in the scenario. The wall clock stands still, so that ticket ages match.

use core::{fmt::Display, time::Duration};
use std::sync::Arc;

use lastbyte_quic::{
    WallTime,
    crypto::{
        provider as open_provider,
        tickets::{
            Tickets, ZeroRtt,
            client::{ClientSessions, MemorySessions},
            clock::WallClock,
            keys::TicketKeys,
            replay_filter::ReplayFilter,
        },
        tls::{TlsClient, TlsServer},
    },
};
use rcgen::{CertificateParams, CustomExtension, KeyPair, PKCS_ED25519, SerialNumber};
use rustls::{
    RootCertStore,
    client::WebPkiServerVerifier,
    crypto::{
        CryptoProvider,
        aws_lc_rs::{default_provider, kx_group},
    },
    pki_types::{CertificateDer, PrivateKeyDer},
};

use super::Credentials;
use crate::{SERVER_NAME, error::SimError};
use lastbyte_scenario::{Handshake, Transport};

/// Creates both ends, with their own certificate, keys and tickets.
pub(super) fn credentials(
    transport: &Transport,
    takes_zero_rtt: bool,
) -> Result<Credentials, SimError> {
    let provider = CryptoProvider {
        kx_groups: vec![kx_group::X25519],
        ..default_provider()
    };
    let provider = Arc::new(open_provider(provider));
    let clock: Arc<dyn WallClock> = Arc::new(FixedClock);
    let (certificate, key) = identity(transport.certificate_chain.into())?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).map_err(failed)?;
    let roots = Arc::new(roots);
    let alpn = vec![lastbyte_http3::ALPN.to_vec()];

    let mut server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(failed)?;
    server.alpn_protocols.clone_from(&alpn);
    let keys = TicketKeys::new(&[[1; 32]]).map_err(|_| failed("the keys of tickets"))?;
    let replay_filter = Arc::new(ReplayFilter::new(64, None));
    let mut tickets = Tickets::new(keys, Arc::clone(&clock));
    if takes_zero_rtt {
        tickets = tickets.with_zero_rtt(ZeroRtt::AnyServer(replay_filter));
    }

    let mut client = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(failed)?
        .with_root_certificates(Arc::clone(&roots))
        .with_no_client_auth();
    client.alpn_protocols = alpn;
    client.enable_early_data = transport.handshake == Handshake::ZeroRtt;
    let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider);
    let sessions = ClientSessions {
        store: Arc::new(MemorySessions::new(1)),
        verifier: verifier.build().map_err(failed)?,
        clock,
    };
    Ok(Credentials {
        client: Arc::new(TlsClient::with_sessions(client, sessions).map_err(failed)?),
        server: Arc::new(TlsServer::with_tickets(server, Arc::new(tickets)).map_err(failed)?),
    })
}

fn failed(what: impl Display) -> SimError {
    SimError::Handshake(format!("cannot set up TLS: {what}"))
}

/// Creates a certificate, padded to `len` bytes if it is shorter.
fn identity(len: usize) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), SimError> {
    let key = KeyPair::generate_for(&PKCS_ED25519).map_err(failed)?;
    let make = |padding: usize| {
        let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        params.serial_number = Some(SerialNumber::from(1));
        if padding > 0 {
            let padding = CustomExtension::from_oid_content(PADDING, vec![0; padding]);
            params.custom_extensions.push(padding);
        }
        params.self_signed(&key)
    };
    // The extension's headers grow with its length.
    let bare = make(0).map_err(failed)?.der().len();
    let mut certificate = make(0).map_err(failed)?;
    let mut padding = len.saturating_sub(bare);
    while padding > 0 {
        certificate = make(padding).map_err(failed)?;
        let excess = certificate.der().len().saturating_sub(len);
        if excess == 0 {
            break;
        }
        padding = padding.saturating_sub(excess);
    }
    Ok((certificate.der().clone(), key.into()))
}

/// OID of the padding extension, in the arc for examples (RFC 5612).
const PADDING: &[u64] = &[1, 3, 6, 1, 4, 1, 32473, 1];

/// A clock that always shows 1 January 2026.
#[derive(Debug)]
struct FixedClock;

impl WallClock for FixedClock {
    fn now(&self) -> WallTime {
        WallTime::from_unix(Duration::from_secs(1_767_225_600))
    }
}
