//! Certificates and configurations for tests of TLS.
#![expect(clippy::unwrap_used, reason = "a test that finds nothing may panic")]

use std::sync::Arc;

use lastbyte_wire::packet::Version;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    RootCertStore, SupportedCipherSuite,
    client::WebPkiServerVerifier,
    crypto::{
        CryptoProvider,
        aws_lc_rs::{self, cipher_suite, kx_group},
    },
    pki_types::{CertificateDer, PrivateKeyDer},
};

use super::{TlsClient, TlsServer};
use crate::crypto::{
    AeadProvider, ClientCrypto as _, ServerCrypto as _, provider as open_provider,
    testing::End,
    tickets::{
        client::{ClientSessions, MemorySessions, SessionStore},
        testing::Fleet,
    },
};

pub(in crate::crypto) const SUITES: [(SupportedCipherSuite, &str); 3] = [
    (
        cipher_suite::TLS13_AES_128_GCM_SHA256,
        "TLS_AES_128_GCM_SHA256",
    ),
    (
        cipher_suite::TLS13_AES_256_GCM_SHA384,
        "TLS_AES_256_GCM_SHA384",
    ),
    (
        cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_CHACHA20_POLY1305_SHA256",
    ),
];

/// Libraries for the AES-GCM of client and server.
pub(in crate::crypto) const AEADS: [(AeadProvider, AeadProvider); 3] = [
    (AeadProvider::AwsLc, AeadProvider::AwsLc),
    (AeadProvider::Ring, AeadProvider::Ring),
    (AeadProvider::Ring, AeadProvider::AwsLc),
];

/// A certificate for `localhost`, its key, and its issuer.
pub(in crate::crypto) struct Identity {
    pub(in crate::crypto) chain: Vec<CertificateDer<'static>>,
    pub(in crate::crypto) key: PrivateKeyDer<'static>,
    pub(in crate::crypto) roots: Arc<RootCertStore>,
}

pub(in crate::crypto) fn identity() -> Identity {
    identity_of("Some Authority")
}

pub(in crate::crypto) fn identity_of(authority: &str) -> Identity {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, authority);
    let ca_key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&ca_key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(ca.der().clone()).unwrap();
    let issuer = Issuer::new(params, ca_key);

    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let certificate = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, &issuer)
        .unwrap();
    Identity {
        chain: vec![certificate.der().clone()],
        key: key.into(),
        roots: Arc::new(roots),
    }
}

/// A provider with these cipher suites, and X25519, which keeps messages short.
pub(in crate::crypto) fn provider(suites: &[SupportedCipherSuite]) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: suites.to_vec(),
        kx_groups: vec![kx_group::X25519, kx_group::SECP256R1],
        ..aws_lc_rs::default_provider()
    })
}

pub(in crate::crypto) fn all_suites() -> Arc<CryptoProvider> {
    provider(&SUITES.map(|(suite, _)| suite))
}

pub(in crate::crypto) fn client_config(
    provider: Arc<CryptoProvider>,
    roots: &Arc<RootCertStore>,
) -> rustls::ClientConfig {
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(Arc::clone(roots))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.enable_early_data = true;
    config
}

pub(in crate::crypto) fn server_config(
    provider: Arc<CryptoProvider>,
    identity: &Identity,
) -> rustls::ServerConfig {
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .unwrap();
    config.alpn_protocols = vec![b"hq-interop".to_vec(), b"h3".to_vec()];
    config.max_early_data_size = u32::MAX;
    config
}

pub(in crate::crypto) fn ends(
    client: &TlsClient,
    server: &TlsServer,
    version: Version,
) -> (End, End) {
    let client = client.start(version, "localhost", b"client").unwrap();
    let server = server.start(version, b"server").unwrap();
    (End::new(client), End::new(server))
}

pub(crate) fn pair() -> (TlsClient, TlsServer) {
    let identity = identity();
    (
        TlsClient::new(client_config(all_suites(), &identity.roots)).unwrap(),
        TlsServer::new(server_config(all_suites(), &identity)).unwrap(),
    )
}

/// A client with stored sessions, and a server with tickets: both can change the version.
pub(crate) struct Party {
    pub(crate) client: TlsClient,
    pub(crate) server: TlsServer,
    pub(crate) sessions: Arc<dyn SessionStore>,
}

pub(crate) fn party() -> Party {
    let fleet = Fleet::of(Arc::new(open_provider((*all_suites()).clone())));
    let sessions: Arc<dyn SessionStore> = Arc::new(MemorySessions::new(16));
    let verifier = WebPkiServerVerifier::builder_with_provider(
        Arc::clone(&fleet.identity.roots),
        Arc::clone(&fleet.provider),
    );
    let keeping = ClientSessions {
        store: Arc::clone(&sessions),
        verifier: verifier.build().unwrap(),
        clock: fleet.clock.clone(),
    };
    let config = client_config(Arc::clone(&fleet.provider), &fleet.identity.roots);
    Party {
        client: TlsClient::with_sessions(config, keeping).unwrap(),
        server: fleet.plain_server(&[1]),
        sessions,
    }
}
