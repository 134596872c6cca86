//! The upstream server, as a URL.

use std::fmt;

/// A server to which requests are forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Whether TLS is used.
    pub is_secure: bool,
    /// Whether it uses HTTP/2 in plaintext, with prior knowledge (RFC 9113 §3.3).
    pub is_h2c: bool,
    /// Its name or address; IPv6 addresses without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The prefix of each request's path, without a trailing slash.
    pub base: String,
    /// Whether fields with `_` in their names are forwarded. CGI and its successors read `_` as `-`.
    pub takes_underscores: bool,
}

impl Upstream {
    /// Its host and port as an authority, for requests without one.
    pub(super) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match (self.is_secure, self.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.is_secure, self.is_h2c) {
            (true, _) => "https",
            (false, true) => "h2c",
            (false, false) => "http",
        };
        write!(f, "{scheme}://{}{}", self.authority(), self.base)
    }
}

/// Why a text is not an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamError(String);

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UpstreamError {}

impl std::str::FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let error = |what: &str| UpstreamError(format!("`{text}` {what}"));
        let uri: http::Uri = text.parse().map_err(|_| error("is not a valid URL"))?;
        let (is_secure, is_h2c) = match uri.scheme_str() {
            Some("http") => (false, false),
            Some("https") => (true, false),
            Some("h2c") => (false, true),
            _ => {
                return Err(error(
                    "has an unknown scheme (expected `http://`, `https://` or `h2c://`)",
                ));
            }
        };
        let authority = uri.authority().ok_or_else(|| error("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(error("has credentials, which are not supported"));
        }
        if uri.query().is_some() {
            return Err(error("has a query, which is not supported"));
        }
        let host = authority.host().trim_matches(['[', ']']);
        if host.is_empty() {
            return Err(error("has no host"));
        }
        Ok(Self {
            is_secure,
            is_h2c,
            host: host.to_owned(),
            port: authority
                .port_u16()
                .unwrap_or(if is_secure { 443 } else { 80 }),
            base: uri.path().trim_end_matches('/').to_owned(),
            takes_underscores: false,
        })
    }
}
