//! Alternative services (RFC 7838): the `Alt-Svc` field, and a cache of its values.
//!
//! Reads no clock. Times are seconds since the Unix epoch.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::{
    quoted::{split_unquoted, unquoted},
    url::Origin,
};

#[cfg(test)]
mod tests;

/// The default lifetime of a service (RFC 7838 §3.1): one day.
const MAX_AGE_DEFAULT_S: u64 = 24 * 60 * 60;
/// The longest lifetime of a service: ten years.
const MAX_AGE_MAX_S: u64 = 10 * 365 * 24 * 60 * 60;
/// The most services kept for one origin.
const SERVICES_MAX: usize = 8;
/// The most origins kept.
const ORIGINS_MAX: usize = 10_000;

/// An alternative service of an origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The protocol, as an ALPN name: `h3`, `h2`, …
    pub protocol: String,
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// When it expires, in seconds since the Unix epoch.
    pub expires_s: u64,
}

/// A cache of alternative services.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AltSvc {
    services: BTreeMap<(String, u16), Vec<Alternative>>,
}

impl AltSvc {
    /// Adds the value of an `Alt-Svc` field, the list of all its lines, which replaces the origin's earlier services (RFC 7838 §3.1). An invalid value
    /// is ignored.
    pub fn put(&mut self, origin: &Origin, value: &str, now: Duration) {
        let key = (origin.host.clone(), origin.port);
        if value.trim().eq_ignore_ascii_case("clear") {
            self.services.remove(&key);
            return;
        }
        let Some(services) = parse(value, origin, now.as_secs()) else {
            return;
        };
        if self.services.len() >= ORIGINS_MAX && !self.services.contains_key(&key) {
            self.services.pop_first();
        }
        self.services.insert(key, services);
    }

    /// The services of an origin with this protocol that have not expired.
    pub fn of<'a>(
        &'a self,
        origin: &Origin,
        protocol: &'a str,
        now: Duration,
    ) -> impl Iterator<Item = &'a Alternative> + 'a {
        let key = (origin.host.clone(), origin.port);
        let services = self.services.get(&key).map_or(&[][..], Vec::as_slice);
        services
            .iter()
            .filter(move |it| it.protocol == protocol && it.expires_s > now.as_secs())
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }
}

/// Parses a field value such as `h3=":443"; ma=3600, h2="other.example:443"` (RFC 7838 §3).
fn parse(value: &str, origin: &Origin, now_s: u64) -> Option<Vec<Alternative>> {
    let mut services = Vec::new();
    for member in split_unquoted(value, ',') {
        let mut parts = split_unquoted(member, ';');
        let (protocol, authority) = parts.next()?.split_once('=')?;
        let authority = unquoted(authority);
        let (host, port) = authority.rsplit_once(':')?;
        let host = host.trim_matches(['[', ']']);
        let mut service = Alternative {
            protocol: protocol.trim().to_owned(),
            host: if host.is_empty() {
                origin.host.clone()
            } else {
                host.to_ascii_lowercase()
            },
            port: port.parse().ok().filter(|port| *port > 0)?,
            expires_s: now_s + MAX_AGE_DEFAULT_S,
        };
        // Neither a host nor a protocol has other characters.
        let is_word = |text: &str| {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
            !text.is_empty() && text.bytes().all(is_plain)
        };
        if !is_word(&service.host) || !is_word(&service.protocol) {
            return None;
        }
        for parameter in parts {
            let Some((name, value)) = parameter.split_once('=') else {
                continue;
            };
            let value = unquoted(value);
            if name.trim() == "ma" {
                service.expires_s = now_s + age(&value)?;
            }
        }
        if services.len() < SERVICES_MAX && !services.contains(&service) {
            services.push(service);
        }
    }
    Some(services)
}

/// Parses a number of seconds (RFC 9111 §1.2.2), which is limited to [`MAX_AGE_MAX_S`].
fn age(value: &str) -> Option<u64> {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| value.parse().unwrap_or(u64::MAX).min(MAX_AGE_MAX_S))
}
