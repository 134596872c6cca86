//! To which of a host's addresses a connection is made (RFC 8305 §5).
//!
//! One address after the other is tried, the next while the last may still answer. The first whose handshake is complete
//! wins. Owns no connection: attempts are handles.

use core::{net::SocketAddr, time::Duration};
use std::collections::VecDeque;

use lastbyte_quic::{Time, endpoint::Handle};

use crate::Failure;

/// The attempts to connect to one host.
#[derive(Debug)]
pub(crate) struct Race {
    pub(crate) begin: Time,
    addresses: VecDeque<SocketAddr>,
    next_at: Time,
    attempts: Vec<Handle>,
    /// Requests are under way in 0-RTT: they are not sent by two ways at once.
    is_early: bool,
    failure: Option<Failure>,
}

impl Race {
    pub(crate) fn new(now: Time, addresses: impl Iterator<Item = SocketAddr>) -> Self {
        Self {
            begin: now,
            addresses: addresses.collect(),
            next_at: now,
            attempts: Vec::new(),
            is_early: false,
            failure: None,
        }
    }

    /// The next address, if it is time to try it.
    pub(crate) fn next(&mut self, now: Time) -> Option<SocketAddr> {
        let is_due = self.attempts.is_empty() || (self.next_at <= now && !self.is_early);
        if is_due {
            self.addresses.pop_front()
        } else {
            None
        }
    }

    /// An attempt has begun.
    pub(crate) fn on_begun(&mut self, now: Time, attempt: Handle, is_early: bool, delay: Duration) {
        self.attempts.push(attempt);
        self.is_early = is_early;
        self.next_at = now + delay;
    }

    /// An attempt came to nothing, or could not even begin. The first reason that is not for lack of an answer is kept.
    pub(crate) fn on_failed(&mut self, attempt: Option<Handle>, failure: Failure) {
        self.attempts.retain(|other| Some(*other) != attempt);
        if self.attempts.is_empty() {
            self.is_early = false;
        }
        if matches!(
            self.failure,
            None | Some(Failure::Connect(_) | Failure::ConnectTimeout(_))
        ) {
            self.failure = Some(failure);
        }
    }

    /// Why nothing came of it, once that is so.
    pub(crate) fn take_defeat(&mut self) -> Option<Failure> {
        if self.addresses.is_empty() && self.attempts.is_empty() {
            self.failure.take()
        } else {
            None
        }
    }

    pub(crate) fn attempts(&self) -> &[Handle] {
        &self.attempts
    }

    /// When the next address is to be tried.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let waits = !self.addresses.is_empty() && !self.is_early;
        waits.then_some(self.next_at)
    }
}
