//! Events of a connection for the application.

use std::collections::VecDeque;

use super::NetworkPath;
use crate::close::CloseReason;

/// A connection event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete on this side (RFC 9001 §4.1.1): the peer is authenticated.
    HandshakeComplete,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    HandshakeConfirmed,
    /// The server accepted or rejected 0-RTT. After a rejection all streams are as if they had never been opened (RFC
    /// 9001 §4.6.2).
    ZeroRtt {
        /// Whether 0-RTT was accepted.
        is_accepted: bool,
    },
    /// The server sent a token for a future connection (RFC 9000 §8.1.3).
    NewToken(Vec<u8>),
    /// The connection uses another path now (RFC 9000 §9).
    Moved(NetworkPath),
    /// Migration to a path failed: the path did not respond (RFC 9000 §8.2.4), or the peer retired the connection ID
    /// reserved for it. The connection stays on its current path. If a server falls back to the client's previous
    /// address, only [`Event::Moved`] is reported.
    PathFailed(NetworkPath),
    /// Nothing was received for a second, and nothing is in flight. The connection has freed what it can allocate again, and
    /// so can the application. The event comes once, until the peer sends again.
    Idle,
    /// The connection is closing; no further events follow.
    Closed(CloseReason),
}

/// Pending events.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<Event>,
}

impl Events {
    /// Upper bound; an application that polls for events never leaves this many.
    const MAX: usize = 32;

    pub(super) fn push(&mut self, event: Event) {
        if self.waiting.len() < Self::MAX || matches!(event, Event::Closed(_)) {
            self.waiting.push_back(event);
        }
    }

    pub(super) fn poll(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front();
        if event.is_none() {
            // Most events occur during the handshake, and few afterwards.
            self.waiting = VecDeque::new();
        }
        event
    }
}
