//! A connection in the closing or draining state, after its memory was released (RFC 9000 §10.2).
//!
//! Owns what these states need: the datagram with `CONNECTION_CLOSE`, which is sent again in response to packets, and the
//! time until which packets of the connection are recognized.
//!
//! # Decisions
//!
//! - *The keys are released as well* (§10.2.1), so the same datagram is sent again, in response to any datagram with one
//!   of the connection's IDs from the peer's address. Since datagrams are not authenticated, at most three times as many bytes are
//!   sent as were received since.

use core::time::Duration;

use lastbyte_congestion::Time;

use crate::{
    ack::Ecn,
    close::{Close, CloseReason, CloseState},
    connection::{NetworkPath, Transmit},
    path::Amplification,
};

/// The remaining state of a connection that is closing or draining.
pub(super) struct Closing {
    close: Close,
    network: NetworkPath,
    /// The datagram with `CONNECTION_CLOSE`; empty in the draining state.
    datagram: Box<[u8]>,
    amplification: Amplification,
}

impl Closing {
    /// The rest of a connection to this peer, whose `CONNECTION_CLOSE` was sent in this datagram.
    pub(super) fn new(close: Close, network: NetworkPath, datagram: &[u8]) -> Self {
        Self {
            close,
            network,
            datagram: datagram.into(),
            amplification: Amplification::limited(),
        }
    }

    /// A datagram with one of the connection's IDs was received. Returns whether it is to be answered.
    pub(super) fn on_datagram(&mut self, path: &NetworkPath, bytes: usize) -> bool {
        if path.remote != self.network.remote {
            return false;
        }
        self.amplification.on_datagram_received(bytes as u64);
        self.close.on_received();
        self.is_answer_due()
    }

    fn is_answer_due(&self) -> bool {
        self.close.wants_to_send() && self.datagram.len() as u64 <= self.amplification.budget()
    }

    /// The peer has lost the connection's state: nothing more is sent.
    pub(super) fn on_stateless_reset(&mut self, now: Time) {
        self.close
            .begin(now, CloseReason::StatelessReset, Duration::ZERO);
    }

    /// Writes the datagram again if an answer is due.
    pub(super) fn poll_transmit(&mut self, buffer: &mut [u8]) -> Option<Transmit> {
        if !self.is_answer_due() {
            return None;
        }
        let len = self.datagram.len();
        buffer.get_mut(..len)?.copy_from_slice(&self.datagram);
        self.close.on_sent();
        self.amplification.on_datagram_sent(len as u64);
        Some(Transmit {
            path: self.network,
            ecn: Ecn::NotEct,
            len,
            segment_len: len,
        })
    }

    /// Until when packets of the connection are recognized.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.close.deadline()
    }

    /// Handles an expired timer. Returns whether nothing of the connection is needed any longer.
    pub(super) fn on_timeout(&mut self, now: Time) -> bool {
        self.close.on_timeout(now);
        self.close.state() == CloseState::Over
    }
}

#[cfg(test)]
mod tests;
