//! Names to addresses, by the system's resolver: A and AAAA at the same time, each in a thread of its own that is left
//! behind if it takes too long.
//!
//! Owns the question, and what is known so far (RFC 8305 §3). Never: waits. Of HTTPS records (RFC 9460) nothing is asked:
//! the system's resolver cannot, and another one would not know what it knows, such as `hosts` and private networks.

use core::{net::SocketAddr, time::Duration};
use std::{net::IpAddr, sync::Arc, thread};

use lastbyte_driver::Clock;
use lastbyte_quic::Time;

use crate::{
    Failure, Origin,
    mailbox::{Event, Mailbox},
};

/// How long the other family is waited for when one has answered (RFC 8305 §3).
const PATIENCE: Duration = Duration::from_millis(50);

/// Which kinds of addresses are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv6 and IPv4.
    #[default]
    Any,
    /// IPv4 only.
    Ipv4,
    /// IPv6 only.
    Ipv6,
}

impl Family {
    fn has(self, address: &IpAddr) -> bool {
        match self {
            Self::Any => true,
            Self::Ipv4 => address.is_ipv4(),
            Self::Ipv6 => address.is_ipv6(),
        }
    }
}

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
    fn is_of(&self, origin: &Origin) -> bool {
        (self.host == origin.host || self.host == "*") && self.port == origin.port
    }
}

/// What a resolver said of one kind of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When.
    pub at: Time,
    /// What was found, or why nothing was.
    pub found: Result<Vec<IpAddr>, String>,
}

/// How a name was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Of whom.
    pub origin: Origin,
    /// When it was begun.
    pub begin: Time,
    /// When enough was known to go on; `None` if that was never so.
    pub end: Option<Time>,
    /// IPv4 addresses; `None` if they were not asked for, or there was no answer.
    pub a: Option<Answer>,
    /// IPv6 addresses.
    pub aaaa: Option<Answer>,
    /// What can be connected to, in the order in which it is tried.
    pub addresses: Vec<SocketAddr>,
}

/// What is known of a host's addresses.
#[derive(Debug)]
pub(crate) struct Resolution {
    pub(crate) lookup: Lookup,
    family: Family,
    asks: u32,
    timeout: Duration,
}

/// What a resolution has come to.
pub(crate) enum State {
    /// It is to be waited for, until then at most.
    Waits(Time),
    Found,
    Failed(Failure),
}

impl Resolution {
    /// Begins. What is known already is known at once.
    pub(crate) fn begin(
        now: Time,
        origin: &Origin,
        family: Family,
        overrides: &[Override],
        timeout: Duration,
        ask: impl FnMut(Family),
    ) -> Self {
        let mut this = Self {
            lookup: Lookup {
                origin: origin.clone(),
                begin: now,
                end: None,
                a: None,
                aaaa: None,
                addresses: Vec::new(),
            },
            family,
            asks: 0,
            timeout,
        };
        let said = overrides.iter().find(|said| said.is_of(origin));
        let known = match (said, origin.host.parse::<IpAddr>()) {
            (Some(said), _) => Some(said.addresses.clone()),
            (None, Ok(address)) => Some(vec![address]),
            (None, Err(_)) => None,
        };
        match known {
            Some(known) => {
                this.lookup.end = Some(now);
                this.add(&known);
            }
            None => this.ask(ask),
        }
        this
    }

    fn ask(&mut self, mut ask: impl FnMut(Family)) {
        let asked: &[Family] = match self.family {
            Family::Any => &[Family::Ipv6, Family::Ipv4],
            Family::Ipv4 => &[Family::Ipv4],
            Family::Ipv6 => &[Family::Ipv6],
        };
        for family in asked {
            self.asks += 1;
            ask(*family);
        }
    }

    fn add(&mut self, found: &[IpAddr]) {
        let port = self.lookup.origin.port;
        let found = found.iter().filter(|address| self.family.has(address));
        let found = found.map(|address| SocketAddr::new(*address, port));
        let all = self.lookup.addresses.iter().copied().chain(found);
        self.lookup.addresses = in_turn(all);
    }

    /// A resolver has answered.
    pub(crate) fn on_answer(
        &mut self,
        at: Time,
        family: Family,
        found: Result<Vec<IpAddr>, String>,
    ) {
        self.asks = self.asks.saturating_sub(1);
        let was_over = self.lookup.end.is_some();
        if let Ok(found) = &found {
            if was_over {
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
        if self.asks == 0 && !was_over {
            self.lookup.end = Some(at);
        }
    }

    pub(crate) fn state(&mut self, now: Time) -> State {
        let first = [&self.lookup.a, &self.lookup.aaaa]
            .into_iter()
            .flatten()
            .filter(|answer| answer.found.as_ref().is_ok_and(|found| !found.is_empty()))
            .map(|answer| answer.at)
            .min();
        if self.lookup.end.is_none()
            && let Some(first) = first
        {
            if now < first + PATIENCE {
                return State::Waits(first + PATIENCE);
            }
            self.lookup.end = Some(now);
        }
        if self.lookup.end.is_none() {
            let until = self.lookup.begin + self.timeout;
            return if now < until {
                State::Waits(until)
            } else {
                State::Failed(Failure::ConnectTimeout(self.timeout))
            };
        }
        if self.lookup.addresses.is_empty() {
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
pub(crate) fn ask(
    server: usize,
    host: String,
    family: Family,
    clock: Clock,
    mailbox: Arc<Mailbox>,
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
        mailbox.post(Event::Resolved {
            server,
            family,
            at,
            found,
        });
    });
}

/// Each address once, IPv6 and IPv4 by turns, beginning with what came first (RFC 8305 §4).
fn in_turn(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
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
