//! Name resolution and connection attempts for each origin.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lastbyte_driver::Clock;
use lastbyte_quic::{
    Time,
    connection::Connection,
    endpoint::{Endpoint, Handle},
};

use super::Client;
use crate::{
    candidates::{Candidates, OriginInfo},
    connection_reuse::{IdleConnection, best_idle},
    dns::{self, DnsClient, Service},
    failure::Failure,
    family::Family,
    happy_eyeballs::HappyEyeballs,
    link::Link,
    resolve::{self, Lookup, Query, Resolution, State},
    settings::Versions,
    url::{Origin, Scheme},
};

/// The servers of all origins.
#[derive(Default)]
pub(super) struct Servers {
    pub(super) all: Vec<Server>,
    numbers: BTreeMap<Origin, usize>,
}

/// The state of one origin.
pub(super) struct Server {
    pub(super) origin: Origin,
    pub(super) resolution: Option<Resolution>,
    /// The QUIC connection for new requests.
    pub(super) link: Option<Handle>,
    pub(super) happy_eyeballs: Option<HappyEyeballs>,
    /// Fetches that wait for a connection.
    pub(super) waiting: VecDeque<usize>,
    /// Open TCP connections that accept requests.
    pub(super) tcp_open: BTreeSet<usize>,
    /// Additional TCP connections that are being established.
    pub(super) tcp_connecting: BTreeSet<usize>,
    /// The number of TCP connections that the server accepts, once a further one has failed.
    pub(super) tcp_max: Option<usize>,
    /// Whether it has rejected a shared connection with status 421 (RFC 9110 §15.5.20).
    pub(super) is_misdirected: bool,
    /// Whether the times of the lookup have been added to a fetch.
    pub(super) is_lookup_charged: bool,
    /// Whether the lookup has been reported to the listener.
    is_lookup_reported: bool,
}

/// Resolves names.
struct Resolver {
    dns: DnsClient,
}

impl Resolver {
    /// Queries addresses from the configured DNS servers, or else from the system.
    fn query(&self, host: &str, family: Family) {
        let dns = &self.dns;
        if dns.servers.is_empty() {
            resolve::query_system(host.to_owned(), family, dns.clock, dns.answers.clone());
        } else {
            dns.query_addresses(host, family);
        }
    }
}

impl Servers {
    /// The index of an origin, which is added if it is new.
    pub(super) fn number(&mut self, origin: &Origin) -> usize {
        if let Some(number) = self.numbers.get(origin) {
            return *number;
        }
        let number = self.all.len();
        self.numbers.insert(origin.clone(), number);
        self.all.push(Server {
            origin: origin.clone(),
            resolution: None,
            link: None,
            happy_eyeballs: None,
            waiting: VecDeque::new(),
            tcp_open: BTreeSet::new(),
            tcp_connecting: BTreeSet::new(),
            tcp_max: None,
            is_misdirected: false,
            is_lookup_charged: false,
            is_lookup_reported: false,
        });
        number
    }

    pub(super) fn take_lookups(&mut self) -> Vec<Lookup> {
        let all = core::mem::take(&mut self.all).into_iter();
        all.filter_map(|server| Some(server.resolution?.lookup))
            .collect()
    }
}

impl Client<'_> {
    /// Moves the waiting fetches of a server to its connection, or establishes one. Returns when to call again.
    pub(super) fn serve(
        &mut self,
        now: Time,
        number: usize,
        endpoint: &mut Endpoint,
    ) -> Option<Time> {
        let server = &mut self.servers.all[number];
        if server.waiting.is_empty() && server.happy_eyeballs.is_none() {
            return None;
        }
        if let Some(handle) = server.link
            && let Some(link) = self.links.get_mut(&handle)
        {
            link.queue.extend(server.waiting.drain(..));
            if let Some(quic) = endpoint.connection(handle) {
                self.send_queued(now, handle, quic);
            }
            return None;
        }
        if !server.tcp_open.is_empty() || !server.tcp_connecting.is_empty() {
            self.send_waiting_over_tcp(now, number);
            return None;
        }
        if server.happy_eyeballs.is_none() {
            if let Some(until) = self.resolve(now, number) {
                return Some(until);
            }
            if self.servers.all[number].waiting.is_empty() {
                return None;
            }
            if let Some(handle) = self.find_shared(number, endpoint) {
                self.share(now, number, handle, endpoint);
                return None;
            }
            if self.settings.versions == Versions::Http11 {
                // Each request needs a connection of its own, and there is no other version to try.
                self.send_waiting_over_tcp(now, number);
                return None;
            }
            self.start_attempts(now, number);
        }
        self.run_happy_eyeballs(now, number, endpoint);
        let attempts = self.servers.all[number].happy_eyeballs.as_ref()?;
        let timeout = attempts.start + self.settings.connect_timeout;
        attempts.deadline().into_iter().chain([timeout]).min()
    }

    /// The best connection to another origin that can be shared with this one.
    fn find_shared(&self, number: usize, endpoint: &Endpoint) -> Option<Handle> {
        let server = &self.servers.all[number];
        let is_wanted = self.settings.coalesces
            && self.settings.versions.has_quic()
            && server.origin.scheme == Scheme::Https
            && !server.is_misdirected;
        if !is_wanted {
            return None;
        }
        let addresses = &server.resolution.as_ref()?.lookup.addresses;
        let host = &server.origin.host;
        let matching = self.links.iter();
        let matching = matching.filter(|(_, link)| link.can_serve(host, addresses));
        let is_upload = server.waiting.front().is_some_and(|fetch| {
            let upload = self.fetches.all[*fetch].current.upload.as_ref();
            upload.is_some_and(|upload| !upload.is_empty())
        });
        let connection = |link: &Link, quic: &Connection| IdleConnection {
            window_left: quic.recovery().window_left(),
            received: quic.statistics().bytes_received,
            rtt: Some(quic.recovery().rtt().smoothed()),
            last_used: link.last_used,
        };
        let matching = matching.filter_map(|(handle, link)| {
            let quic = endpoint.peek(*handle)?;
            Some((*handle, connection(link, quic)))
        });
        best_idle(matching, is_upload)
    }

    /// Returns fetches to the queues of their servers.
    pub(super) fn requeue(&mut self, fetches: impl IntoIterator<Item = usize>) {
        for fetch in fetches {
            if let Some(server) = self.fetches.all[fetch].server {
                self.servers.all[server].waiting.push_back(fetch);
            }
        }
    }

    /// Sends the waiting requests over the connection of another origin.
    fn share(&mut self, now: Time, number: usize, handle: Handle, endpoint: &mut Endpoint) {
        let waiting = core::mem::take(&mut self.servers.all[number].waiting);
        if let Some(link) = self.links.get_mut(&handle) {
            link.queue.extend(waiting);
        }
        if let Some(quic) = endpoint.connection(handle) {
            self.send_queued(now, handle, quic);
        }
    }

    /// Resolves the name of a server. Returns until when to wait for answers, if the lookup is not complete.
    fn resolve(&mut self, now: Time, number: usize) -> Option<Time> {
        let settings = self.settings;
        let resolver = self.resolver(number);
        let server = &mut self.servers.all[number];
        let target = resolve::connect_target(&server.origin, &settings.connect_to);
        let query_https = settings.https_records
            && settings.versions == Versions::Any
            && target == server.origin
            && target.scheme == Scheme::Https
            && dns::may_have_https_record(&target, !settings.dns_servers.is_empty());
        let resolution = server.resolution.get_or_insert_with(|| {
            Resolution::start(
                now,
                &target,
                settings.family,
                &settings.overrides,
                settings.connect_timeout,
                query_https,
                |question| match question {
                    Query::Addresses(family) => resolver.query(&target.host, family),
                    Query::Services => resolver.dns.query_services(&target),
                },
            )
        });
        match resolution.state(now) {
            State::Pending(until) => Some(until),
            State::Found => {
                if !server.is_lookup_reported {
                    server.is_lookup_reported = true;
                    self.fetches.listener.on_resolved(&resolution.lookup);
                }
                None
            }
            State::Failed(failure) => {
                for fetch in core::mem::take(&mut server.waiting) {
                    self.end(now, fetch, Some(failure.duplicate()));
                }
                None
            }
        }
    }

    fn resolver(&self, number: usize) -> Resolver {
        Resolver {
            dns: DnsClient {
                servers: self.settings.dns_servers.clone(),
                timeout: self.settings.connect_timeout,
                clock: self.clock,
                answers: self.mailbox.sender(move |event| super::Event::Resolve {
                    server: number,
                    event,
                }),
            },
        }
    }

    /// Handles the answer for the HTTPS record of a server, and resolves the targets of the record.
    pub(super) fn on_services(
        &mut self,
        at: Time,
        number: usize,
        found: Option<Result<Vec<Service>, String>>,
    ) {
        let resolver = self.resolver(number);
        let Some(server) = self.servers.all.get_mut(number) else {
            return;
        };
        let Some(resolution) = &mut server.resolution else {
            return;
        };
        for name in resolution.on_services(at, found) {
            for family in self.settings.family.parts() {
                resolver.query(&name, *family);
            }
        }
    }

    /// The addresses to try for a server.
    pub(super) fn candidates(&self, number: usize) -> Candidates {
        let server = &self.servers.all[number];
        let Some(found) = &server.resolution else {
            return Candidates::default();
        };
        let origin = &server.origin;
        Candidates::new(&OriginInfo {
            addresses: &found.lookup.addresses,
            endpoints: &found.endpoints(),
            alternative: self.memory.alternative_port(origin, Clock::since_epoch()),
            last_remote: self.memory.remote(origin),
        })
    }

    fn start_attempts(&mut self, now: Time, number: usize) {
        let mut candidates = self.candidates(number);
        let server = &mut self.servers.all[number];
        let origin = &server.origin;
        let versions = self.settings.versions;
        let has_quic = versions.has_quic() && self.settings.tls13 && origin.scheme == Scheme::Https;
        if !has_quic {
            candidates.quic.clear();
        }
        let tcp_at = versions.has_tcp().then(|| {
            if has_quic {
                now + self.settings.head_start
            } else {
                now
            }
        });
        server.happy_eyeballs = Some(HappyEyeballs::new(now, candidates.quic.into_iter(), tcp_at));
    }

    fn run_happy_eyeballs(&mut self, now: Time, number: usize, endpoint: &mut Endpoint) {
        let timeout = self.settings.connect_timeout;
        loop {
            let Some(attempts) = &mut self.servers.all[number].happy_eyeballs else {
                return;
            };
            if attempts.start + timeout <= now {
                let why = attempts.take_failure_at_timeout();
                let why = why.unwrap_or(Failure::ConnectTimeout(timeout));
                self.abandon_attempts(now, number, None, endpoint);
                self.fail_waiting(now, number, &why);
                return;
            }
            if let Some((handle, failure)) = attempts.find_refused(now) {
                if let Some(link) = self.links.get(&handle) {
                    let listener = &mut self.fetches.listener;
                    listener.on_disconnected(link.number, &failure.to_string());
                }
                attempts.on_failed(Some(handle), failure);
                self.drop_link(now, handle, endpoint);
                continue;
            }
            if attempts.is_tcp_due(now) {
                self.start_tcp_attempt(now, number);
                continue;
            }
            if let Some(failure) = attempts.take_final_failure() {
                self.fail_waiting(now, number, &failure);
                return;
            }
            let Some(remote) = attempts.next(now) else {
                return;
            };
            self.attempt(now, number, remote, endpoint);
        }
    }

    fn fail_waiting(&mut self, now: Time, number: usize, failure: &Failure) {
        let server = &mut self.servers.all[number];
        server.happy_eyeballs = None;
        for fetch in core::mem::take(&mut server.waiting) {
            self.end(now, fetch, Some(failure.duplicate()));
        }
    }

    /// Closes all attempts except the winner.
    fn abandon_attempts(
        &mut self,
        now: Time,
        number: usize,
        winner: Option<Handle>,
        endpoint: &mut Endpoint,
    ) {
        let Some(attempts) = self.servers.all[number].happy_eyeballs.take() else {
            return;
        };
        for handle in attempts.attempts().filter(|other| Some(*other) != winner) {
            self.drop_link(now, handle, endpoint);
        }
        if let Some(connection) = attempts.tcp() {
            self.tcp.drop(connection);
        }
    }

    /// Handles the completed handshake of a TCP connection.
    pub(super) fn on_tcp_won(&mut self, now: Time, number: usize, connection: usize) {
        let server = &mut self.servers.all[number];
        if let Some(attempts) = server.happy_eyeballs.take() {
            // Requests sent in 0-RTT return to the queue when these connections are closed.
            self.to_close.extend(attempts.attempts());
        }
        server.tcp_open.insert(connection);
        self.send_waiting_over_tcp(now, number);
    }

    /// Handles the completed handshake of a QUIC connection: closes the other attempts.
    pub(super) fn on_quic_won(&mut self, number: usize, handle: Handle) {
        let server = &mut self.servers.all[number];
        server.link = Some(handle);
        let Some(attempts) = server.happy_eyeballs.take() else {
            return;
        };
        let others = attempts.attempts().filter(|other| *other != handle);
        self.to_close.extend(others);
        if let Some(connection) = attempts.tcp() {
            self.tcp.drop(connection);
        }
    }
}
