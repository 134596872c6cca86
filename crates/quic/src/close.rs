//! The end of a connection: closing and draining (RFC 9000 §10.2).
//!
//! ```text
//!   open ──── we close ────▶ closing ──── the peer closes too ────▶ draining ──── 3 × PTO ────▶ over
//!    └──── the peer closes, or resets ─────────────────────────────▶ ┘
//! ```
//!
//! Closing answers packets with `CONNECTION_CLOSE` again, but to ever fewer of them, so that two ends cannot keep each
//! other busy (§10.2.1). Draining says nothing.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::TransportError;

/// Why a connection ended, and who ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// This side found an error of the transport.
    Local {
        /// The code.
        code: TransportError,
        /// What was wrong, to act on.
        reason: &'static str,
    },
    /// The application of this side closed.
    LocalApplication {
        /// Its code.
        code: u64,
    },
    /// The peer found an error of the transport.
    Peer {
        /// The code.
        code: TransportError,
    },
    /// The application of the peer closed.
    PeerApplication {
        /// Its code.
        code: u64,
    },
    /// The peer has forgotten the connection (RFC 9000 §10.3).
    StatelessReset,
    /// Nothing happened for too long (RFC 9000 §10.1). Nothing more is sent.
    IdleTimeout,
    /// The server speaks none of the versions that we do (RFC 9000 §6.2).
    NoCommonVersion,
}

impl CloseReason {
    /// Whether `CONNECTION_CLOSE` is to be sent.
    #[must_use]
    pub const fn is_said(&self) -> bool {
        matches!(self, Self::Local { .. } | Self::LocalApplication { .. })
    }
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseState {
    /// It has not begun.
    Open,
    /// We said `CONNECTION_CLOSE`, and say it again when asked.
    Closing,
    /// Nothing is said any more.
    Draining,
    /// All state may be dropped.
    Over,
}

/// The end of a connection.
#[derive(Clone, Debug)]
pub struct Close {
    state: CloseState,
    reason: Option<CloseReason>,
    /// The reason phrase of the peer.
    phrase: Box<str>,
    over_at: Option<Time>,
    is_to_send: bool,
    /// Packets received while closing.
    received: u64,
    /// At how many of them `CONNECTION_CLOSE` is said again.
    next_answer: u64,
}

impl Close {
    /// A connection that is open.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: CloseState::Open,
            reason: None,
            phrase: Box::default(),
            over_at: None,
            is_to_send: false,
            received: 0,
            next_answer: 1,
        }
    }

    /// How far the end has come.
    #[must_use]
    pub const fn state(&self) -> CloseState {
        self.state
    }

    /// Why the connection ended; the first reason counts.
    #[must_use]
    pub const fn reason(&self) -> Option<CloseReason> {
        self.reason
    }

    /// The reason phrase of the peer's first `CONNECTION_CLOSE` that has one.
    #[must_use]
    pub fn phrase(&self) -> &str {
        &self.phrase
    }

    /// The peer sent `CONNECTION_CLOSE` with this reason phrase.
    pub fn on_phrase(&mut self, phrase: &[u8]) {
        if self.phrase.is_empty() {
            self.phrase = String::from_utf8_lossy(phrase).into();
        }
    }

    /// The connection ends. `probe_timeout` is the present one: three of them later all state may go (RFC 9000 §10.2).
    pub fn begin(&mut self, now: Time, reason: CloseReason, probe_timeout: Duration) {
        match (self.state, reason) {
            (CloseState::Open, CloseReason::IdleTimeout | CloseReason::NoCommonVersion) => {
                self.state = CloseState::Over;
            }
            (CloseState::Open, reason) if reason.is_said() => {
                self.state = CloseState::Closing;
                self.is_to_send = true;
            }
            (CloseState::Open, _) => self.state = CloseState::Draining,
            // The peer closes as well: there is no one left to answer to (§10.2.2).
            (CloseState::Closing, reason) if !reason.is_said() => {
                self.state = CloseState::Draining;
                self.is_to_send = false;
                return;
            }
            _ => return,
        }
        self.reason = Some(reason);
        self.over_at = Some(now + probe_timeout.saturating_mul(3));
    }

    /// A packet came in after the end began.
    pub fn on_received(&mut self) {
        if self.state != CloseState::Closing {
            return;
        }
        self.received = self.received.saturating_add(1);
        if self.received >= self.next_answer {
            self.next_answer = self.next_answer.saturating_mul(2);
            self.received = 0;
            self.is_to_send = true;
        }
    }

    /// Whether `CONNECTION_CLOSE` is to be sent now.
    #[must_use]
    pub const fn wants_to_send(&self) -> bool {
        self.is_to_send
    }

    /// `CONNECTION_CLOSE` left.
    pub fn on_sent(&mut self) {
        self.is_to_send = false;
    }

    /// When [`Close::on_timeout`] wants to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match self.state {
            CloseState::Closing | CloseState::Draining => self.over_at,
            CloseState::Open | CloseState::Over => None,
        }
    }

    /// Ends the end, if it is time.
    pub fn on_timeout(&mut self, now: Time) {
        if self.deadline().is_some_and(|at| at <= now) {
            self.state = CloseState::Over;
            self.is_to_send = false;
        }
    }
}

impl Default for Close {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
