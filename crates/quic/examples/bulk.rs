//! Bulk transfers over a real socket, to meet other implementations: ALPN `bulk`; a request is one bidirectional stream
//! with the number of bytes wanted (8 bytes, little-endian), the answer that many bytes.
//!
//! ```text
//! bulk serve 127.0.0.1:4433 cert.pem key.pem [--retry] [--loss PERCENT]
//! bulk get   127.0.0.1:4433 cert.pem BYTES [--loss PERCENT]
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a program reads clocks, files and its arguments, and prints"
)]

use std::{
    net::{SocketAddr, UdpSocket},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use lastbyte_congestion::Time;
use lastbyte_quic::{
    WallTime,
    ack::Ecn,
    connection::{Config, Event, NetworkPath},
    crypto::{
        tls::{TlsClient, TlsServer},
        token::TokenKeys,
    },
    endpoint::{Endpoint, EndpointConfig, Handle, RetryPolicy, Route, TokenStore},
    stream::{KeepAll, Source, SourceError, StreamEvent, StreamSink},
};
use lastbyte_wire::{Direction, StreamId};
use rustls::{
    RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

type Failure = Box<dyn std::error::Error>;

/// So many bytes of no meaning.
struct Zeros(u64);

impl Source for Zeros {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        buffer.fill(0);
        Ok(())
    }
}

/// Counts what arrives.
#[derive(Default)]
struct Count {
    bytes: u64,
    is_complete: bool,
}

impl StreamSink for Count {
    fn data(&mut self, _: StreamId, _: u64, data: &[u8], fin: bool) -> usize {
        self.bytes += data.len() as u64;
        self.is_complete |= fin;
        data.len()
    }
}

/// A socket, a clock, and an endpoint between them.
struct Node {
    socket: UdpSocket,
    started: Instant,
    endpoint: Endpoint,
    buffer: Vec<u8>,
    /// Percentage of received datagrams to drop.
    loss_percent: u64,
    random: u64,
}

impl Node {
    fn new(address: &str, config: EndpointConfig, loss_percent: u64) -> Result<Self, Failure> {
        let since_epoch = SystemTime::UNIX_EPOCH.elapsed()?;
        let mut seed = [0; 32];
        aws_lc_rs::default_provider()
            .secure_random
            .fill(&mut seed)
            .map_err(|_| "no randomness")?;
        let mut endpoint = Endpoint::new(config, seed)?;
        endpoint.set_wall_clock(Time::ZERO, WallTime::from_unix(since_epoch));
        Ok(Self {
            socket: UdpSocket::bind(address)?,
            started: Instant::now(),
            endpoint,
            buffer: vec![0; 65_535],
            loss_percent,
            random: since_epoch.subsec_nanos().into(),
        })
    }

    fn now(&self) -> Time {
        Time::ZERO + self.started.elapsed()
    }

    /// Sends what there is to send, waits for a datagram or a timer, and hands in what came. Returns whose turn it is.
    fn turn(&mut self, sink: &mut dyn StreamSink) -> Result<Option<Handle>, Failure> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let handle = self.turn_with(&mut buffer, sink);
        self.buffer = buffer;
        handle
    }

    fn turn_with(
        &mut self,
        buffer: &mut [u8],
        sink: &mut dyn StreamSink,
    ) -> Result<Option<Handle>, Failure> {
        let local = self.socket.local_addr()?;
        while let Some(transmit) = self.endpoint.poll_transmit(self.now(), buffer) {
            for datagram in buffer
                .get(..transmit.len)
                .unwrap_or_default()
                .chunks(transmit.segment_len)
            {
                self.socket.send_to(datagram, transmit.path.remote)?;
            }
        }
        let now = self.now();
        if let Some(handle) = self.endpoint.poll_timeout(now) {
            return Ok(Some(handle));
        }
        let wait = self.endpoint.deadline().map(|at| at.since(now));
        let wait = wait.map(|wait| wait.max(Duration::from_micros(50)));
        self.socket.set_read_timeout(wait)?;
        let (len, remote) = match self.socket.recv_from(buffer) {
            Ok(received) => received,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock
                        | std::io::ErrorKind::TimedOut
                        | std::io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if (self.random >> 33) % 100 < self.loss_percent {
            return Ok(None);
        }
        let (now, path) = (self.now(), NetworkPath { local, remote });
        let datagram = buffer.get_mut(..len).unwrap_or_default();
        Ok(match self.endpoint.route(now, &path, datagram) {
            Route::Connection(handle) | Route::Accepted(handle) => {
                if let Some(connection) = self.endpoint.connection(handle) {
                    connection.handle_datagram(now, &path, Ecn::NotEct, datagram, sink);
                }
                Some(handle)
            }
            _ => None,
        })
    }
}

fn config() -> Result<Arc<Config>, Failure> {
    let mut config = Config::new("cubic".parse()?);
    config.ecn = false; // `std` does not tell marks.
    Ok(Arc::new(config))
}

fn serve(address: &str, cert: &str, key: &str, retry: bool, loss: u64) -> Result<(), Failure> {
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
    let mut tls = rustls::ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    tls.alpn_protocols = vec![b"bulk".to_vec()];
    let mut server = EndpointConfig::server(config()?, Arc::new(TlsServer::new(tls)?));
    if let (true, Some(server)) = (retry, &mut server.server) {
        server.retry = RetryPolicy::Always;
        let keys = TokenKeys::derive(&[[7; 32]]);
        server.tokens = keys.map(|keys| Arc::new(TokenStore::new(keys, [7; 32])));
    }
    let mut node = Node::new(address, server, loss)?;
    println!("listening on {}", node.socket.local_addr()?);
    loop {
        if let Some(handle) = node.turn(&mut KeepAll)? {
            answer(&mut node, handle);
        }
        while let Some(closed) = node.endpoint.poll_closed() {
            println!("closed: {:?}", closed.connection.close_reason());
        }
    }
}

/// Answers each stream whose request has come.
fn answer(node: &mut Node, handle: Handle) {
    let now = node.now();
    let Some(connection) = node.endpoint.connection(handle) else {
        return;
    };
    while let Some(event) = connection.streams().poll_event() {
        let StreamEvent::Readable(id) = event else {
            continue;
        };
        let mut request = Vec::new();
        let read = connection.streams().read(id, now, &mut |data| {
            request.extend_from_slice(data);
            data.len()
        });
        if let (Ok(_), Ok(bytes)) = (read, <[u8; 8]>::try_from(request.as_slice())) {
            let source = Box::new(Zeros(u64::from_le_bytes(bytes)));
            // A stream that the client has reset meanwhile needs no answer.
            let _ = connection.streams().send_source(id, source);
            let _ = connection.streams().finish(id);
        }
    }
}

fn get(address: &str, cert: &str, bytes: u64, loss: u64) -> Result<(), Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(cert)?)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"bulk".to_vec()];
    let remote: SocketAddr = address.parse()?;
    let mut node = Node::new("127.0.0.1:0", EndpointConfig::client(), loss)?;
    let path = NetworkPath {
        local: node.socket.local_addr()?,
        remote,
    };
    let crypto = Arc::new(TlsClient::new(tls)?);
    let handle = node.endpoint.connect(
        node.now(),
        path,
        "localhost",
        &config()?,
        crypto,
        Vec::new(),
    )?;
    let mut count = Count::default();
    while !count.is_complete {
        node.turn(&mut count)?;
        let connection = node
            .endpoint
            .connection(handle)
            .ok_or("the connection is gone")?;
        while let Some(event) = connection.poll_event() {
            match event {
                Event::HandshakeComplete => {
                    let id = connection
                        .streams()
                        .open(Direction::Bidirectional)
                        .ok_or("no stream")?;
                    connection.streams().write(id, &bytes.to_le_bytes())?;
                    connection.streams().finish(id)?;
                }
                Event::Closed(reason) => {
                    return Err(format!("closed: {reason:?} {}", connection.close_phrase()).into());
                }
                _ => {}
            }
        }
    }
    let (now, took) = (node.now(), node.started.elapsed().as_secs_f64());
    if let Some(connection) = node.endpoint.connection(handle) {
        println!(
            "{} bytes in {took:.3} s, {:?}",
            count.bytes,
            connection.recovery_statistics()
        );
        connection.close(now, 0);
    }
    node.socket
        .set_read_timeout(Some(Duration::from_millis(1)))?;
    node.turn(&mut KeepAll)?;
    if count.bytes == bytes {
        Ok(())
    } else {
        Err("not as many bytes as were asked for".into())
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut loss = 0;
    if let Some(at) = arguments.iter().position(|argument| argument == "--loss") {
        loss = arguments
            .get(at + 1)
            .ok_or("--loss needs a percentage")?
            .parse()?;
        arguments.drain(at..at + 2);
    }
    let retry = arguments.iter().any(|argument| argument == "--retry");
    arguments.retain(|argument| argument != "--retry");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve", address, cert, key] => serve(address, cert, key, retry, loss),
        ["get", address, cert, bytes] => get(address, cert, bytes.parse()?, loss),
        _ => Err("usage: bulk serve ADDRESS CERT KEY [--retry] [--loss PERCENT] | bulk get ADDRESS CERT BYTES [--loss PERCENT]".into()),
    }
}
