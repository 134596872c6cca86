//! Clients over TLS that make the server work needlessly, or wait: incomplete handshakes and requests, responses that the client
//! does not read, requests over HTTP/2 that are reset in the same segment, header blocks without an end, floods of PING and SETTINGS.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, StreamOwned};

use crate::{Outcome, Tally, trust::AcceptAny};

/// How long a client holds its connection at most.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a call waits for the server.
const WAIT: Duration = Duration::from_millis(50);
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A way to be a bad client: what it sends first, and then again and again.
struct Manner {
    alpn: &'static [u8],
    first: Vec<u8>,
    again: Vec<u8>,
    /// Whether it reads what the server sends.
    reads: bool,
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()];
    [&head.concat(), payload].concat()
}

/// A GET of an object of 100 kB, with indexed fields and literals without indexing (RFC 7541, section 6).
fn head() -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    for (name, value) in [(0x04, "/100000"), (0x01, "localhost")] {
        block.extend([name, value.len() as u8]);
        block.extend(value.as_bytes());
    }
    block
}

const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const SETTINGS: u8 = 0x4;
const PING: u8 = 0x6;
const CONTINUATION: u8 = 0x9;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

fn manners() -> Vec<Manner> {
    let http2 = |settings: &[u8], requests: Vec<u8>, again: Vec<u8>, reads| Manner {
        alpn: b"h2",
        first: [PREFACE.to_vec(), frame(SETTINGS, 0, 0, settings), requests].concat(),
        again,
        reads,
    };
    let http1 = |first: String, again: &str| Manner {
        alpn: b"http/1.1",
        first: first.into_bytes(),
        again: again.as_bytes().to_vec(),
        reads: false,
    };
    let requests = |count: u32, resets: bool| {
        let ids = (0..count).map(|at| 2 * at + 1);
        let parts = ids.flat_map(|id| {
            let mut parts = frame(HEADERS, END_STREAM | END_HEADERS, id, &head());
            if resets {
                parts.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
            }
            parts
        });
        parts.collect::<Vec<u8>>()
    };
    let get = "GET /300000 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    vec![
        http2(&[], requests(2000, true), Vec::new(), true),
        // A window of 0 for each stream.
        http2(&[0, 4, 0, 0, 0, 0], requests(100, false), Vec::new(), true),
        http2(&[], requests(100, false), Vec::new(), false),
        http2(
            &[],
            frame(HEADERS, END_STREAM, 1, &head()),
            frame(CONTINUATION, 0, 1, &[0; 1000]),
            true,
        ),
        http2(
            &[],
            Vec::new(),
            frame(PING, 0, 0, &[7; 8]).repeat(100),
            false,
        ),
        http2(
            &[],
            Vec::new(),
            frame(SETTINGS, 0, 0, &[]).repeat(100),
            false,
        ),
        http1("GET / HTTP/1.1\r\nhost: loc".into(), ""),
        http1("GET / HTTP/1.1\r\nhost: localhost\r\n".into(), "x: y\r\n"),
        http1(get.repeat(200), ""),
        http1(
            "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n".into(),
            "x",
        ),
        http1(
            "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n".into(),
            "1\r\nx\r\n",
        ),
        http1("\0\u{1}".repeat(10_000), "\r\n"),
    ]
}

fn connect(server: SocketAddr, alpn: &[u8]) -> Outcome<Tls> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AcceptAny))
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    let connection = ClientConnection::new(Arc::new(tls), "localhost".try_into()?)?;
    Ok(StreamOwned::new(connection, tcp(server)?))
}

fn tcp(server: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(WAIT))?;
    stream.set_write_timeout(Some(WAIT))?;
    Ok(stream)
}

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

/// One connection, until the server ends it or patience does; whether it was the server.
fn visit(server: SocketAddr, manner: &Manner, tally: &Tally) -> Outcome<bool> {
    let mut stream = connect(server, manner.alpn)?;
    let until = Instant::now() + PATIENCE;
    let mut waiting: &[u8] = &manner.first;
    let mut sink = [0; 4096];
    while Instant::now() < until && !tally.is_over.load(Relaxed) {
        match stream.write(waiting) {
            Ok(sent) => waiting = &waiting[sent..],
            Err(error) if is_wait(&error) => {}
            Err(_) => return Ok(true),
        }
        if waiting.is_empty() {
            waiting = &manner.again;
            if manner.again.len() < 100 {
                thread::sleep(WAIT / 10);
            }
        }
        if manner.reads {
            match stream.read(&mut sink) {
                Ok(0) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_wait(&error) => {}
                Err(_) => return Ok(true),
            }
        }
    }
    Ok(false)
}

/// Visits the server in each manner until all is over.
pub(crate) fn waste(server: SocketAddr, number: usize, tally: &Tally) -> Outcome<()> {
    let manners = manners();
    for manner in manners.iter().cycle().skip(number) {
        if tally.is_over.load(Relaxed) {
            break;
        }
        // A connection that gets no further than a byte of its handshake.
        let half = tcp(server)?;
        (&half).write_all(&[0x16])?;
        // One that the server refuses, or closes in its handshake, counts as closed.
        let is_closed = visit(server, manner, tally).unwrap_or(true);
        tally.held.fetch_add(1, Relaxed);
        tally.ended.fetch_add(u64::from(is_closed), Relaxed);
    }
    Ok(())
}
