//! One cookie: parsing (RFC 6265 §5.2, §5.3), and the requests it is sent with (§5.1.3, §5.1.4, §5.4).

use std::net::IpAddr;

use crate::{
    calendar::cookie_date,
    url::{Scheme, Url},
};

/// The largest length of name and value together, in bytes (RFC 6265bis §5.6).
const LEN_MAX: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    pub(super) name: String,
    pub(super) value: String,
    /// The domain in lower case, without a leading dot.
    pub(super) domain: String,
    /// Whether it is also sent to subdomains.
    pub(super) is_for_subdomains: bool,
    /// The path as received. A trailing `/` has no effect.
    pub(super) path: String,
    /// The `secure` attribute: only sent over secure connections.
    pub(super) is_secure: bool,
    /// The `httponly` attribute, which is kept for the file.
    pub(super) is_http_only: bool,
    /// When it expires, in seconds since the Unix epoch; `None` for a session cookie.
    pub(super) expires_s: Option<u64>,
}

impl Cookie {
    /// Parses the value of a `set-cookie` field; `None` if it is invalid, or if this server may not set it.
    pub(super) fn parse(url: &Url, value: &str, now_s: u64) -> Option<Self> {
        // A tab would corrupt the file format.
        if value.chars().any(char::is_control) {
            return None;
        }
        let mut parts = value.split(';');
        let (name, content) = parts.next()?.split_once('=')?;
        let (name, content) = (name.trim(), content.trim());
        if name.is_empty() || name.len() + content.len() > LEN_MAX {
            return None;
        }
        let host = &url.origin().host;
        let mut this = Self {
            name: name.to_owned(),
            value: content.to_owned(),
            domain: host.clone(),
            is_for_subdomains: false,
            path: default_path(url),
            is_secure: false,
            is_http_only: false,
            expires_s: None,
        };
        let mut max_age = None;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            match &*key {
                "domain" if !value.is_empty() => this.set_domain(value, host)?,
                "path" if value.starts_with('/') => value.clone_into(&mut this.path),
                "secure" => this.is_secure = true,
                "httponly" => this.is_http_only = true,
                "max-age" => max_age = age(value).or(max_age),
                "expires" => this.expires_s = cookie_date(value).or(this.expires_s),
                _ => {}
            }
        }
        // `max-age` takes precedence over `expires` (RFC 6265 §5.3, step 3).
        if let Some(age) = max_age {
            this.expires_s = Some(now_s.saturating_add(age));
            if age == 0 {
                this.expires_s = Some(0);
            }
        }
        let is_allowed = (!this.is_secure || is_secure(url)) && this.satisfies_prefix();
        is_allowed.then_some(this)
    }

    /// Sets the domain; `None` if the host is not in it (RFC 6265 §5.3, step 6).
    fn set_domain(&mut self, value: &str, host: &str) -> Option<()> {
        let domain = value.strip_prefix('.').unwrap_or(value);
        let domain = domain.to_ascii_lowercase();
        if !is_in(host, &domain) {
            return None;
        }
        let is_address = host.parse::<IpAddr>().is_ok();
        if !is_address && domain != *host && !domain.contains('.') {
            return None;
        }
        self.is_for_subdomains = !is_address;
        self.domain = domain;
        Some(())
    }

    /// Whether it meets the conditions of its name prefix (RFC 6265bis §4.1.3).
    fn satisfies_prefix(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let is_of_host = self.path == "/" && !self.is_for_subdomains;
        if name.starts_with("__host-") {
            self.is_secure && is_of_host
        } else if name.starts_with("__secure-") {
            self.is_secure
        } else {
            true
        }
    }

    pub(super) fn has_expired(&self, now_s: u64) -> bool {
        self.expires_s.is_some_and(|expires_s| expires_s <= now_s)
    }

    /// Whether one replaces the other.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name
            && self.domain == other.domain
            && folder(&self.path) == folder(&other.path)
    }

    /// Whether this cookie, from an insecure connection, would hide a secure cookie.
    pub(super) fn shadows(&self, other: &Self) -> bool {
        other.is_secure
            && self.name == other.name
            && (is_in(&self.domain, &other.domain) || is_in(&other.domain, &self.domain))
            && is_below(&self.path, &other.path)
    }

    /// Whether it is sent with a request for this URL.
    pub(super) fn is_for(&self, url: &Url, is_secure: bool) -> bool {
        let host = &url.origin().host;
        let path = url.path().split('?').next().unwrap_or_default();
        let is_of_host = *host == self.domain;
        (is_of_host || self.is_for_subdomains && is_in(host, &self.domain))
            && is_below(path, &self.path)
            && (is_secure || !self.is_secure)
    }
}

/// Whether a host is in a domain (RFC 6265 §5.1.3). An IP address only matches itself.
fn is_in(host: &str, domain: &str) -> bool {
    let before = host.strip_suffix(domain);
    before.is_some_and(str::is_empty)
        || before.is_some_and(|before| before.ends_with('.')) && host.parse::<IpAddr>().is_err()
}

/// Whether a path is below another (RFC 6265 §5.1.4).
fn is_below(path: &str, of: &str) -> bool {
    let of = folder(of);
    path.strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The path without a trailing `/`.
fn folder(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// The default path: that of the URL up to and including the last `/`, as in curl.
fn default_path(url: &Url) -> String {
    let path = url.path().split('?').next().unwrap_or_default();
    let end = path.rfind('/').map_or(0, |at| at + 1);
    path[..end].to_owned()
}

/// Parses `max-age` in seconds. Negative values count as 0.
fn age(value: &str) -> Option<u64> {
    let value = value.trim_matches('"');
    if let Some(below) = value.strip_prefix('-') {
        return below.bytes().all(|byte| byte.is_ascii_digit()).then_some(0);
    }
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // Values that overflow become the largest value.
    is_number.then(|| value.parse().unwrap_or(i64::MAX as u64))
}

/// Whether a connection counts as secure: over TLS, or to this machine, as in curl and browsers.
pub(super) fn is_secure(url: &Url) -> bool {
    let origin = url.origin();
    origin.scheme == Scheme::Https || matches!(&*origin.host, "localhost" | "127.0.0.1" | "::1")
}
