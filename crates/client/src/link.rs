//! An HTTP/3 connection and its requests.

use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use bytes::Bytes;
use lastbyte_http3::{self as http3, BodySink};
use lastbyte_quic::{Time, close::CloseReason};
use lastbyte_udp::source_address;
use lastbyte_wire::StreamId;
use rustls::{
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
};
use tokio::sync::mpsc;

use crate::{
    failure::Failure,
    fetch_state::{FetchStates, Stop},
    trust::Verifier,
};

/// The addresses of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Source {
    /// The local address in use, if known.
    pub(crate) current: Option<IpAddr>,
    /// The address that is being probed, or to which the server does not let the connection move.
    pub(crate) probed: Option<IpAddr>,
}

impl Source {
    /// The address of a new connection.
    pub(crate) fn towards(remote: SocketAddr) -> Self {
        Self {
            current: source_address(remote).ok(),
            probed: None,
        }
    }
}

/// An HTTP/3 connection and its requests.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) number: usize,
    /// The index of its server.
    pub(crate) server: usize,
    pub(crate) http3: http3::Connection,
    /// Fetches that wait to be sent on this connection. One leaves when it is sent, ends before that (its time limit), or when
    /// the connection fails, and then waits for another.
    pub(crate) queue: VecDeque<usize>,
    /// The fetches in progress: at most the streams that the server permits. One leaves when its response is complete or not
    /// needed any more, when either side resets it, when its upload cannot be read, at its time limit, and when the connection
    /// fails or is retired by GOAWAY; then it is repeated or ends.
    pub(crate) streams: BTreeMap<StreamId, usize>,
    /// Uploads of unknown length, which leave when they end, fail, are stopped by the server, or with their fetch.
    pub(crate) uploads: BTreeMap<StreamId, StreamUpload>,
    /// Streams to be cancelled, because the rest of their responses is not needed: at most one entry for each of `streams`,
    /// taken in the same turn.
    pub(crate) stopped: Vec<(StreamId, Stop)>,
    /// Whether its handshake is complete.
    pub(crate) is_open: bool,
    /// Whether no more requests may be sent on it.
    pub(crate) is_retired: bool,
    /// When it was started; taken by the first fetch for its timing.
    pub(crate) started: Option<Time>,
    pub(crate) opened: Option<Time>,
    /// When it last carried a request or the end of a response.
    pub(crate) last_used: Time,
    /// The address of the server.
    pub(crate) remote: Option<SocketAddr>,
    /// The local addresses.
    pub(crate) source: Source,
    /// The server's end-entity certificate in DER, if known.
    pub(crate) certificate: Option<Vec<u8>>,
}

/// An upload of unknown length, which is read by another thread.
#[derive(Debug)]
pub(crate) struct StreamUpload {
    pub(crate) source: mpsc::Receiver<io::Result<Bytes>>,
    /// Data that could not be written yet.
    pub(crate) rest: Bytes,
}

impl Link {
    pub(crate) fn new(number: usize, server: usize, now: Time, http3: http3::Connection) -> Self {
        Self {
            number,
            server,
            http3,
            queue: VecDeque::new(),
            streams: BTreeMap::new(),
            uploads: BTreeMap::new(),
            stopped: Vec::new(),
            is_open: false,
            is_retired: false,
            started: Some(now),
            opened: None,
            last_used: now,
            remote: None,
            source: Source::default(),
            certificate: None,
        }
    }
}

impl Link {
    /// Whether requests for `host`, with these addresses, may be sent on this connection (RFC 9114 §3.3): its server
    /// has one of the addresses, and its certificate, which has been verified, covers the name.
    pub(crate) fn can_serve(&self, host: &str, addresses: &[SocketAddr]) -> bool {
        let is_ready = self.is_open && !self.is_retired;
        let has_address = self.remote.is_some_and(|at| addresses.contains(&at));
        is_ready
            && has_address
            && self.certificate.as_ref().is_some_and(|certificate| {
                let certificate = CertificateDer::from(certificate.as_slice());
                let name = ServerName::try_from(host);
                let parsed = ParsedCertificate::try_from(&certificate);
                match (parsed, name) {
                    (Ok(parsed), Ok(name)) => verify_server_name(&parsed, &name).is_ok(),
                    _ => false,
                }
            })
    }
}

/// Passes body data from received packets to the listener.
pub(crate) struct Bodies<'a, 'b> {
    pub(crate) streams: &'a BTreeMap<StreamId, usize>,
    pub(crate) stopped: &'a mut Vec<(StreamId, Stop)>,
    pub(crate) fetches: &'a mut FetchStates<'b>,
}

impl BodySink for Bodies<'_, '_> {
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        let Some(&fetch) = self.streams.get(&stream) else {
            return bytes.len();
        };
        if self.stopped.iter().any(|(stopped, _)| *stopped == stream) {
            return bytes.len();
        }
        if let Err(stop) = self.fetches.on_body(fetch, bytes) {
            self.stopped.push((stream, stop));
        }
        bytes.len()
    }
}
/// Describes why a connection ended.
pub(crate) fn reason(close: Option<CloseReason>, phrase: &str) -> String {
    let phrase = if phrase.is_empty() {
        String::new()
    } else {
        format!(" (`{}`)", phrase.escape_debug())
    };
    match close {
        Some(CloseReason::Local { code, reason, .. }) => {
            format!("the server violated QUIC: {reason} ({code})")
        }
        Some(CloseReason::LocalApplication { code }) => {
            format!("the connection was closed locally with code {code:#x}")
        }
        Some(CloseReason::Peer { code }) => {
            format!("the server closed the connection: {code}{phrase}")
        }
        Some(CloseReason::PeerApplication { code }) => {
            let code = http3::Code::new(lastbyte_wire::VarInt::saturating(code));
            format!("the server closed the connection: {code}{phrase}")
        }
        Some(CloseReason::StatelessReset) => {
            "the server no longer knows the connection (stateless reset)".to_owned()
        }
        Some(CloseReason::IdleTimeout) => {
            "no more packets from the server (idle timeout)".to_owned()
        }
        Some(CloseReason::NoCommonVersion) => {
            "the server supports neither QUIC version 1 nor version 2".to_owned()
        }
        None => "the connection was closed".to_owned(),
    }
}

/// The failure of a fetch whose connection closed during the handshake, this long after the first attempt started.
pub(crate) fn handshake_failure(
    close: Option<CloseReason>,
    phrase: &str,
    verifier: &Verifier,
    after: Duration,
) -> Failure {
    let failure = verifier.last_failure();
    match close {
        Some(CloseReason::Local { code, .. }) if code.tls_alert().is_some() => {
            failure.unwrap_or_else(|| Failure::Tls(reason(close, phrase)))
        }
        Some(CloseReason::Peer { code }) if code.tls_alert().is_some() => {
            Failure::Tls(reason(close, phrase))
        }
        Some(CloseReason::IdleTimeout) | None => Failure::ConnectTimeout(after),
        Some(CloseReason::NoCommonVersion) => Failure::Connect(reason(close, phrase)),
        close => Failure::QuicHandshake(reason(close, phrase)),
    }
}
