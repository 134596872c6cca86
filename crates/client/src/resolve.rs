//! Name resolution: A, AAAA and HTTPS records (RFC 9460) of a host, queried in parallel (RFC 8305 §3).
//!
//! Each query runs in a separate thread, which is abandoned if it takes too long. IP addresses and `localhost` need no query. Addresses come from
//! the system's resolver, which knows `/etc/hosts` and private networks, unless DNS servers are configured. HTTPS
//! records are always queried from DNS, because system resolvers do not return them.

use core::{net::SocketAddr, time::Duration};
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    thread,
};

use lastbyte_driver::Clock;
use lastbyte_quic::Time;

use crate::{
    dns::{self, Service},
    failure::Failure,
    family::Family,
    mailbox::Sender,
    url::Origin,
};

/// How long to wait for the second address family after the first, and then for the HTTPS record (RFC 8305 §3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// The most targets of an HTTPS record that are resolved.
const TARGETS_MAX: usize = 4;

/// Fixed addresses of a host, which are used instead of the resolver; like curl's `--resolve`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The host: a name in lower case, or an IP address; `*` for all hosts.
    pub host: String,
    /// The port in the URL.
    pub port: u16,
    /// The addresses of the host.
    pub addresses: Vec<IpAddr>,
}

impl Override {
    fn matches(&self, origin: &Origin) -> bool {
        (self.host == origin.host || self.host == "*") && self.port == origin.port
    }
}

/// A host and port to connect to instead of those in the URL; like curl's `--connect-to`. The request and TLS still use the
/// name in the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    /// The host in the URL: a name in lower case, or an IP address; `None` for all hosts.
    pub host: Option<String>,
    /// The port in the URL; `None` for all ports.
    pub port: Option<u16>,
    /// The host to connect to; `None` for the one in the URL.
    pub to_host: Option<String>,
    /// The port to connect to; `None` for the one in the URL.
    pub to_port: Option<u16>,
}

/// The host and port to connect to for an origin: those of the first rule that matches, or its own.
pub fn connect_target(origin: &Origin, connect_to: &[ConnectTo]) -> Origin {
    let mut target = origin.clone();
    let matches = |it: &&ConnectTo| {
        it.host.as_ref().is_none_or(|host| *host == origin.host)
            && it.port.is_none_or(|port| port == origin.port)
    };
    if let Some(rule) = connect_to.iter().find(matches) {
        if let Some(host) = &rule.to_host {
            target.host.clone_from(host);
        }
        target.port = rule.to_port.unwrap_or(target.port);
    }
    target
}

/// The answer for the addresses of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When it was received.
    pub at: Time,
    /// The result, or the error of the resolver.
    pub found: Result<Vec<IpAddr>, String>,
}

/// The answer for an HTTPS record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// When it was received.
    pub at: Time,
    /// The result, or the error of the resolver.
    pub found: Result<Vec<Service>, String>,
}

/// The resolution of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The origin.
    pub origin: Origin,
    /// When it started.
    pub start: Time,
    /// When it was complete enough to connect; `None` if it never was.
    pub end: Option<Time>,
    /// IPv4 addresses; `None` if they were not queried, or there was no answer.
    pub a: Option<Answer>,
    /// IPv6 addresses.
    pub aaaa: Option<Answer>,
    /// The HTTPS record; `None` if it was not queried, or there was no answer.
    pub https: Option<Services>,
    /// The addresses of the host, in the order in which they are tried.
    pub addresses: Vec<SocketAddr>,
    /// The addresses of the targets of its HTTPS record, as far as they are resolved.
    pub targets: BTreeMap<String, Vec<IpAddr>>,
}

/// The state of a name resolution.
#[derive(Debug)]
pub(crate) struct Resolution {
    pub(crate) lookup: Lookup,
    family: Family,
    /// The number of outstanding queries for addresses of the host.
    pending: u32,
    /// When the addresses of the host were complete, or waiting for more ended.
    settled: Option<Time>,
    https: Https,
    timeout: Duration,
}

/// The state of the query for the HTTPS record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Https {
    /// The record is not queried, or it and its targets are resolved, since this time.
    Done(Option<Time>),
    /// The query is outstanding.
    Pending,
    /// This number of queries for addresses of its targets is outstanding.
    Targets(u32),
}

/// The state of a resolution.
pub(crate) enum State {
    /// Answers are outstanding. Check again at this time at the latest.
    Pending(Time),
    Found,
    Failed(Failure),
}

/// A query for the resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Addresses(Family),
    Services,
}

impl Resolution {
    /// Starts a resolution. Fixed addresses and literals complete at once. The HTTPS record is queried if `query_https`.
    pub(crate) fn start(
        now: Time,
        origin: &Origin,
        family: Family,
        overrides: &[Override],
        timeout: Duration,
        query_https: bool,
        mut query: impl FnMut(Query),
    ) -> Self {
        let mut this = Self {
            lookup: Lookup {
                origin: origin.clone(),
                start: now,
                end: None,
                a: None,
                aaaa: None,
                https: None,
                addresses: Vec::new(),
                targets: BTreeMap::new(),
            },
            family,
            pending: 0,
            settled: None,
            https: Https::Done(None),
            timeout,
        };
        let fixed = overrides.iter().find(|it| it.matches(origin));
        let known = match fixed {
            Some(fixed) => Some(fixed.addresses.clone()),
            None => known_addresses(&origin.host),
        };
        if let Some(known) = known {
            this.settled = Some(now);
            this.lookup.end = Some(now);
            this.add(&known);
            return this;
        }
        for family in this.family.parts() {
            this.pending += 1;
            query(Query::Addresses(*family));
        }
        if query_https {
            this.https = Https::Pending;
            query(Query::Services);
        }
        this
    }

    fn add(&mut self, found: &[IpAddr]) {
        let port = self.lookup.origin.port;
        let found = found.iter().filter(|address| self.family.has(address));
        let found = found.map(|address| SocketAddr::new(*address, port));
        let all = self.lookup.addresses.iter().copied().chain(found);
        self.lookup.addresses = interleave(all);
    }

    /// Handles an answer for addresses of the host or of a target.
    pub(crate) fn on_answer(
        &mut self,
        at: Time,
        host: &str,
        family: Family,
        found: Result<Vec<IpAddr>, String>,
    ) {
        if host != self.lookup.origin.host {
            self.on_target(at, host, found.unwrap_or_default());
            return;
        }
        self.pending = self.pending.saturating_sub(1);
        if let Ok(found) = &found {
            if self.lookup.end.is_some() {
                // Late addresses are appended to those being tried.
                let port = self.lookup.origin.port;
                let late = found.iter().map(|ip| SocketAddr::new(*ip, port));
                for address in late {
                    if !self.lookup.addresses.contains(&address) {
                        self.lookup.addresses.push(address);
                    }
                }
            } else {
                self.add(found);
            }
        }
        let answer = Some(Answer { at, found });
        match family {
            Family::Ipv6 => self.lookup.aaaa = answer,
            _ => self.lookup.a = answer,
        }
        if self.pending == 0 {
            self.settled.get_or_insert(at);
        }
    }

    /// Handles the answer for the HTTPS record; `None` if DNS was not queried after all. Returns the targets whose
    /// addresses are to be queried. A late answer is kept for the report, but its targets are not queried.
    pub(crate) fn on_services(
        &mut self,
        at: Time,
        found: Option<Result<Vec<Service>, String>>,
    ) -> Vec<String> {
        self.https = Https::Done(Some(at));
        let Some(found) = found else {
            return Vec::new();
        };
        let mut names: Vec<String> = Vec::new();
        if self.lookup.end.is_none() {
            let services = found.iter().flatten();
            for target in services.filter_map(|service| service.target.as_ref()) {
                if names.len() < TARGETS_MAX && !names.contains(target) {
                    names.push(target.clone());
                }
            }
        }
        self.lookup.https = Some(Services { at, found });
        if !names.is_empty() {
            let pending = names.len() * self.family.parts().len();
            self.https = Https::Targets(pending as u32);
        }
        names
    }

    fn on_target(&mut self, at: Time, host: &str, found: Vec<IpAddr>) {
        if let Https::Targets(pending) = &mut self.https {
            *pending = pending.saturating_sub(1);
            if *pending == 0 {
                self.https = Https::Done(Some(at));
            }
        }
        if self.lookup.end.is_none() {
            let family = self.family;
            let known = self.lookup.targets.entry(host.to_owned()).or_default();
            known.extend(found.into_iter().filter(|address| family.has(address)));
        }
    }

    /// The addresses of a service: those of its host, or, until they are known, the hints of its record (RFC 9460 §7.3).
    fn addresses_of(&self, service: &Service) -> Vec<IpAddr> {
        let known: Vec<IpAddr> = match &service.target {
            None => self.lookup.addresses.iter().map(SocketAddr::ip).collect(),
            Some(target) => self.lookup.targets.get(target).cloned().unwrap_or_default(),
        };
        if known.is_empty() {
            let hints = service.hints.iter().copied();
            return hints.filter(|address| self.family.has(address)).collect();
        }
        known
    }

    /// The services of the HTTPS record with their addresses, in the order of priority. Services without addresses are
    /// omitted.
    pub(crate) fn endpoints(&self) -> Vec<(&Service, Vec<SocketAddr>)> {
        let end = self.lookup.end;
        let https = self.lookup.https.as_ref();
        // A late answer is not used.
        let https = https.filter(|https| end.is_none_or(|end| https.at <= end));
        let services = https.and_then(|https| https.found.as_ref().ok());
        let services = services.into_iter().flatten();
        let all = services.map(|service| {
            let port = service.port.unwrap_or(self.lookup.origin.port);
            let addresses = self.addresses_of(service);
            let addresses = addresses.into_iter().map(|ip| SocketAddr::new(ip, port));
            (service, interleave(addresses))
        });
        all.filter(|(_, addresses)| !addresses.is_empty()).collect()
    }

    pub(crate) fn state(&mut self, now: Time) -> State {
        let first = [&self.lookup.a, &self.lookup.aaaa]
            .into_iter()
            .flatten()
            .filter(|answer| answer.found.as_ref().is_ok_and(|found| !found.is_empty()))
            .map(|answer| answer.at)
            .min();
        if self.settled.is_none()
            && let Some(first) = first
        {
            if now < first + RESOLUTION_DELAY {
                return State::Pending(first + RESOLUTION_DELAY);
            }
            self.settled = Some(now);
        }
        let Some(settled) = self.settled else {
            let until = self.lookup.start + self.timeout;
            return if now < until {
                State::Pending(until)
            } else {
                State::Failed(Failure::ConnectTimeout(self.timeout))
            };
        };
        if self.lookup.end.is_none() {
            let until = settled + RESOLUTION_DELAY;
            self.lookup.end = match self.https {
                Https::Done(at) => Some(at.map_or(settled, |at| at.max(settled))),
                _ if now < until => return State::Pending(until),
                _ => Some(now),
            };
        }
        if self.lookup.addresses.is_empty() && self.endpoints().is_empty() {
            return State::Failed(self.failure());
        }
        State::Found
    }

    fn failure(&self) -> Failure {
        let host = &self.lookup.origin.host;
        let why = [&self.lookup.a, &self.lookup.aaaa]
            .into_iter()
            .flatten()
            .find_map(|answer| answer.found.as_ref().err().cloned());
        let why = why.unwrap_or_else(|| no_address(self.family));
        Failure::Resolve(format!("could not resolve host `{host}`: {why}"))
    }
}

/// The addresses of a host that is not a name to query: those of an IP address, and of `localhost` and the names below it,
/// which never leave the machine (RFC 6761 §6.3). IPv6 first, as RFC 6724 sorts them.
fn known_addresses(host: &str) -> Option<Vec<IpAddr>> {
    if let Ok(address) = host.parse() {
        return Some(vec![address]);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit('.').next()?;
    last.eq_ignore_ascii_case("localhost")
        .then(|| vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()])
}

/// Resolves a host by the system's resolver, unless its addresses need no query. Blocks, and cannot be interrupted.
///
/// # Errors
///
/// Returns the resolver's error, or that the host has no address of the family.
pub fn resolve_blocking(host: &str, family: Family) -> Result<Vec<IpAddr>, String> {
    if let Some(mut known) = known_addresses(host) {
        known.retain(|address| family.has(address));
        return non_empty(known, family);
    }
    let hints = dns_lookup::AddrInfoHints {
        address: match family {
            Family::Any => 0,
            Family::Ipv4 => dns_lookup::AddrFamily::Inet.into(),
            Family::Ipv6 => dns_lookup::AddrFamily::Inet6.into(),
        },
        socktype: dns_lookup::SockType::Stream.into(),
        ..dns_lookup::AddrInfoHints::default()
    };
    let found = dns_lookup::getaddrinfo(Some(host), None, Some(hints))
        .map_err(|error| std::io::Error::from(error).to_string())?;
    let found = found.filter_map(Result::ok);
    non_empty(found.map(|info| info.sockaddr.ip()).collect(), family)
}

fn non_empty(found: Vec<IpAddr>, family: Family) -> Result<Vec<IpAddr>, String> {
    if found.is_empty() {
        return Err(no_address(family));
    }
    Ok(found)
}

fn no_address(family: Family) -> String {
    let which = match family {
        Family::Any => "address",
        Family::Ipv4 => "IPv4 address",
        Family::Ipv6 => "IPv6 address",
    };
    format!("no {which}")
}

/// Queries the system's resolver, in a separate thread.
#[expect(
    clippy::disallowed_methods,
    reason = "the resolver blocks, and its thread may be abandoned"
)]
pub(crate) fn query_system(
    host: String,
    family: Family,
    clock: Clock,
    answers: Sender<dns::Event>,
) {
    thread::spawn(move || {
        let found = resolve_blocking(&host, family);
        let at = clock.now();
        answers.post(dns::Event::Addresses {
            host,
            family,
            at,
            found,
        });
    });
}

/// Removes duplicates and interleaves the families, starting with the family of the first address (RFC 8305 §4).
fn interleave(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut rest: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !rest.contains(&address) {
            rest.push(address);
        }
    }
    let mut sorted: Vec<SocketAddr> = Vec::new();
    while !rest.is_empty() {
        let last = sorted.last().map(SocketAddr::is_ipv6);
        let next = rest
            .iter()
            .position(|address| last.is_none_or(|is_ipv6| address.is_ipv6() != is_ipv6));
        sorted.push(rest.remove(next.unwrap_or(0)));
    }
    sorted
}

#[cfg(test)]
mod tests;
