//! A server over HTTP/1.1 that responds before it has read the request, and closes the connection.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test server in a thread"
)]

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use lastbyte_client::{Fetch, Memory, Settings, Trust, Upload, Version};
use lastbyte_quic::connection::Config;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;

use super::{
    raw::body,
    recorder::{Recorder, fetch_with},
};

const ROUNDS: usize = 20;
/// How much of the upload the server reads.
const READ_LEN: usize = 64 << 10;
const RESPONSE: &[u8] =
    b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\nconnection: close\r\n\r\nlarge";

fn refuse(stream: &mut (impl Read + Write)) -> io::Result<()> {
    // The client waits for it, as the upload is large.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    stream.read_exact(&mut vec![0; READ_LEN])?;
    stream.write_all(RESPONSE)?;
    stream.flush()
}

/// Serves connections, one after the other. Closing with unread data makes the kernel send a reset.
fn serve(listener: &TcpListener, tls: Option<&Arc<rustls::ServerConfig>>) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        // The client may have closed the connection already.
        let _ = match tls {
            None => refuse(&mut stream),
            Some(config) => {
                let session = rustls::ServerConnection::new(Arc::clone(config)).expect("a session");
                let mut tls = rustls::StreamOwned::new(session, stream);
                let refused = refuse(&mut tls);
                tls.conn.send_close_notify();
                let flushed = tls.flush();
                stream = tls.sock;
                refused.and(flushed)
            }
        };
        let _ = TcpStream::shutdown(&stream, Shutdown::Write);
    }
}

fn refused(tls: Option<Arc<rustls::ServerConfig>>, trust: Trust) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let port = listener.local_addr().expect("an address").port();
    let scheme = if tls.is_some() { "https" } else { "http" };
    thread::spawn(move || serve(&listener, tls.as_ref()));
    let mut settings = Settings::new(Config::new("cubic".parse().expect("a spec")));
    settings.trust = trust;
    settings.versions = lastbyte_client::Versions::Http11;
    settings.time_limit = Some(Duration::from_secs(60));
    for round in 0..ROUNDS {
        let url = format!("{scheme}://localhost:{port}/").parse();
        let mut fetch = Fetch::get(url.expect("a URL"));
        "POST".clone_into(&mut fetch.method);
        fetch.upload = Some(Upload::source(body(8 << 20)));
        let mut recorder = Recorder::default();
        let outcomes = fetch_with(&settings, &Memory::default(), &mut recorder, vec![fetch]);
        let outcome = &outcomes[0];
        assert!(outcome.failure.is_none(), "round {round}: {outcome:?}");
        assert_eq!(
            (outcome.status, outcome.version, outcome.retries),
            (Some(413), Some(Version::Http11), 0)
        );
        assert_eq!(recorder.bodies[0], b"large");
    }
}

#[test]
fn rfc9112_9_5_a_response_before_the_end_of_the_upload_is_reported() {
    refused(None, Trust::System);
}

#[test]
fn rfc9112_9_5_a_response_before_the_end_of_the_upload_is_reported_over_tls() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("a pair");
    refused(Some(Arc::new(config)), Trust::DangerouslyAcceptAny);
}
