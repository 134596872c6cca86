//! To which of a host's addresses a connection is made (RFC 8305 §5).
//!
//! One address after the other is tried, the next while the last may still answer. The first whose handshake is complete
//! wins. Owns no connection: attempts are handles.

use core::{net::SocketAddr, time::Duration};
use std::collections::VecDeque;

use lastbyte_quic::{Time, endpoint::Handle};

use crate::{Failure, scout::Scout};

/// After how long without a handshake it is asked whether anybody listens at an address.
const SILENCE: Duration = Duration::from_millis(200);

/// A connection that is being made.
#[derive(Debug)]
struct Attempt {
    handle: Handle,
    begin: Time,
    remote: SocketAddr,
    scout: Option<Scout>,
}

/// The attempts to connect to one host.
#[derive(Debug)]
pub(crate) struct Race {
    pub(crate) begin: Time,
    addresses: VecDeque<SocketAddr>,
    next_at: Time,
    attempts: Vec<Attempt>,
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
    pub(crate) fn on_begun(
        &mut self,
        now: Time,
        handle: Handle,
        remote: SocketAddr,
        is_early: bool,
    ) {
        self.attempts.push(Attempt {
            handle,
            begin: now,
            remote,
            scout: None,
        });
        self.is_early = is_early;
    }

    /// When the next address may be tried.
    pub(crate) const fn wait_until(&mut self, at: Time) {
        self.next_at = at;
    }

    /// An attempt at whose address nobody listens.
    pub(crate) fn find_refused(&mut self, now: Time) -> Option<(Handle, Failure)> {
        self.attempts.iter_mut().find_map(|attempt| {
            let error = match &attempt.scout {
                Some(scout) => scout.answer()?,
                None if attempt.begin + SILENCE > now => return None,
                None => match Scout::send(attempt.remote) {
                    Ok(scout) => {
                        attempt.scout = Some(scout);
                        return None;
                    }
                    Err(error) => error,
                },
            };
            let remote = attempt.remote;
            let what = format!("nobody speaks QUIC at {remote}: {error}");
            Some((attempt.handle, Failure::Connect(what)))
        })
    }

    /// An attempt came to nothing, or could not even begin. The first reason that is not for lack of an answer is kept.
    pub(crate) fn on_failed(&mut self, attempt: Option<Handle>, failure: Failure) {
        self.attempts.retain(|other| Some(other.handle) != attempt);
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

    pub(crate) fn attempts(&self) -> impl Iterator<Item = Handle> + '_ {
        self.attempts.iter().map(|attempt| attempt.handle)
    }

    /// When the next address is to be tried.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let waits = !self.addresses.is_empty() && !self.is_early;
        waits.then_some(self.next_at)
    }
}
