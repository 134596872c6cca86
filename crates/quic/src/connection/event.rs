//! Events of a connection for the application.

use std::collections::VecDeque;

use super::NetworkPath;
use crate::close::CloseReason;

/// Something happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This side's handshake is complete (RFC 9001 §4.1.1): the peer is who it says.
    HandshakeComplete,
    /// The handshake is confirmed (RFC 9001 §4.1.2).
    HandshakeConfirmed,
    /// The server takes what was sent in 0-RTT packets, or not: then all streams are as if they had never been opened
    /// (RFC 9001 §4.6.2).
    ZeroRtt {
        /// Whether it does.
        is_accepted: bool,
    },
    /// The server gave a token for the next connection to it (RFC 9000 §8.1.3).
    NewToken(Vec<u8>),
    /// The connection goes by another path now (RFC 9000 §9).
    Moved(NetworkPath),
    /// A path that this side was to move to cannot be used: it did not answer (RFC 9000 §8.2.4), or the peer took back the
    /// connection ID that was meant for it. The connection stays where it is. A server that goes back to where its client
    /// was before is told by [`Event::Moved`] alone.
    PathFailed(NetworkPath),
    /// The connection ends; nothing follows.
    Closed(CloseReason),
}

/// Events that wait to be taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    waiting: VecDeque<Event>,
}

impl Events {
    /// More than an application leaves waiting that wants to know.
    const MAX: usize = 32;

    pub(super) fn push(&mut self, event: Event) {
        if self.waiting.len() < Self::MAX || matches!(event, Event::Closed(_)) {
            self.waiting.push_back(event);
        }
    }

    pub(super) fn poll(&mut self) -> Option<Event> {
        let event = self.waiting.pop_front();
        if event.is_none() {
            // Most come with the handshake, and hardly any after it.
            self.waiting = VecDeque::new();
        }
        event
    }
}
