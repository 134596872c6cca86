//! TLS of both ends of a connection in memory.

use std::sync::Arc;

use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig, crypto::aws_lc_rs::default_provider,
};

use crate::identity::Identity;

/// The configurations of a server for `localhost` and of a client that accepts it.
pub(super) fn configurations() -> (ServerConfig, ClientConfig) {
    let identity = Identity::self_signed(&["localhost".into()], 20_778).expect("an identity");
    let mut roots = RootCertStore::empty();
    roots.add(identity.chain[0].clone()).expect("a certificate");
    let provider = Arc::new(default_provider());
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(identity.chain, identity.key)
        .expect("a key");
    // The client reads none before it has sent its requests, and they may not fit into the socket.
    server.send_tls13_tickets = 0;
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    (server, client)
}
