//! By which way, and to which of a host's addresses, a connection is made (RFC 8305 §5).
//!
//! Over QUIC, one address after the other is tried, the next while the last may still answer. TCP, where it may be used too,
//! begins a little later, or when nothing is left to be tried over QUIC. The first whose handshake is complete wins. Owns no
//! connection: attempts are handles and numbers.

use core::{net::SocketAddr, time::Duration};
use std::collections::VecDeque;

use lastbyte_quic::{Time, endpoint::Handle};

use crate::{failure::Failure, reachability::ReachabilityProbe};

/// After how long without a handshake it is asked whether anybody listens at an address.
const PROBE_DELAY: Duration = Duration::from_millis(200);

/// A connection that is being made.
#[derive(Debug)]
struct Attempt {
    handle: Handle,
    start: Time,
    remote: SocketAddr,
    probe: Option<ReachabilityProbe>,
}

/// The other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcpState {
    /// It is not to be used, or has failed.
    Unavailable,
    /// It begins then.
    Scheduled(Time),
    /// It is under way, by this number.
    Started(usize),
}

/// The attempts to connect to one host.
#[derive(Debug)]
pub(crate) struct HappyEyeballs {
    pub(crate) start: Time,
    addresses: VecDeque<SocketAddr>,
    next_at: Time,
    attempts: Vec<Attempt>,
    tcp: TcpState,
    /// Requests are under way in 0-RTT: they are not sent by two ways at once.
    is_early: bool,
    failure: Option<Failure>,
}

impl HappyEyeballs {
    /// To these addresses over QUIC, and from `tcp_at` on over TCP.
    pub(crate) fn new(
        now: Time,
        addresses: impl Iterator<Item = SocketAddr>,
        tcp_at: Option<Time>,
    ) -> Self {
        Self {
            start: now,
            addresses: addresses.collect(),
            next_at: now,
            attempts: Vec::new(),
            tcp: tcp_at.map_or(TcpState::Unavailable, TcpState::Scheduled),
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

    /// Whether it is time to try TCP.
    pub(crate) fn is_tcp_due(&self, now: Time) -> bool {
        let is_alone = self.attempts.is_empty() && self.addresses.is_empty();
        matches!(self.tcp, TcpState::Scheduled(at) if at <= now || is_alone)
    }

    /// TCP is under way.
    pub(crate) const fn on_tcp_started(&mut self, connection: usize) {
        self.tcp = TcpState::Started(connection);
    }

    /// The number of the connection over TCP.
    pub(crate) const fn tcp(&self) -> Option<usize> {
        match self.tcp {
            TcpState::Started(connection) => Some(connection),
            _ => None,
        }
    }

    /// TCP came to nothing.
    pub(crate) fn on_tcp_failed(&mut self, failure: Failure) {
        self.tcp = TcpState::Unavailable;
        self.keep_failure(failure);
    }

    /// An attempt has begun.
    pub(crate) fn on_started(
        &mut self,
        now: Time,
        handle: Handle,
        remote: SocketAddr,
        is_early: bool,
    ) {
        self.attempts.push(Attempt {
            handle,
            start: now,
            remote,
            probe: None,
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
            let error = match &attempt.probe {
                Some(probe) => probe.answer()?,
                None if attempt.start + PROBE_DELAY > now => return None,
                None => match ReachabilityProbe::send(attempt.remote) {
                    Ok(probe) => {
                        attempt.probe = Some(probe);
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

    /// An attempt came to nothing, or could not even begin.
    pub(crate) fn on_failed(&mut self, attempt: Option<Handle>, failure: Failure) {
        self.attempts.retain(|other| Some(other.handle) != attempt);
        if self.attempts.is_empty() {
            self.is_early = false;
        }
        self.keep_failure(failure);
    }

    /// The first of those that say most is kept: that nobody answered says less than that nobody is there, and that less than
    /// what somebody said who is.
    fn keep_failure(&mut self, failure: Failure) {
        if self
            .failure
            .as_ref()
            .is_none_or(|kept| specificity(kept) < specificity(&failure))
        {
            self.failure = Some(failure);
        }
    }

    /// Why nothing came of it, once that is so.
    pub(crate) fn take_final_failure(&mut self) -> Option<Failure> {
        if self.addresses.is_empty()
            && self.attempts.is_empty()
            && self.tcp == TcpState::Unavailable
        {
            self.failure.take()
        } else {
            None
        }
    }

    /// The reason that is known so far, once time is up.
    pub(crate) fn take_failure(&mut self) -> Option<Failure> {
        self.failure
            .take()
            .filter(|failure| specificity(failure) > 0)
    }

    pub(crate) fn attempts(&self) -> impl Iterator<Item = Handle> + '_ {
        self.attempts.iter().map(|attempt| attempt.handle)
    }

    /// When the next way is to be tried.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let waits = !self.addresses.is_empty() && !self.is_early;
        let tcp = match self.tcp {
            TcpState::Scheduled(at) => Some(at),
            _ => None,
        };
        waits.then_some(self.next_at).into_iter().chain(tcp).min()
    }
}

/// How much a failure says.
const fn specificity(failure: &Failure) -> u8 {
    match failure {
        Failure::ConnectTimeout(_) => 0,
        Failure::Connect(_) => 1,
        _ => 2,
    }
}
