//! Happy Eyeballs: parallel connection attempts to the addresses of one host, over QUIC and TCP (RFC 8305 §5).
//!
//! QUIC attempts start one after the other, each after a delay while the earlier ones continue. TCP, if permitted, starts
//! after a head start for QUIC, or when all QUIC attempts have failed. The first attempt that completes its handshake wins.
//! The connections themselves belong to the client; here attempts are represented by handles and numbers.

use core::{net::SocketAddr, time::Duration};
use std::collections::VecDeque;

use lastbyte_quic::{Time, endpoint::Handle};

use crate::{failure::Failure, reachability::ReachabilityProbe};

/// If a handshake takes longer than this, a probe checks whether the port is closed.
const PROBE_DELAY: Duration = Duration::from_millis(200);

/// A QUIC connection attempt.
#[derive(Debug)]
struct Attempt {
    handle: Handle,
    start: Time,
    remote: SocketAddr,
    probe: Option<ReachabilityProbe>,
}

/// The state of the TCP attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TcpState {
    /// TCP is not permitted, or has failed.
    Unavailable,
    /// The attempt starts at this time.
    Scheduled(Time),
    /// The attempt is in progress, on the connection with this number.
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
    /// Requests have been sent in 0-RTT. No further attempt starts, because a request must not be sent twice.
    is_early: bool,
    failure: Option<Failure>,
}

impl HappyEyeballs {
    /// Attempts over QUIC to these addresses, and over TCP from `tcp_at` on.
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

    /// The next address to try over QUIC, if an attempt is due.
    pub(crate) fn next(&mut self, now: Time) -> Option<SocketAddr> {
        let is_due = self.attempts.is_empty() || (self.next_at <= now && !self.is_early);
        if is_due {
            self.addresses.pop_front()
        } else {
            None
        }
    }

    /// Whether the TCP attempt is due.
    pub(crate) fn is_tcp_due(&self, now: Time) -> bool {
        let is_alone = self.attempts.is_empty() && self.addresses.is_empty();
        matches!(self.tcp, TcpState::Scheduled(at) if at <= now || is_alone)
    }

    /// Records that the TCP attempt has started.
    pub(crate) const fn on_tcp_started(&mut self, connection: usize) {
        self.tcp = TcpState::Started(connection);
    }

    /// The number of the TCP connection, if the attempt has started.
    pub(crate) const fn tcp(&self) -> Option<usize> {
        match self.tcp {
            TcpState::Started(connection) => Some(connection),
            _ => None,
        }
    }

    /// Records that the TCP attempt has failed.
    pub(crate) fn on_tcp_failed(&mut self, failure: Failure) {
        self.tcp = TcpState::Unavailable;
        match (&mut self.failure, failure) {
            // Both are equally informative.
            (Some(Failure::Connect(quic)), Failure::Connect(tcp)) => {
                *quic = format!("{quic}; {tcp}");
            }
            (_, failure) => self.keep_failure(failure),
        }
    }

    /// Records that a QUIC attempt has started.
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

    /// Sets the time of the next QUIC attempt.
    pub(crate) const fn wait_until(&mut self, at: Time) {
        self.next_at = at;
    }

    /// Finds an attempt to an address whose port is closed. A port of this machine is probed at once if there is another
    /// address: `localhost` is `::1` first, where many servers do not listen.
    pub(crate) fn find_refused(&mut self, now: Time) -> Option<(Handle, Failure)> {
        let has_next = !self.addresses.is_empty();
        self.attempts.iter_mut().find_map(|attempt| {
            let is_here = attempt.remote.ip().to_canonical().is_loopback();
            let delay = if is_here && has_next {
                Duration::ZERO
            } else {
                PROBE_DELAY
            };
            let error = match &attempt.probe {
                Some(probe) => probe.answer()?,
                None if attempt.start + delay > now => return None,
                None => match ReachabilityProbe::send(attempt.remote) {
                    Ok(probe) => attempt.probe.insert(probe).answer()?,
                    Err(error) => error,
                },
            };
            let remote = attempt.remote;
            let what = format!("no QUIC server at {remote}: {error}");
            Some((attempt.handle, Failure::Connect(what)))
        })
    }

    /// Records that an attempt has failed; `None` for one that could not start.
    pub(crate) fn on_failed(&mut self, attempt: Option<Handle>, failure: Failure) {
        self.attempts.retain(|other| Some(other.handle) != attempt);
        if self.attempts.is_empty() {
            self.is_early = false;
        }
        self.keep_failure(failure);
    }

    /// Keeps the most specific failure, and the first among equals: a response of the server is more specific than a
    /// refused connection, and that is more specific than a timeout.
    fn keep_failure(&mut self, failure: Failure) {
        if self
            .failure
            .as_ref()
            .is_none_or(|kept| specificity(kept) < specificity(&failure))
        {
            self.failure = Some(failure);
        }
    }

    /// The failure to report, once all attempts have failed.
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

    /// The failure to report at the timeout; `None` for the timeout itself. A refused connection is not reported: another attempt
    /// was still pending.
    pub(crate) fn take_failure_at_timeout(&mut self) -> Option<Failure> {
        self.failure
            .take()
            .filter(|failure| specificity(failure) > 1)
    }

    pub(crate) fn attempts(&self) -> impl Iterator<Item = Handle> + '_ {
        self.attempts.iter().map(|attempt| attempt.handle)
    }

    /// When the next attempt is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let waits = !self.addresses.is_empty() && !self.is_early;
        let tcp = match self.tcp {
            TcpState::Scheduled(at) => Some(at),
            _ => None,
        };
        waits.then_some(self.next_at).into_iter().chain(tcp).min()
    }
}

/// How specific a failure is.
const fn specificity(failure: &Failure) -> u8 {
    match failure {
        Failure::ConnectTimeout(_) => 0,
        Failure::Connect(_) => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lastbyte_quic::{
        connection::{Config, NetworkPath},
        crypto::plain::PlainClient,
        endpoint::{Endpoint, EndpointConfig},
    };

    use super::*;

    /// Attempts to port 1, which is closed, and then to `others`: whether the first is refused as it starts.
    fn is_refused_at_once(remote: &str, others: &[&str]) -> bool {
        let remote = remote.parse().expect("an address");
        let path = NetworkPath {
            local: "0.0.0.0:0".parse().expect("an address"),
            remote,
        };
        let mut endpoint = Endpoint::new(EndpointConfig::client(), [7; 32]).expect("an endpoint");
        let config = Arc::new(Config::new("cubic".parse().expect("a spec")));
        let crypto = Arc::new(PlainClient::new(1, vec![b"h3".to_vec()]));
        let handle = endpoint.connect(Time::ZERO, path, "localhost", &config, crypto, Vec::new());
        let others = others
            .iter()
            .map(|other| other.parse().expect("an address"));
        let mut attempts = HappyEyeballs::new(Time::ZERO, others, None);
        attempts.on_started(Time::ZERO, handle.expect("an attempt"), remote, false);
        // The kernel answers while it sends, or soon after.
        (0..100_000).any(|_| attempts.find_refused(Time::ZERO).is_some())
    }

    #[test]
    fn a_closed_port_of_this_machine_is_noticed_at_once_if_there_is_another_address() {
        assert!(is_refused_at_once("127.0.0.1:1", &["127.0.0.2:1"]));
        assert!(!is_refused_at_once("127.0.0.1:1", &[]));
    }

    #[test]
    fn refusals_over_quic_and_tcp_are_both_reported() {
        let refused = |what: &str| Failure::Connect(what.to_owned());
        let mut attempts = HappyEyeballs::new(Time::ZERO, core::iter::empty(), None);
        attempts.on_failed(None, refused("no QUIC server"));
        attempts.on_tcp_failed(refused("TCP refused"));
        let reported = attempts.take_final_failure().map(|it| it.to_string());
        assert_eq!(reported.as_deref(), Some("no QUIC server; TCP refused"));
    }

    #[test]
    fn at_the_timeout_a_refused_connection_is_not_reported_but_a_failed_handshake_is() {
        let failures = [
            (Failure::Connect("refused".to_owned()), false),
            (Failure::QuicHandshake("closed".to_owned()), true),
        ];
        for (failure, is_reported) in failures {
            let mut attempts = HappyEyeballs::new(Time::ZERO, core::iter::empty(), None);
            attempts.on_failed(None, failure);
            assert_eq!(attempts.take_failure_at_timeout().is_some(), is_reported);
        }
    }

    #[test]
    fn the_failure_of_a_handshake_is_reported_rather_than_a_refused_connection() {
        let quic = || Failure::QuicHandshake("closed".to_owned());
        let tcp = || Failure::Connect("refused".to_owned());
        let timeout = || Failure::ConnectTimeout(PROBE_DELAY);
        for (first, second) in [(quic(), tcp()), (tcp(), quic()), (quic(), timeout())] {
            let mut attempts = HappyEyeballs::new(Time::ZERO, core::iter::empty(), None);
            attempts.on_failed(None, first);
            attempts.on_failed(None, second);
            let reported = attempts.take_final_failure();
            assert!(
                matches!(reported, Some(Failure::QuicHandshake(_))),
                "{reported:?}"
            );
        }
    }
}
