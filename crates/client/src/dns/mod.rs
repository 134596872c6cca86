//! DNS servers, asked directly: for HTTPS records (RFC 9460), which no system's resolver gives, and for addresses where a
//! server was named.
//!
//! | module | owns |
//! |---|---|
//! | `message` | questions and answers, as bytes |
//! | `service` | an HTTPS record: where and how an origin is served |
//! | `exchange` | the way to a server and back, in a thread that waits |
//! | `system` | which servers the system asks, and which names it knows without them |
//!
//! Never: decides how long an answer is waited for by those who asked.

#[cfg(test)]
mod corpus;
mod exchange;
mod message;
mod service;
mod system;

use core::{net::SocketAddr, time::Duration};
use std::{net::IpAddr, thread};

use lastbyte_driver::Clock;
use lastbyte_quic::Time;

pub use self::service::Service;
use self::{
    exchange::Exchange,
    message::{Answer, Kind},
};
use crate::{family::Family, mailbox::Sender, url::Origin};

/// How many aliases are followed (RFC 9460 §2.4.2).
const ALIASES_MAX: usize = 4;

/// Whether DNS is asked for the HTTPS record of an origin. Names that never leave a machine or a network (RFC 6761, RFC 6762,
/// RFC 7686) are not; those of one label only where a server was named, as the system looks for them in domains of its own.
pub(crate) fn may_have_https_record(origin: &Origin, is_server_named: bool) -> bool {
    let host = origin.host.trim_end_matches('.');
    let last = host.rsplit('.').next().unwrap_or_default();
    host.parse::<IpAddr>().is_err()
        && !matches!(last, "localhost" | "local" | "onion")
        && (is_server_named || host.contains('.'))
}

/// The name that an origin's HTTPS record has (RFC 9460 §9.1).
fn record_name(origin: &Origin) -> String {
    if origin.port == 443 {
        origin.host.clone()
    } else {
        format!("_{}._https.{}", origin.port, origin.host)
    }
}

/// The answer of a resolver.
pub(crate) enum Event {
    /// The addresses of a host, or why there are none.
    Addresses {
        /// The name that was resolved.
        host: String,
        /// The kind of addresses, IPv4 or IPv6.
        family: Family,
        /// When the answer arrived.
        at: Time,
        /// The addresses, or the resolver's error.
        found: Result<Vec<IpAddr>, String>,
    },
    /// The HTTPS record.
    Services {
        /// When the answer arrived.
        at: Time,
        /// The record or the server's error; `None` if no DNS server was asked.
        found: Option<Result<Vec<Service>, String>>,
    },
}

/// The DNS servers to ask, and where answers go.
#[derive(Clone)]
pub(crate) struct DnsClient {
    /// DNS servers; if there are none, the system's.
    pub(crate) servers: Vec<SocketAddr>,
    /// How long it is asked.
    pub(crate) timeout: Duration,
    pub(crate) clock: Clock,
    pub(crate) answers: Sender<Event>,
}

impl DnsClient {
    /// Asks for addresses, in a thread of its own.
    pub(crate) fn query_addresses(&self, host: &str, family: Family) {
        let (this, host) = (self.clone(), host.to_owned());
        let kind = match family {
            Family::Ipv6 => Kind::Aaaa,
            _ => Kind::A,
        };
        let until = self.clock.now() + self.timeout;
        spawn(move || {
            let found = this.exchange(until).query(&host, kind);
            this.answers.post(Event::Addresses {
                host,
                family,
                at: this.clock.now(),
                found: found.map(|answer| answer.addresses),
            });
        });
    }

    /// Asks for an HTTPS record, in a thread of its own.
    pub(crate) fn query_services(&self, origin: &Origin) {
        let (mut this, origin) = (self.clone(), origin.clone());
        let until = self.clock.now() + self.timeout;
        spawn(move || {
            let mut is_asked = true;
            if this.servers.is_empty() {
                // Who stands in `hosts` is where it says, and nowhere else.
                is_asked = !system::is_in_hosts(&origin.host);
                this.servers = system::servers();
            }
            let found = is_asked.then(|| this.services(&origin, until));
            this.answers.post(Event::Services {
                at: this.clock.now(),
                found,
            });
        });
    }

    fn exchange(&self, until: Time) -> Exchange<'_> {
        Exchange {
            servers: &self.servers,
            clock: self.clock,
            until,
        }
    }

    /// The HTTPS record of an origin, where its aliases lead to (RFC 9460 §3).
    fn services(&self, origin: &Origin, until: Time) -> Result<Vec<Service>, String> {
        let mut name = record_name(origin);
        for asked in 0..=ALIASES_MAX {
            let answer = self.exchange(until).query(&name, Kind::Https)?;
            let Answer {
                alias, services, ..
            } = answer;
            let Some(alias) = alias else {
                if services.is_empty() && asked > 0 {
                    // Where it is, is all that is known of it.
                    return Ok(with_targets(
                        vec![Service::at(name.clone())],
                        &name,
                        &origin.host,
                    ));
                }
                return Ok(with_targets(services, &name, &origin.host));
            };
            name = alias;
        }
        Err(format!("more than {ALIASES_MAX} aliases"))
    }
}

/// With the name that was asked for as the target where none is said (RFC 9460 §2.5.2), and none where that is the origin's
/// own host: its addresses are asked for anyway.
fn with_targets(mut services: Vec<Service>, name: &str, host: &str) -> Vec<Service> {
    for service in &mut services {
        let target = service.target.take().unwrap_or_else(|| name.to_owned());
        service.target = (target != host).then_some(target);
    }
    services
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server may never answer, and a thread that waits for it may be left behind"
)]
fn spawn(work: impl FnOnce() + Send + 'static) {
    thread::spawn(work);
}

#[cfg(test)]
mod tests;
