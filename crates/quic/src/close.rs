//! The end of a connection: closing and draining (RFC 9000 §10.2).
//!
//! ```text
//!   open ──── we close ────▶ closing ──── the peer closes too ────▶ draining ──── 3 × PTO ────▶ over
//!    └──── the peer closes, or resets ─────────────────────────────▶ ┘
//! ```
//!
//! In the closing state `CONNECTION_CLOSE` is repeated in response to packets, but to fewer and fewer of them, so that
//! two ends do not send to each other endlessly (§10.2.1). In the draining state nothing is sent.

use core::{fmt, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_wire::{TransportError, frame::FrameType};

/// Why a connection ended, and which side ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// This side detected a transport error.
    Local {
        /// The error code.
        code: TransportError,
        /// The reason, to act on.
        reason: &'static str,
        /// The type of the frame that caused the error; [`FrameType::PADDING`] if none did (RFC 9000 §19.19).
        frame_type: FrameType,
    },
    /// The application on this side closed the connection.
    LocalApplication {
        /// Its error code.
        code: u64,
    },
    /// The peer detected a transport error.
    Peer {
        /// The error code.
        code: TransportError,
    },
    /// The peer's application closed the connection.
    PeerApplication {
        /// Its error code.
        code: u64,
    },
    /// A stateless reset: the peer has lost the connection's state (RFC 9000 §10.3).
    StatelessReset,
    /// The idle timeout expired (RFC 9000 §10.1). Nothing more is sent.
    IdleTimeout,
    /// The server supports none of our versions (RFC 9000 §6.2).
    NoCommonVersion,
}

impl CloseReason {
    /// Whether `CONNECTION_CLOSE` must be sent.
    pub const fn needs_close_frame(&self) -> bool {
        matches!(self, Self::Local { .. } | Self::LocalApplication { .. })
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local { code, reason, .. } => {
                write!(f, "the peer violated QUIC: {reason} ({code})")
            }
            Self::LocalApplication { code } => {
                write!(
                    f,
                    "the application on this side closed it with code {code:#x}"
                )
            }
            Self::Peer { code } => write!(f, "the peer closed it: {code}"),
            Self::PeerApplication { code } => {
                write!(f, "the peer's application closed it with code {code:#x}")
            }
            Self::StatelessReset => f.write_str("the peer no longer knows it (stateless reset)"),
            Self::IdleTimeout => f.write_str("no more packets from the peer (idle timeout)"),
            Self::NoCommonVersion => {
                f.write_str("the server supports neither QUIC version 1 nor version 2")
            }
        }
    }
}

/// The state of the close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseState {
    /// The connection is open.
    Open,
    /// Closing: `CONNECTION_CLOSE` was sent, and is repeated in response to packets.
    Closing,
    /// Draining: nothing is sent.
    Draining,
    /// Closed: all state may be dropped.
    Over,
}

/// The end of a connection.
#[derive(Clone, Debug)]
pub struct Close {
    state: CloseState,
    reason: Option<CloseReason>,
    /// The peer's reason phrase.
    phrase: Box<str>,
    over_at: Option<Time>,
    is_to_send: bool,
    /// Packets received while closing.
    received: u64,
    /// `CONNECTION_CLOSE` is repeated at this many of them.
    next_answer: u64,
}

impl Close {
    /// An open connection.
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

    /// The state of the close.
    pub const fn state(&self) -> CloseState {
        self.state
    }

    /// Why the connection ended; the first reason is kept.
    pub const fn reason(&self) -> Option<CloseReason> {
        self.reason
    }

    /// The reason phrase of the peer's first `CONNECTION_CLOSE` that has one.
    pub fn phrase(&self) -> &str {
        &self.phrase
    }

    /// The peer sent `CONNECTION_CLOSE` with this reason phrase.
    pub fn on_phrase(&mut self, phrase: &[u8]) {
        if self.phrase.is_empty() {
            self.phrase = String::from_utf8_lossy(phrase).into();
        }
    }

    /// Closes the connection. All state is kept for three times `probe_timeout` (RFC 9000 §10.2).
    pub fn begin(&mut self, now: Time, reason: CloseReason, probe_timeout: Duration) {
        match (self.state, reason) {
            (CloseState::Open, CloseReason::IdleTimeout | CloseReason::NoCommonVersion) => {
                self.state = CloseState::Over;
            }
            (CloseState::Open, reason) if reason.needs_close_frame() => {
                self.state = CloseState::Closing;
                self.is_to_send = true;
            }
            (CloseState::Open, _) => self.state = CloseState::Draining,
            // The peer closes as well: no response is needed any more (§10.2.2).
            (CloseState::Closing, reason) if !reason.needs_close_frame() => {
                self.state = CloseState::Draining;
                self.is_to_send = false;
                return;
            }
            _ => return,
        }
        self.reason = Some(reason);
        self.over_at = Some(now + probe_timeout.saturating_mul(3));
    }

    /// A packet was received after the connection was closed.
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

    /// Whether `CONNECTION_CLOSE` must be sent now.
    pub const fn wants_to_send(&self) -> bool {
        self.is_to_send
    }

    /// `CONNECTION_CLOSE` was sent.
    pub fn on_sent(&mut self) {
        self.is_to_send = false;
    }

    /// When [`Close::on_timeout`] is due.
    pub fn deadline(&self) -> Option<Time> {
        match self.state {
            CloseState::Closing | CloseState::Draining => self.over_at,
            CloseState::Open | CloseState::Over => None,
        }
    }

    /// Enters the closed state, if it is time.
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
