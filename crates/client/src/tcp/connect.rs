//! A TCP connection: connection attempts (RFC 8305 §5), TLS, the choice of the HTTP version, and its requests until it
//! ends.

use core::{net::SocketAddr, time::Duration};
use std::{collections::VecDeque, io, sync::Arc};

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use lastbyte_driver::{Clock, HalfOpen, WriteError};
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::mpsc,
    task::{JoinHandle, JoinSet},
};
use tokio_rustls::TlsConnector;

use super::{
    Command, ConnectPlan, Event, ExchangeError, HEAD_LEN_MAX,
    exchange::{self, ExchangeContext},
    outgoing::Outgoing,
    received::Received,
};
use crate::{
    failure::Failure,
    head::Version,
    listener::{Handshake, Transport},
    mailbox::Sender,
    settings::FIELDS_MAX,
    trust::describe,
};

/// The receive windows of HTTP/2, in bytes: twice what Linux's largest receive buffer of 6 MiB lets arrive in a round trip, also
/// while half of the stream's window waits to be announced.
const STREAM_WINDOW_LEN: u32 = 12 << 20;
const CONNECTION_WINDOW_LEN: u32 = 24 << 20;

/// A byte stream: TCP or TLS.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Runs a connection from the first attempt to its end.
pub(super) async fn run(
    plan: ConnectPlan,
    mut commands: mpsc::UnboundedReceiver<Command>,
    events: Sender<Event>,
    clock: Clock,
) {
    let context = ExchangeContext { events, clock };
    let result = tokio::time::timeout(plan.timeout, establish(&plan, &context)).await;
    let (stream, handshake) = match result {
        Ok(Ok(result)) => result,
        Ok(Err(failure)) => return context.events.post(Event::Failed(failure)),
        Err(_) => {
            return context
                .events
                .post(Event::Failed(Failure::ConnectTimeout(plan.timeout)));
        }
    };
    let request_sender =
        match http_handshake(stream, handshake.version).await {
            Ok(request_sender) => request_sender,
            Err(error) => {
                return context.events.post(Event::Failed(Failure::Connect(
                    exchange::error_chain(&error),
                )));
            }
        };
    let at = clock.now();
    context.events.post(Event::Open { at, handshake });
    let why = match request_sender {
        RequestSender::Http1(sender, driver, error) => {
            http1(&context, sender, driver, &error, &mut commands).await
        }
        RequestSender::Http2(sender, driver) => {
            http2(&context, sender, driver, &mut commands).await
        }
    };
    // Commands that arrived in the meantime were not processed.
    commands.close();
    while let Ok(command) = commands.try_recv() {
        let why = ExchangeError::NotProcessed(why.clone());
        context.events.post(Event::ExchangeFailed {
            exchange: command.exchange,
            why,
        });
    }
    context.events.post(Event::Closed { why });
}

/// The task that drives the I/O of a connection.
type Driver = JoinHandle<hyper::Result<()>>;

/// Sends requests on an open connection.
enum RequestSender {
    Http1(http1::SendRequest<Outgoing>, Driver, WriteError),
    Http2(http2::SendRequest<Outgoing>, Driver),
}

async fn http_handshake(stream: Box<dyn Stream>, version: Version) -> hyper::Result<RequestSender> {
    let stream = HalfOpen::new(stream);
    if version == Version::Http2 {
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW_LEN)
            .initial_connection_window_size(CONNECTION_WINDOW_LEN)
            .handshake(TokioIo::new(Received::new(stream, true, |_, _| {})))
            .await?;
        return Ok(RequestSender::Http2(sender, tokio::spawn(driver)));
    }
    let error = stream.write_error();
    let (sender, driver) = http1::Builder::new()
        .max_buf_size(HEAD_LEN_MAX)
        .max_headers(FIELDS_MAX.into())
        .handshake(TokioIo::new(stream))
        .await?;
    Ok(RequestSender::Http1(sender, tokio::spawn(driver), error))
}

/// Processes commands over HTTP/1.1, one after the other. Returns why the connection ended.
async fn http1(
    context: &ExchangeContext,
    mut sender: http1::SendRequest<Outgoing>,
    mut driver: Driver,
    error: &WriteError,
    commands: &mut mpsc::UnboundedReceiver<Command>,
) -> String {
    loop {
        let command = tokio::select! {
            biased;
            _ = &mut driver => return "the server closed the connection".to_owned(),
            command = commands.recv() => command,
        };
        let Some(command) = command else {
            // Dropping the sender makes the driver close the connection.
            drop(sender);
            let _ = driver.await;
            return "no longer needed".to_owned();
        };
        if !exchange::http1(context, &mut sender, error, command).await {
            // A new connection is cheaper than reading the rest of a cancelled response.
            driver.abort();
            return "a response was cancelled".to_owned();
        }
        if sender.ready().await.is_err() {
            return "the server closed the connection".to_owned();
        }
    }
}

/// Processes commands over HTTP/2, concurrently. Returns why the connection ended.
async fn http2(
    context: &ExchangeContext,
    sender: http2::SendRequest<Outgoing>,
    mut driver: Driver,
    commands: &mut mpsc::UnboundedReceiver<Command>,
) -> String {
    let mut exchanges = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            ended = &mut driver => {
                // Each exchange reports its own end.
                while exchanges.join_next().await.is_some() {}
                return match ended {
                    Ok(Err(error)) => exchange::error_chain(&error),
                    _ => "the server closed the connection".to_owned(),
                };
            }
            command = commands.recv() => {
                match command {
                    Some(command) => {
                        let (context, sender) = (context.clone(), sender.clone());
                        exchanges.spawn(exchange::http2(context, sender, command));
                    }
                    None => break,
                }
            }
            Some(_) = exchanges.join_next() => {}
        }
    }
    while exchanges.join_next().await.is_some() {}
    drop(sender);
    let _ = driver.await;
    "no longer needed".to_owned()
}

async fn establish(
    plan: &ConnectPlan,
    context: &ExchangeContext,
) -> Result<(Box<dyn Stream>, Handshake), Failure> {
    let tcp = connect_any(&plan.addresses, plan.attempt_delay).await?;
    // Requests are written as a whole, so Nagle's algorithm would only delay them. Failure has no consequence but delay.
    let _ = tcp.set_nodelay(true);
    let remote = tcp.peer_addr();
    let remote = remote.map_err(|error| Failure::Connect(error.to_string()))?;
    context.events.post(Event::Connected {
        at: context.clock.now(),
    });
    let mut handshake = Handshake {
        remote,
        version: if plan.is_http2 {
            Version::Http2
        } else {
            Version::Http11
        },
        transport: Transport::Tcp,
        tls: None,
        cipher_suite: None,
        is_resumed: false,
        early_data: None,
        certificate: None,
    };
    let Some(config) = &plan.tls else {
        return Ok((Box::new(tcp), handshake));
    };
    let name = ServerName::try_from(plan.host.clone())
        .map_err(|_| Failure::Tls(format!("invalid TLS server name `{}`", plan.host)))?;
    let connector = TlsConnector::from(Arc::clone(config));
    let tls = connector.connect(name, tcp).await;
    let tls = tls.map_err(|error| tls_failure(&error))?;
    let (_, session) = tls.get_ref();
    let is_http2 = session.alpn_protocol() == Some(b"h2");
    if plan.is_http2 && !is_http2 && session.alpn_protocol().is_some() {
        return Err(Failure::Tls(
            "the server does not support HTTP/2".to_owned(),
        ));
    }
    if is_http2 {
        handshake.version = Version::Http2;
    }
    handshake.tls = session.protocol_version().map(|version| match version {
        rustls::ProtocolVersion::TLSv1_2 => "TLS 1.2",
        _ => "TLS 1.3",
    });
    let suite = session.negotiated_cipher_suite();
    handshake.cipher_suite = suite.and_then(|suite| suite.suite().as_str());
    handshake.is_resumed = session.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    let chain = session.peer_certificates();
    handshake.certificate = chain.and_then(|chain| Some(chain.first()?.to_vec()));
    Ok((Box::new(tls), handshake))
}

/// The failure of a TLS handshake.
pub(crate) fn tls_failure(error: &io::Error) -> Failure {
    let of_tls = error.get_ref().and_then(|it| it.downcast_ref());
    match of_tls {
        Some(rustls::Error::InvalidCertificate(error)) => certificate_failure(error),
        Some(error) => Failure::Tls(error.to_string()),
        None => Failure::Tls(error.to_string()),
    }
}

/// The failure for a certificate that the verifier rejected.
fn certificate_failure(error: &rustls::CertificateError) -> Failure {
    match error {
        rustls::CertificateError::ApplicationVerificationFailure => {
            Failure::Pin("server key does not match any pinned key".to_owned())
        }
        error => Failure::Certificate(describe(error)),
    }
}

/// Connects to the first address that accepts.
async fn connect_any(addresses: &[SocketAddr], delay: Duration) -> Result<TcpStream, Failure> {
    let mut rest: VecDeque<SocketAddr> = addresses.iter().copied().collect();
    let mut attempts = JoinSet::new();
    let mut last: Option<(SocketAddr, io::Error)> = None;
    loop {
        if let Some(address) = rest.pop_front() {
            attempts.spawn(async move {
                let result = TcpStream::connect(address).await;
                result.map_err(|error| (address, error))
            });
        }
        let has_more = !rest.is_empty();
        tokio::select! {
            done = attempts.join_next() => match done {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(error))) => last = Some(error),
                Some(Err(_)) => {}
                None if has_more => {}
                None => {
                    let what = last.map_or_else(
                        || "no address to connect to".to_owned(),
                        |(address, error)| format!("cannot connect to {address}: {error}"),
                    );
                    return Err(Failure::Connect(what));
                }
            },
            () = tokio::time::sleep(delay), if has_more => {}
        }
    }
}
