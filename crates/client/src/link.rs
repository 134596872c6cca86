//! One connection, and the requests on it.

use core::time::Duration;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
};

use lastbyte_http3::{self as http3, BodySink};
use lastbyte_quic::{Time, close::CloseReason};
use lastbyte_wire::StreamId;

use crate::{Failure, Listener, Outcome, trust::Verifier};

/// One connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) number: usize,
    /// Which of the client's origins it leads to.
    pub(crate) origin: usize,
    pub(crate) http3: http3::Connection,
    /// The fetches that wait for their turn on it.
    pub(crate) queue: VecDeque<usize>,
    /// Those under way.
    pub(crate) streams: BTreeMap<StreamId, usize>,
    /// Those whose body could not be kept.
    pub(crate) refused: Vec<(StreamId, io::Error)>,
    /// Whether its handshake is complete.
    pub(crate) is_open: bool,
    /// Whether it takes no more requests.
    pub(crate) is_retired: bool,
    /// When it was begun, until a fetch has been charged for it.
    pub(crate) begin: Option<Time>,
    pub(crate) opened: Option<Time>,
}

impl Link {
    pub(crate) fn new(number: usize, origin: usize, now: Time, http3: http3::Connection) -> Self {
        Self {
            number,
            origin,
            http3,
            queue: VecDeque::new(),
            streams: BTreeMap::new(),
            refused: Vec::new(),
            is_open: false,
            is_retired: false,
            begin: Some(now),
            opened: None,
        }
    }
}

/// Hands body to the listener while its packet is at hand.
pub(crate) struct Bodies<'a> {
    pub(crate) streams: &'a BTreeMap<StreamId, usize>,
    pub(crate) refused: &'a mut Vec<(StreamId, io::Error)>,
    pub(crate) progress: &'a mut [Outcome],
    pub(crate) listener: &'a mut dyn Listener,
}

impl BodySink for Bodies<'_> {
    fn body(&mut self, stream: StreamId, bytes: &[u8]) -> usize {
        let Some(&fetch) = self.streams.get(&stream) else {
            return bytes.len();
        };
        if self.refused.iter().any(|(refused, _)| *refused == stream) {
            return bytes.len();
        }
        if let Some(progress) = self.progress.get_mut(fetch) {
            progress.received += bytes.len() as u64;
        }
        if let Err(error) = self.listener.on_body(fetch, bytes) {
            self.refused.push((stream, error));
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
    let complaint = verifier.take_complaint();
    match close {
        Some(CloseReason::Local { code, .. }) if code.tls_alert().is_some() => match complaint {
            Some(complaint) => Failure::Certificate(complaint),
            None => Failure::Tls(reason(close, phrase)),
        },
        Some(CloseReason::Peer { code }) if code.tls_alert().is_some() => {
            Failure::Tls(reason(close, phrase))
        }
        Some(CloseReason::IdleTimeout) | None => Failure::ConnectTimeout(after),
        close => Failure::Connect(reason(close, phrase)),
    }
}
