//! Alternative services (RFC 7838): the `Alt-Svc` field, a cache of its values, and curl's file format for this cache.
//!
//! Opens no files and reads no clock. Times are seconds since the Unix epoch.

use core::{fmt::Write as _, time::Duration};
use std::collections::BTreeMap;

use crate::{
    calendar::days,
    quoted::{split_unquoted, unquoted},
    url::Origin,
};

#[cfg(test)]
mod tests;

/// The default lifetime of a service (RFC 7838 §3.1): one day.
const MAX_AGE_DEFAULT_S: u64 = 24 * 60 * 60;
/// The longest lifetime of a service: ten years. Dates in curl's file format end with the year 9999.
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
    /// Whether it stays valid after a change of the network.
    pub persists: bool,
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

    /// Removes the services of an origin.
    pub fn forget(&mut self, origin: &Origin) {
        self.services.remove(&(origin.host.clone(), origin.port));
    }

    /// Whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// The cache in the format of curl's `--alt-svc`, without expired services.
    #[must_use]
    pub fn to_text(&self, now: Duration) -> String {
        let mut text = "# Your alt-svc cache. https://curl.se/docs/alt-svc.html\n\
                        # This file is read and written by lastbyte and curl.\n"
            .to_owned();
        for ((host, port), services) in &self.services {
            for service in services {
                if service.expires_s <= now.as_secs() {
                    continue;
                }
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "h2 {host} {port} {} {} {} \"{}\" {} 0",
                    service.protocol,
                    service.host,
                    service.port,
                    date(service.expires_s),
                    u8::from(service.persists),
                );
            }
        }
        text
    }

    /// Parses the format of curl's `--alt-svc`. Invalid lines are ignored, as by curl; the second value is their number.
    #[must_use]
    pub fn from_text(text: &str) -> (Self, usize) {
        let mut this = Self::default();
        let mut invalid = 0;
        for line in text.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse_line(line) {
                Some((key, service)) => {
                    let services = this.services.entry(key).or_default();
                    if services.len() < SERVICES_MAX && !services.contains(&service) {
                        services.push(service);
                    }
                }
                None => invalid += 1,
            }
        }
        (this, invalid)
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
            persists: false,
        };
        // Other characters would corrupt the file format.
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
            match name.trim() {
                "ma" => service.expires_s = now_s + age(&value)?,
                "persist" => service.persists = value == "1",
                _ => {}
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

/// Parses a line such as `h2 example.org 443 h3 shiny.example.com 8443 "20190808 06:18:37" 0 0`.
fn parse_line(line: &str) -> Option<((String, u16), Alternative)> {
    let (before, rest) = line.split_once('"')?;
    let (expires, after) = rest.split_once('"')?;
    let mut words = before.split_ascii_whitespace();
    let _protocol = words.next()?;
    let key = (
        words.next()?.to_ascii_lowercase(),
        words.next()?.parse().ok()?,
    );
    let protocol = words.next()?.to_owned();
    let host = words.next()?.to_ascii_lowercase();
    let port = words.next()?.parse().ok()?;
    let persists = after.split_ascii_whitespace().next() == Some("1");
    let service = Alternative {
        protocol,
        host,
        port,
        expires_s: seconds(expires)?,
        persists,
    };
    Some((key, service))
}

/// Parses a date such as `20190808 06:18:37`, in UTC, to seconds since the Unix epoch.
fn seconds(text: &str) -> Option<u64> {
    let is_formed = text.len() == 17 && text.is_ascii();
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    if !is_formed {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(12, 14)?, number(15, 17)?);
    let is_date = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    (is_date && hour < 24 && minute < 60 && second <= 60)
        .then(|| days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second)
}

fn date(seconds: u64) -> String {
    let day_count = seconds / 86_400;
    // Find the last year whose first day is not after the date.
    let mut year = 1970 + day_count / 366;
    while days(year + 1, 1, 1) <= day_count {
        year += 1;
    }
    let mut month = 12;
    while days(year, month, 1) > day_count {
        month -= 1;
    }
    let day = day_count - days(year, month, 1) + 1;
    let rest = seconds % 86_400;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}")
}
