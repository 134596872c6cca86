//! The upstream: one server, or several that are equal, as URLs.

use std::{fmt, os::unix::net::SocketAddr, path::PathBuf, time::Duration};

use http::uri::PathAndQuery;

/// The most servers of an upstream.
pub const SERVERS_MAX: usize = 32;

/// The servers to which requests are forwarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Whether TLS is used.
    pub is_secure: bool,
    /// Whether they use HTTP/2 in plaintext, with prior knowledge (RFC 9113 §3.3).
    pub is_h2c: bool,
    /// The servers, at least one and at most [`SERVERS_MAX`].
    pub servers: Vec<Server>,
    /// The prefix of each request's path, without a trailing slash.
    pub base: String,
    /// Whether fields with `_` in their names are forwarded. CGI and its successors read `_` as `-`.
    pub takes_underscores: bool,
    /// The requests that check the servers. Default: none.
    pub checks: Option<Checks>,
}

/// Requests that check whether servers work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks {
    /// The path of the requests, with a query if it has one.
    pub path: PathAndQuery,
    /// The time from the end of a check to the start of the next.
    pub interval: Duration,
    /// Time limit of a check, with the time to connect.
    pub timeout: Duration,
    /// Consecutive checks that failed, after which a server gets no requests.
    pub failures_max: u32,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A host and a port.
    Tcp {
        /// Its name or address; IPv6 addresses without brackets.
        host: String,
        /// Its port.
        port: u16,
    },
    /// The path of a socket (`AF_UNIX`).
    Unix(PathBuf),
}

impl Upstream {
    /// The host and port of the first server as an authority, for requests without one.
    pub(super) fn authority(&self) -> String {
        match self.servers.first() {
            Some(Server::Tcp { host, port }) => self.authority_of(host, *port),
            _ => "localhost".to_owned(),
        }
    }

    /// The URL of a server, without the path.
    pub(super) fn name_of(&self, server: &Server) -> String {
        let scheme = match (self.is_secure, self.is_h2c) {
            (true, _) => "https",
            (false, true) => "h2c",
            (false, false) => "http",
        };
        match server {
            Server::Tcp { host, port } => format!("{scheme}://{}", self.authority_of(host, *port)),
            Server::Unix(path) => format!("unix:{}", path.display()),
        }
    }

    pub(super) fn authority_of(&self, host: &str, port: u16) -> String {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        match (self.is_secure, port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// The URLs, as they are parsed.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, server) in self.servers.iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            write!(f, "{}{}", self.name_of(server), self.base)?;
        }
        Ok(())
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

    /// A URL, or several with commas between them, which differ in host and port only.
    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        let mut urls = text.split(',').map(one);
        let mut all = urls.next().unwrap_or_else(|| one(text))?;
        for url in urls {
            let mut url = url?;
            let error =
                |what: &str| UpstreamError(format!("`{text}` has URLs with different {what}"));
            if (url.is_secure, url.is_h2c) != (all.is_secure, all.is_h2c) {
                return Err(error("schemes (expected the same for all)"));
            }
            if url.base != all.base {
                return Err(error("paths (expected the same for all)"));
            }
            if url
                .servers
                .iter()
                .any(|server| all.servers.contains(server))
            {
                return Err(UpstreamError(format!("`{text}` has a server twice")));
            }
            all.servers.append(&mut url.servers);
        }
        if all.servers.len() > SERVERS_MAX {
            return Err(UpstreamError(format!(
                "`{text}` has {} servers (expected at most {SERVERS_MAX})",
                all.servers.len()
            )));
        }
        Ok(all)
    }
}

/// One URL.
fn one(text: &str) -> Result<Upstream, UpstreamError> {
    let error = |what: &str| UpstreamError(format!("`{text}` {what}"));
    let of = |(is_secure, is_h2c), server, base: &str| Upstream {
        is_secure,
        is_h2c,
        servers: vec![server],
        base: base.trim_end_matches('/').to_owned(),
        takes_underscores: false,
        checks: None,
    };
    if let Some(path) = text.strip_prefix("unix:") {
        if !path.starts_with('/') {
            return Err(error(
                "has no absolute path (expected `unix:/run/app.sock`)",
            ));
        }
        if SocketAddr::from_pathname(path).is_err() {
            return Err(error(&format!(
                "has a path of {} bytes that no socket can have (expected at most 107)",
                path.len()
            )));
        }
        return Ok(of((false, false), Server::Unix(path.into()), ""));
    }
    let uri: http::Uri = text.parse().map_err(|_| error("is not a valid URL"))?;
    let (is_secure, is_h2c) = match uri.scheme_str() {
        Some("http") => (false, false),
        Some("https") => (true, false),
        Some("h2c") => (false, true),
        _ => {
            return Err(error(
                "has an unknown scheme (expected `http://`, `https://`, `h2c://` or `unix:/`)",
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
    let rest = authority.as_str().strip_prefix(authority.host());
    let port = match rest.unwrap_or_default() {
        "" if is_secure => 443,
        "" => 80,
        rest => {
            let digits = rest.strip_prefix(':').unwrap_or(rest);
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let port = digits.parse().ok().filter(|_| is_number);
            port.ok_or_else(|| error(&format!("has the port `{digits}` (expected at most 65535)")))?
        }
    };
    let server = Server::Tcp {
        host: host.to_owned(),
        port,
    };
    Ok(of((is_secure, is_h2c), server, uri.path()))
}
