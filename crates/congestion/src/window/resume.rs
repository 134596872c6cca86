//! Careful Resume (RFC 9959): a jump to half the window that an earlier connection to the same endpoint used.
//!
//! ```text
//! Reconnaissance ── initial window acknowledged, more to send, RTT fits ──▶ Unvalidated   window = min(max_jump, saved / 2)
//! Unvalidated ───── first unvalidated packet acknowledged ────────────────▶ Validating    window = in flight, then it grows
//! Validating ────── last unvalidated packet acknowledged ─────────────────▶ Normal
//! Reconnaissance ── congestion, or an RTT of another path ────────────────▶ Normal        window unchanged
//! Unvalidated, Validating ── congestion ──────────────────────────────────▶ Safe Retreat  window = PipeSize / 2
//! Safe Retreat ──── recovery ends ────────────────────────────────────────▶ Normal        threshold = beta × PipeSize
//! ```
//!
//! | rule | RFC 9959 |
//! |---|---|
//! | all of the initial window is acknowledged without congestion before the jump | §3.2, Path confirmed |
//! | no jump if the minimum RTT is at most half of the saved one, or more than ten times it | §3.2, Minimum RTT too small; §4.2.1 |
//! | at most half of the saved window, and at most the largest jump | §3.3, Setting the `jump_cwnd` |
//! | paced over one round trip of the current RTT | §3.3, Pacing transmission |
//! | `PipeSize`: in flight before the jump, and all bytes acknowledged since | §3.3, §3.4, §3.5, Tracking `PipeSize` |
//! | a jump that was hardly used ends at `PipeSize` | §3.3, Check flight size |
//! | half of `PipeSize` at congestion, no growth until recovery ends, then a threshold of beta × `PipeSize` | §3.5 |
//!
//! Who may use saved parameters, for how long, and only once, is up to the transport: `lastbyte-quic` keeps them in address
//! validation tokens.
//!
//! # Decisions
//!
//! - The sections are those of draft-ietf-tsvwg-careful-resume-22, from which the RFC was made.
//! - The jump starts with the first packet beyond a burst in flight, as a jumpstart does: before that, the sender may have
//!   little to send.
//! - There is no timer for the end of the Unvalidated phase: the first unvalidated packet is acknowledged one round trip after
//!   the jump, or its loss is detected.
//! - Safe Retreat ends with the recovery period, not earlier than at the acknowledgment of the last unvalidated packet.

use crate::{rtt::Rtt, saved_path::SavedPath};

/// The state of Careful Resume.
#[derive(Clone, Debug)]
pub(super) struct Resume {
    phase: Phase,
}

/// Packets are identified by their send index. `PipeSize` is in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No saved parameters, or they are no longer used.
    Normal,
    Reconnaissance {
        saved: SavedPath,
        max_jump: u64,
    },
    Unvalidated {
        first: u64,
        pipe: u64,
    },
    /// Unvalidated packets are those before `end`.
    Validating {
        end: u64,
        pipe: u64,
    },
    SafeRetreat {
        end: u64,
        pipe: u64,
    },
}

/// The sender when a packet was sent. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'a> {
    pub(super) in_flight: u64,
    /// Acknowledged so far.
    pub(super) delivered: u64,
    pub(super) window: u64,
    pub(super) initial: u64,
    /// The burst size.
    pub(super) burst: u64,
    /// The send index of the next packet.
    pub(super) next: u64,
    pub(super) rtt: &'a Rtt,
}

impl Resume {
    pub(super) const fn new() -> Self {
        Self {
            phase: Phase::Normal,
        }
    }

    /// Parameters were saved for this path; it jumps to at most `max_jump` bytes.
    pub(super) fn start(&mut self, saved: SavedPath, max_jump: u64) {
        self.phase = Phase::Reconnaissance { saved, max_jump };
    }

    /// Ceases to use saved parameters.
    pub(super) fn stop(&mut self) {
        self.phase = Phase::Normal;
    }

    pub(super) const fn is_waiting(&self) -> bool {
        matches!(self.phase, Phase::Reconnaissance { .. })
    }

    pub(super) const fn is_unvalidated(&self) -> bool {
        matches!(self.phase, Phase::Unvalidated { .. })
    }

    /// A packet was sent. Returns the window to jump to, if it is time: the next packet is then the first unvalidated one.
    pub(super) fn on_sent(&mut self, sender: &Sender<'_>) -> Option<u64> {
        let Phase::Reconnaissance { saved, max_jump } = self.phase else {
            return None;
        };
        let is_confirmed = sender.delivered >= sender.initial && sender.rtt.has_sample();
        if !is_confirmed || sender.in_flight < sender.burst.min(sender.window) {
            return None;
        }
        let jump = max_jump.min(saved.window / 2);
        if !saved.is_of_path(sender.rtt.min()) || jump <= sender.window {
            self.stop();
            return None;
        }
        self.phase = Phase::Unvalidated {
            first: sender.next,
            pipe: sender.in_flight,
        };
        Some(jump)
    }

    /// A packet was acknowledged.
    pub(super) fn on_packet_acked(&mut self, send_index: u64, bytes: u64) {
        match &mut self.phase {
            Phase::Normal | Phase::Reconnaissance { .. } => {}
            Phase::Unvalidated { pipe, .. } => *pipe = pipe.saturating_add(bytes),
            Phase::Validating { end, pipe } | Phase::SafeRetreat { end, pipe } => {
                if send_index < *end {
                    *pipe = pipe.saturating_add(bytes);
                }
            }
        }
    }

    /// An ACK frame without congestion was processed. Returns the window at the end of the Unvalidated phase.
    pub(super) fn on_ack(
        &mut self,
        largest_acked: u64,
        next: u64,
        in_flight: u64,
        initial: u64,
    ) -> Option<u64> {
        match self.phase {
            Phase::Unvalidated { first, pipe } if largest_acked >= first => {
                if in_flight < initial || in_flight <= pipe {
                    self.stop();
                    return Some(pipe.max(initial));
                }
                self.phase = Phase::Validating { end: next, pipe };
                Some(in_flight)
            }
            Phase::Validating { end, .. } if largest_acked.saturating_add(1) >= end => {
                self.stop();
                None
            }
            _ => None,
        }
    }

    /// Congestion. Returns `PipeSize` on entry to Safe Retreat. `next` is the send index of the next packet.
    pub(super) fn on_congestion(&mut self, next: u64) -> Option<u64> {
        let (end, pipe) = match self.phase {
            Phase::Unvalidated { pipe, .. } => (next, pipe),
            Phase::Validating { end, pipe } => (end, pipe),
            Phase::Normal | Phase::Reconnaissance { .. } | Phase::SafeRetreat { .. } => {
                self.stop();
                return None;
            }
        };
        self.phase = Phase::SafeRetreat { end, pipe };
        Some(pipe)
    }

    /// Recovery ended. Returns `PipeSize` on exit from Safe Retreat.
    pub(super) fn on_recovered(&mut self) -> Option<u64> {
        let Phase::SafeRetreat { pipe, .. } = self.phase else {
            return None;
        };
        self.stop();
        Some(pipe)
    }
}

#[cfg(test)]
mod tests;
