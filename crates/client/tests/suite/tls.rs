//! An HTTP/2 and HTTP/1.1 server over TLS, by hyper, as a third-party peer. Shared with the tests of the binary.

use std::{
    convert::Infallible,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpListener,
    sync::oneshot,
};
use tokio_rustls::TlsAcceptor;

use super::raw::body;

/// The options of the server.
pub(crate) struct TlsOptions {
    /// The ALPN protocols.
    pub(crate) alpn: Vec<&'static str>,
    /// Whether it supports TLS 1.2 only.
    pub(crate) is_old: bool,
    /// The certificate required from clients, in PEM.
    pub(crate) clients: Option<String>,
    /// The port; 0 for any.
    pub(crate) port: u16,
    /// The name in its certificate.
    pub(crate) name: &'static str,
    /// The frame by which it responds over HTTP/2, again and again.
    pub(crate) only: Option<&'static [u8]>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            alpn: vec!["h2", "http/1.1"],
            is_old: false,
            clients: None,
            port: 0,
            name: "localhost",
            only: None,
        }
    }
}

/// A server in a separate thread, which ends when it is dropped.
pub(crate) struct Tls {
    pub(crate) port: u16,
    /// Its self-signed certificate in PEM.
    pub(crate) certificate: String,
    /// The SHA-256 of its public key, in Base64.
    pub(crate) pin: String,
    connections: Arc<AtomicUsize>,
    resumed: Arc<AtomicUsize>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Tls {
    pub(crate) fn start(options: &TlsOptions) -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec![options.name.to_owned()]).expect("a certificate");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let versions: &[&rustls::SupportedProtocolVersion] = if options.is_old {
            &[&rustls::version::TLS12]
        } else {
            &[&rustls::version::TLS13, &rustls::version::TLS12]
        };
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("versions");
        let builder = match &options.clients {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                use rustls::pki_types::{CertificateDer, pem::PemObject as _};
                let mut roots = rustls::RootCertStore::empty();
                let client = CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
                roots.add(client).expect("an authority");
                let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
                    Arc::new(roots),
                    provider,
                );
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let spki = {
            use rcgen::PublicKeyData as _;
            signing_key.subject_public_key_info()
        };
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &spki);
        let mut config = builder
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a pair");
        config.alpn_protocols = options
            .alpn
            .iter()
            .map(|it| it.as_bytes().to_vec())
            .collect();
        let connections = Arc::new(AtomicUsize::new(0));
        let resumed = Arc::new(AtomicUsize::new(0));
        let (stop, stopped) = oneshot::channel();
        let (port_sender, port_receiver) = std::sync::mpsc::channel();
        let counts = (Arc::clone(&connections), Arc::clone(&resumed));
        let (port, only) = (options.port, options.only);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind(("127.0.0.1", port))
                    .await
                    .expect("a socket");
                port_sender
                    .send(listener.local_addr().expect("an address").port())
                    .expect("a receiver");
                let acceptor = TlsAcceptor::from(Arc::new(config));
                tokio::select! {
                    () = accept(listener, acceptor, counts, only) => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().spawn(work).expect("a thread");
        Self {
            port: port_receiver.recv().expect("a port"),
            certificate: cert.pem(),
            pin: lastbyte_client::base64(digest.as_ref()),
            connections,
            resumed,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://localhost:{}/{path}", self.port)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn resumed(&self) -> usize {
        self.resumed.load(Ordering::SeqCst)
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Counts = (Arc<AtomicUsize>, Arc<AtomicUsize>);

async fn accept(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    counts: Counts,
    only: Option<&'static [u8]>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let acceptor = acceptor.clone();
        let (connections, resumed) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
        tokio::spawn(async move {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                return;
            };
            connections.fetch_add(1, Ordering::SeqCst);
            let (_, session) = stream.get_ref();
            if session.handshake_kind() == Some(rustls::HandshakeKind::Resumed) {
                resumed.fetch_add(1, Ordering::SeqCst);
            }
            let is_http2 = session.alpn_protocol() == Some(b"h2");
            if let Some(frame) = only {
                // Until the client closes the connection.
                let _ = respond_only_by(frame, &mut stream).await;
                return;
            }
            let stream = TokioIo::new(stream);
            if is_http2 {
                let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .max_concurrent_streams(20)
                    .serve_connection(stream, service_fn(answer))
                    .await;
            } else {
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(stream, service_fn(answer))
                    .await;
            }
        });
    }
}

/// Waits for the first request over HTTP/2, and sends this frame again and again.
async fn respond_only_by(
    frame: &[u8],
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
) -> io::Result<Infallible> {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream.write_all(&SETTINGS).await?;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await?;
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await?;
        let [high, middle, low, kind, ..] = header;
        let len = u32::from_be_bytes([0, high, middle, low]);
        stream.read_exact(&mut vec![0; len as usize]).await?;
        if kind == 1 {
            break;
        }
    }
    loop {
        stream.write_all(frame).await?;
    }
}

fn full(bytes: Vec<u8>) -> BoxBody<Bytes, io::Error> {
    let never = |never: Infallible| match never {};
    Full::new(Bytes::from(bytes)).map_err(never).boxed()
}

async fn answer(
    request: Request<Incoming>,
) -> Result<Response<BoxBody<Bytes, io::Error>>, io::Error> {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let builder = Response::builder();
    let response = match &*path {
        "echo" => {
            let sent = request
                .into_body()
                .collect()
                .await
                .map_err(io::Error::other)?;
            builder.body(full(sent.to_bytes().to_vec()))
        }
        // Aborts the body after its first bytes.
        "reset" => {
            let frames: [io::Result<Frame<Bytes>>; 2] = [
                Ok(Frame::data(Bytes::from_static(b"only this"))),
                Err(io::Error::other("enough")),
            ];
            let body = Frames {
                rest: frames.into_iter().collect(),
                turns: 0,
            };
            let body = body.boxed();
            builder.header("content-length", "1000").body(body)
        }
        // As "reset", with the code NO_ERROR.
        "reset-without-error" => {
            let frames: [io::Result<Frame<Bytes>>; 2] = [
                Ok(Frame::data(Bytes::from_static(b"only this"))),
                Err(io::Error::other(WithoutError(h2::Reason::NO_ERROR.into()))),
            ];
            let body = Frames {
                rest: frames.into_iter().collect(),
                turns: 0,
            };
            builder.body(body.boxed())
        }
        // Announces HTTP/3 on this port, and another service in a line before.
        "alternative" => {
            let value = request.uri().query().unwrap_or_default().to_owned();
            builder
                .header("alt-svc", "h2=\":1\"")
                .header("alt-svc", format!("h3=\":{value}\"; ma=60"))
                .body(full(Vec::new()))
        }
        path => match path.parse::<usize>() {
            Ok(len) => builder.body(full(body(len))),
            Err(_) => builder.status(404).body(full(b"not found".to_vec())),
        },
    };
    response.map_err(io::Error::other)
}

/// An error whose cause is a reason to reset a stream, as hyper looks for.
#[derive(Debug)]
struct WithoutError(h2::Error);

impl fmt::Display for WithoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for WithoutError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Frames with pauses between them, so that each frame is sent before the next.
struct Frames {
    rest: std::collections::VecDeque<io::Result<Frame<Bytes>>>,
    turns: u32,
}

/// How often the task yields before the next frame.
const TURNS: u32 = 100;

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<io::Result<Frame<Bytes>>>> {
        self.turns += 1;
        if !self.turns.is_multiple_of(TURNS) {
            context.waker().wake_by_ref();
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(self.rest.pop_front())
    }
}
