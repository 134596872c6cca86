//! One HTTP/3 connection, and the requests on it.

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use bytes::Bytes;
use lastbyte_http3::{self as http3, BodySink};
use lastbyte_quic::{Time, close::CloseReason};
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

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) number: usize,
    /// Which of the client's servers it leads to.
    pub(crate) server: usize,
    pub(crate) http3: http3::Connection,
    /// The fetches that wait for their turn on it.
    pub(crate) queue: VecDeque<usize>,
    /// Those under way.
    pub(crate) streams: BTreeMap<StreamId, usize>,
    /// What is sent as it is read.
    pub(crate) uploads: BTreeMap<StreamId, StreamUpload>,
    /// Those of which no more is wanted.
    pub(crate) stopped: Vec<(StreamId, Stop)>,
    /// Whether its handshake is complete.
    pub(crate) is_open: bool,
    /// Whether it takes no more requests.
    pub(crate) is_retired: bool,
    /// When it was begun, until a fetch has been charged for it.
    pub(crate) begin: Option<Time>,
    pub(crate) opened: Option<Time>,
    /// When it last carried a request or the end of a response.
    pub(crate) last_used: Time,
    /// Who answers.
    pub(crate) remote: Option<SocketAddr>,
    /// The server's own certificate, in DER, if it was shown.
    pub(crate) certificate: Option<Vec<u8>>,
}

/// An upload of unknown length, on its way from a thread that reads it.
#[derive(Debug)]
pub(crate) struct StreamUpload {
    pub(crate) source: mpsc::Receiver<io::Result<Bytes>>,
    /// What there was no room for yet.
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
            begin: Some(now),
            opened: None,
            last_used: now,
            remote: None,
            certificate: None,
        }
    }
}

impl Link {
    /// Whether what is asked of `host` at one of these addresses can be asked here (RFC 9114 §3.3): the connection leads
    /// there, and the server's certificate is for that name, too. Who verified the certificate for one name has verified it.
    pub(crate) fn is_for(&self, host: &str, addresses: &[SocketAddr]) -> bool {
        let is_ready = self.is_open && !self.is_retired;
        let leads_there = self.remote.is_some_and(|at| addresses.contains(&at));
        is_ready
            && leads_there
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

/// Hands body on while its packet is at hand.
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
        if let Err(stop) = self.fetches.body(fetch, bytes) {
            self.stopped.push((stream, stop));
        }
        bytes.len()
    }
}
/// Why a connection ended, for people.
pub(crate) fn reason(close: Option<CloseReason>, phrase: &str) -> String {
    let said = if phrase.is_empty() {
        String::new()
    } else {
        format!(" (`{}`)", phrase.escape_debug())
    };
    match close {
        Some(CloseReason::Local { code, reason }) => {
            format!("the server broke a rule of QUIC: {reason} ({code})")
        }
        Some(CloseReason::LocalApplication { code }) => {
            format!("the connection was closed from here, with code {code:#x}")
        }
        Some(CloseReason::Peer { code }) => {
            format!("the server closed the connection: {code}{said}")
        }
        Some(CloseReason::PeerApplication { code }) => {
            let code = http3::Code::new(lastbyte_wire::VarInt::saturating(code));
            format!("the server closed the connection: {code}{said}")
        }
        Some(CloseReason::StatelessReset) => {
            "the server does not know the connection any more (stateless reset)".to_owned()
        }
        Some(CloseReason::IdleTimeout) => "the server has fallen silent".to_owned(),
        Some(CloseReason::NoCommonVersion) => {
            "the server speaks neither version 1 nor 2 of QUIC".to_owned()
        }
        None => "the connection ended".to_owned(),
    }
}

/// Why a handshake came to nothing.
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
        close => Failure::Connect(reason(close, phrase)),
    }
}
