//! Names to addresses: A, AAAA and HTTPS records (RFC 9460) at the same time, each in a thread of its own that is left behind
//! if it takes too long.
//!
//! Owns the questions, and what is known so far (RFC 8305 §3). Never: waits. Addresses are the system's to know, with its
//! `hosts` and private networks, unless a DNS server was named; HTTPS records it does not give, so DNS is asked for them.

use core::{net::SocketAddr, time::Duration};
use std::{collections::BTreeMap, net::IpAddr, thread};

use lastbyte_driver::Clock;
use lastbyte_quic::Time;

use crate::{
    dns::{self, Service},
    failure::Failure,
    family::Family,
    mailbox::Sender,
    url::Origin,
};

/// How long the other family is waited for when one has answered (RFC 8305 §3), and then the HTTPS record.
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);
/// How many targets of an HTTPS record are resolved.
const TARGETS_MAX: usize = 4;

/// A host's addresses, as said beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Whose: a name in lower case, or an IP address; `*` for all.
    pub host: String,
    /// On which port.
    pub port: u16,
    /// Where it is.
    pub addresses: Vec<IpAddr>,
}

impl Override {
    fn matches(&self, origin: &Origin) -> bool {
        (self.host == origin.host || self.host == "*") && self.port == origin.port
    }
}

/// Where to connect in place of a host; it is called by its own name there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    /// In place of whom: a name in lower case, or an IP address; `None` for all.
    pub host: Option<String>,
    /// On which port; `None` for all.
    pub port: Option<u16>,
    /// Where; `None` for where it is.
    pub to_host: Option<String>,
    /// On which port there; `None` for the same.
    pub to_port: Option<u16>,
}

/// Where to connect for an origin.
pub(crate) fn connect_target(origin: &Origin, connect_to: &[ConnectTo]) -> Origin {
    let mut place = origin.clone();
    let is_of = |it: &&ConnectTo| {
        it.host.as_ref().is_none_or(|host| *host == origin.host)
            && it.port.is_none_or(|port| port == origin.port)
    };
    if let Some(rule) = connect_to.iter().find(is_of) {
        if let Some(host) = &rule.to_host {
            place.host.clone_from(host);
        }
        place.port = rule.to_port.unwrap_or(place.port);
    }
    place
}

/// What a resolver said of one kind of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When.
    pub at: Time,
    /// What was found, or why nothing was.
    pub found: Result<Vec<IpAddr>, String>,
}

/// What a DNS server said of an HTTPS record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// When.
    pub at: Time,
    /// What was found, or why nothing was.
    pub found: Result<Vec<Service>, String>,
}

/// How a name was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Of whom.
    pub origin: Origin,
    /// When it was begun.
    pub start: Time,
    /// When enough was known to go on; `None` if that was never so.
    pub end: Option<Time>,
    /// IPv4 addresses; `None` if they were not asked for, or there was no answer.
    pub a: Option<Answer>,
    /// IPv6 addresses.
    pub aaaa: Option<Answer>,
    /// The HTTPS record; `None` if it was not asked for, or there was no answer.
    pub https: Option<Services>,
    /// Where the host is, in the order in which it is tried.
    pub addresses: Vec<SocketAddr>,
    /// Where else it is served, by the targets of its HTTPS record, as far as they are resolved.
    pub targets: BTreeMap<String, Vec<IpAddr>>,
}

/// What is known of a host's addresses.
#[derive(Debug)]
pub(crate) struct Resolution {
    pub(crate) lookup: Lookup,
    family: Family,
    /// How many answers are to come for addresses of the host.
    pending: u32,
    /// When enough addresses of the host were known.
    settled: Option<Time>,
    https: Https,
    timeout: Duration,
}

/// How far the question for the HTTPS record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Https {
    /// It is not asked for, or all that it leads to is known.
    Done(Option<Time>),
    /// It is.
    Pending,
    /// Answers are to come for addresses of its targets, so many.
    Targets(u32),
}

/// What a resolution has come to.
pub(crate) enum State {
    /// It is to be waited for, until then at most.
    Pending(Time),
    Found,
    Failed(Failure),
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    Addresses(Family),
    Services,
}

impl Resolution {
    /// Begins. What is known already is known at once. The HTTPS record is asked for if `query_https`.
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
        let known = match (fixed, origin.host.parse::<IpAddr>()) {
            (Some(fixed), _) => Some(fixed.addresses.clone()),
            (None, Ok(address)) => Some(vec![address]),
            (None, Err(_)) => None,
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

    /// A resolver has answered for a name.
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
                // What comes late goes behind what is being tried.
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

    /// The HTTPS record is known; `None` if DNS was not asked in the end. Returns whose addresses are to be asked for: what
    /// comes too late to be heeded is kept, and leads nowhere.
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

    /// Which addresses a service may be at: those of its host, or until they are known those that its record hints at (RFC
    /// 9460 §7.3).
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

    /// Where the origin is served, as far as there is a record of it that leads anywhere; the first to be tried first.
    pub(crate) fn endpoints(&self) -> Vec<(&Service, Vec<SocketAddr>)> {
        let end = self.lookup.end;
        let https = self.lookup.https.as_ref();
        // What came late was gone on without.
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
        let why = why.unwrap_or_else(|| {
            let which = match self.family {
                Family::Any => "address",
                Family::Ipv4 => "IPv4 address",
                Family::Ipv6 => "IPv6 address",
            };
            format!("it has no {which}")
        });
        Failure::Resolve(format!("could not resolve host `{host}`: {why}"))
    }
}

/// Asks the system's resolver, in a thread of its own.
#[expect(
    clippy::disallowed_methods,
    reason = "the resolver blocks, and a thread that waits for it may be left behind"
)]
pub(crate) fn query_system(
    host: String,
    family: Family,
    clock: Clock,
    answers: Sender<dns::Event>,
) {
    thread::spawn(move || {
        let hints = dns_lookup::AddrInfoHints {
            address: match family {
                Family::Ipv6 => dns_lookup::AddrFamily::Inet6.into(),
                _ => dns_lookup::AddrFamily::Inet.into(),
            },
            socktype: dns_lookup::SockType::Stream.into(),
            ..dns_lookup::AddrInfoHints::default()
        };
        let found = match dns_lookup::getaddrinfo(Some(&host), None, Some(hints)) {
            Ok(found) => Ok(found
                .filter_map(Result::ok)
                .map(|info| info.sockaddr.ip())
                .collect()),
            Err(error) => Err(std::io::Error::from(error).to_string()),
        };
        let at = clock.now();
        answers.post(dns::Event::Addresses {
            host,
            family,
            at,
            found,
        });
    });
}

/// Each address once, IPv6 and IPv4 by turns, beginning with what came first (RFC 8305 §4).
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
