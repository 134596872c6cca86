//! A DNS client: for HTTPS records (RFC 9460), which system resolvers do not return, and for addresses if DNS servers are
//! configured.
//!
//! | module | responsibility |
//! |---|---|
//! | `message` | encoding of queries, decoding of answers |
//! | `service` | an HTTPS record in `ServiceMode`: endpoint and protocols of an origin |
//! | `exchange` | a query to a server and its answer, in a blocking thread |
//! | `system` | the system's DNS servers and its `hosts` file |
//!
//! How long a fetch waits for an answer is decided by `resolve`.

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

/// The most aliases that are followed (RFC 9460 §2.4.2).
const ALIASES_MAX: usize = 4;

/// Whether an origin can have an HTTPS record in DNS. Special-use names (RFC 6761, RFC 6762, RFC 7686) cannot. Names of one
/// label are only queried if DNS servers are configured, because the system resolves them in its search domains.
pub(crate) fn may_have_https_record(origin: &Origin, has_dns_servers: bool) -> bool {
    let host = origin.host.trim_end_matches('.');
    let last = host.rsplit('.').next().unwrap_or_default();
    host.parse::<IpAddr>().is_err()
        && !matches!(last, "localhost" | "local" | "onion")
        && (has_dns_servers || host.contains('.'))
}

/// The name of an origin's HTTPS record (RFC 9460 §9.1).
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
        /// The record or the server's error; `None` if no DNS server was queried.
        found: Option<Result<Vec<Service>, String>>,
    },
}

/// Queries DNS servers and reports the answers.
#[derive(Clone)]
pub(crate) struct DnsClient {
    /// The DNS servers; if empty, those of the system.
    pub(crate) servers: Vec<SocketAddr>,
    /// The time limit of a query.
    pub(crate) timeout: Duration,
    pub(crate) clock: Clock,
    pub(crate) answers: Sender<Event>,
}

impl DnsClient {
    /// Queries addresses, in a separate thread.
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

    /// Queries an HTTPS record, in a separate thread.
    pub(crate) fn query_services(&self, origin: &Origin) {
        let (mut this, origin) = (self.clone(), origin.clone());
        let until = self.clock.now() + self.timeout;
        spawn(move || {
            let mut is_queried = true;
            if this.servers.is_empty() {
                // An entry in `hosts` takes precedence over DNS.
                is_queried = !system::is_in_hosts(&origin.host);
                this.servers = system::servers();
            }
            let found = is_queried.then(|| this.services(&origin, until));
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

    /// The HTTPS record of an origin, after following its aliases (RFC 9460 §3).
    fn services(&self, origin: &Origin, until: Time) -> Result<Vec<Service>, String> {
        let mut name = record_name(origin);
        for alias_count in 0..=ALIASES_MAX {
            let answer = self.exchange(until).query(&name, Kind::Https)?;
            let Answer {
                alias, services, ..
            } = answer;
            let Some(alias) = alias else {
                if services.is_empty() && alias_count > 0 {
                    // The alias has no record; only its host is known.
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
        Err(format!("too many aliases (limit: {ALIASES_MAX})"))
    }
}

/// Sets the target of services without one to the queried name (RFC 9460 §2.5.2). A target that is the origin's own host is
/// removed, because its addresses are queried anyway.
fn with_targets(mut services: Vec<Service>, name: &str, host: &str) -> Vec<Service> {
    for service in &mut services {
        let target = service.target.take().unwrap_or_else(|| name.to_owned());
        service.target = (target != host).then_some(target);
    }
    services
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server may never answer, and the waiting thread may be abandoned"
)]
fn spawn(work: impl FnOnce() + Send + 'static) {
    thread::spawn(work);
}

#[cfg(test)]
mod tests;
