//! A first flight larger than the initial window, paced over one round trip (jumpstart; the first flight of
//! draft-kazuho-ccwg-rapid-start-02 §3.1).
//!
//! ```text
//!   armed ──── a burst is in flight, an RTT sample is known ────▶ unvalidated     window = jump
//!   unvalidated ──── first packet of the jump acknowledged ─────▶ validating      window = in flight, then it grows
//!   validating ──── last packet of the jump acknowledged ───────▶ done
//! ```
//!
//! The jump waits until the sender has more than a burst to send, so that a short exchange at the start does not use it
//! up; and for an RTT sample, since it must be paced. It happens once. Congestion before it disarms it.

use crate::rtt::Rtt;

/// The state of the jump.
#[derive(Clone, Debug)]
pub(super) struct Jump {
    stage: Stage,
    /// Bytes of the jump's packets acknowledged so far.
    acked: u64,
}

/// Packets are identified by their send index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waiting to jump to a window of this many bytes.
    Armed {
        window: u64,
    },
    Unvalidated {
        first: u64,
    },
    /// The jump's packets are `first..end`.
    Validating {
        first: u64,
        end: u64,
    },
    /// Never armed, disarmed, or over.
    Done,
}

impl Jump {
    /// No jump, or one to `window` bytes.
    pub(super) fn new(window: Option<u64>) -> Self {
        Self {
            stage: window.map_or(Stage::Done, |window| Stage::Armed { window }),
            acked: 0,
        }
    }

    pub(super) fn is_armed(&self) -> bool {
        matches!(self.stage, Stage::Armed { .. })
    }

    pub(super) fn is_unvalidated(&self) -> bool {
        matches!(self.stage, Stage::Unvalidated { .. })
    }

    /// Bytes of the jump's packets acknowledged so far.
    pub(super) fn acked(&self) -> u64 {
        self.acked
    }

    /// Whether the packet belongs to the jump, or was sent before it was validated.
    pub(super) fn is_before_end(&self, send_index: u64) -> bool {
        match self.stage {
            Stage::Armed { .. } | Stage::Done => false,
            Stage::Unvalidated { .. } => true,
            Stage::Validating { end, .. } => send_index < end,
        }
    }

    /// A packet was sent. Returns the window to jump to, if it is time: the next packet, `next`, is then the first of
    /// the jump.
    pub(super) fn on_sent(
        &mut self,
        in_flight: u64,
        burst: u64,
        next: u64,
        present: u64,
        rtt: &Rtt,
    ) -> Option<u64> {
        let Stage::Armed { window } = self.stage else {
            return None;
        };
        if in_flight < burst.min(present) || !rtt.has_sample() {
            return None;
        }
        if window <= present {
            self.stage = Stage::Done;
            return None;
        }
        self.stage = Stage::Unvalidated { first: next };
        Some(window)
    }

    /// A packet was acknowledged.
    pub(super) fn on_packet_acked(&mut self, send_index: u64, bytes: u64) {
        let is_of_jump = match self.stage {
            Stage::Unvalidated { first } => send_index >= first,
            Stage::Validating { first, end } => (first..end).contains(&send_index),
            Stage::Armed { .. } | Stage::Done => false,
        };
        if is_of_jump {
            self.acked = self.acked.saturating_add(bytes);
        }
    }

    /// An ACK frame was processed; true if it is the first to acknowledge a packet of the jump. `next` is the send index
    /// of the next packet: packets from there on are no longer part of the jump.
    pub(super) fn validate(&mut self, largest_acked: u64, next: u64) -> bool {
        match self.stage {
            Stage::Unvalidated { first } if largest_acked >= first => {
                self.stage = Stage::Validating { first, end: next };
                true
            }
            Stage::Validating { end, .. } if largest_acked.saturating_add(1) >= end => {
                self.stage = Stage::Done;
                false
            }
            _ => false,
        }
    }

    /// Congestion: no jump after this, and it ends with the packets sent so far.
    pub(super) fn on_congestion(&mut self, next: u64) {
        self.stage = match self.stage {
            Stage::Armed { .. } | Stage::Done => Stage::Done,
            Stage::Unvalidated { first } => Stage::Validating { first, end: next },
            validating @ Stage::Validating { .. } => validating,
        };
    }
}
