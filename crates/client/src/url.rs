//! URLs with the schemes `https` and `http` (RFC 3986, RFC 9110 §4.2). Invalid URLs are rejected, not repaired, except for
//! characters of paths and queries, which are percent-encoded as by browsers: the same in all versions of HTTP.

use core::fmt::{self, Write as _};

#[cfg(test)]
mod tests;

/// A URL scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// With TLS, over TCP or QUIC.
    #[default]
    Https,
    /// Without TLS, over TCP.
    Http,
}

impl Scheme {
    /// The name of the scheme, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The default port.
    pub const fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// The origin of a URL (RFC 9110 §4.3.1): scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The scheme.
    pub scheme: Scheme,
    /// A name in lower case, or an IP address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Origin {
    /// The host and, unless it is the default port of the scheme, the port; as in `:authority` (RFC 9114 §4.3.1).
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == self.scheme.port() {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority())
    }
}

/// A URL that can be fetched.
///
/// ```
/// let url: lastbyte_client::Url = "https://Example.com/a/../b?c#d".parse().unwrap();
/// assert_eq!(url.to_string(), "https://example.com/b?c");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Url {
    origin: Origin,
    path: String,
    credentials: Option<String>,
}

/// Why a text is not a URL that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The scheme is neither `https` nor `http`.
    #[error("unsupported URL scheme `{0}` (expected `https` or `http`)")]
    Scheme(String),
    /// The host is missing or invalid.
    #[error(
        "invalid host `{0}` (expected an ASCII name such as `xn--…`, an IPv4 address, or an IPv6 address in brackets)"
    )]
    Host(String),
    /// The port is not a number from 1 to 65535.
    #[error("invalid port `{0}` (expected 1 to 65535)")]
    Port(String),
    /// The URL contains a space or a control character.
    #[error("invalid character {0:?} in URL (write it as %{code:02X})", code = u32::from(*.0))]
    Character(char),
    /// The scheme is not followed by `//`.
    #[error("no `//` after `{name}:` (expected `{name}://HOST/`)", name = .0.name())]
    Slashes(Scheme),
}

impl Url {
    /// The origin.
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Path and query, without the fragment. Starts with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `user:password` from before the host, percent-decoded. [`Display`](fmt::Display) omits it.
    pub fn credentials(&self) -> Option<&str> {
        self.credentials.as_deref()
    }

    /// The same URL with these credentials, `user:password`.
    #[must_use]
    pub fn with_credentials(mut self, credentials: &str) -> Self {
        self.credentials = Some(credentials.to_owned());
        self
    }

    /// Resolves a reference, such as a `location` field, relative to this URL (RFC 3986 §5.2).
    ///
    /// # Errors
    ///
    /// Returns the [`UrlError`] of the resulting URL if it cannot be fetched.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        // Some servers send unescaped spaces; escape them (RFC 3986 §2.1).
        let reference = reference.trim_matches([' ', '\t']).replace(' ', "%20");
        let scheme_end = reference.find([':', '/', '?', '#']);
        let has_scheme = scheme_end.is_some_and(|end| reference[end..].starts_with(':'));
        if has_scheme {
            if reference.contains("://") {
                return reference.parse();
            }
            let scheme = reference.split(':').next().unwrap_or_default();
            return Err(match scheme_of(scheme) {
                Some(scheme) => UrlError::Slashes(scheme),
                None => UrlError::Scheme(scheme.to_owned()),
            });
        }
        if let Some(rest) = reference.strip_prefix("//") {
            return format!("{}://{rest}", self.origin.scheme.name()).parse();
        }
        check(&reference)?;
        let (path, query) = match self.path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*self.path, None),
        };
        let text = match reference.chars().next() {
            None | Some('#') => match query {
                Some(query) => format!("{path}?{query}"),
                None => path.to_owned(),
            },
            Some('/') => reference,
            Some('?') => format!("{path}{reference}"),
            Some(_) => {
                let folder = path.rfind('/').map_or(0, |slash| slash + 1);
                format!("{}{reference}", &path[..folder])
            }
        };
        Ok(Self {
            origin: self.origin.clone(),
            path: path_of(&text),
            credentials: None,
        })
    }

    /// Resolves the value of a `location` field. Octets that are not UTF-8 are percent-encoded (RFC 3986 §2.1).
    ///
    /// # Errors
    ///
    /// As [`Self::join`].
    pub fn join_field(&self, reference: &[u8]) -> Result<Self, UrlError> {
        if let Ok(reference) = core::str::from_utf8(reference) {
            return self.join(reference);
        }
        let mut text = String::new();
        push_encoded(reference, b"", &mut text);
        self.join(&text)
    }

    /// The last segment of the path, as a file name; `None` if it is empty.
    pub fn file_name(&self) -> Option<&str> {
        let path = self.path.split('?').next()?;
        path.rsplit('/').next().filter(|name| !name.is_empty())
    }
}

impl core::str::FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        check(text)?;
        let (scheme, rest) = match text.split_once("://") {
            // After a `?`, the `://` is part of the query.
            Some((scheme, rest)) if !scheme.contains(['/', '?', '#']) => {
                let known = scheme_of(scheme);
                let known = known.ok_or_else(|| UrlError::Scheme(scheme.to_owned()))?;
                (known, rest)
            }
            _ => (Scheme::Https, text),
        };
        if let Some((name, after)) = rest.split_once(':')
            && let Some(scheme) = scheme_of(name)
            && !after.starts_with(|c: char| c.is_ascii_digit())
            && !rest
                .split(['/', '?', '#'])
                .next()
                .unwrap_or_default()
                .contains('@')
        {
            // Not the host `http`, whose port is not there.
            return Err(UrlError::Slashes(scheme));
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (credentials, authority) = match authority.rsplit_once('@') {
            Some((credentials, authority)) => (Some(unescaped(credentials)), authority),
            None => (None, authority),
        };
        Ok(Self {
            origin: origin(scheme, authority)?,
            path: path_of(path),
            credentials,
        })
    }
}

fn scheme_of(name: &str) -> Option<Scheme> {
    [Scheme::Https, Scheme::Http]
        .into_iter()
        .find(|scheme| name.eq_ignore_ascii_case(scheme.name()))
}

fn check(text: &str) -> Result<(), UrlError> {
    let forbidden = |c: &char| c.is_ascii_control() || *c == ' ';
    match text.chars().find(forbidden) {
        Some(character) => Err(UrlError::Character(character)),
        None => Ok(()),
    }
}

/// Decodes percent-encoding (RFC 3986 §2.1). Returns the text unchanged if the result is not valid UTF-8.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after
            .get(..2)
            .and_then(|two| core::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn origin(scheme: Scheme, authority: &str) -> Result<Origin, UrlError> {
    let invalid = || UrlError::Host(authority.to_owned());
    let (host, port) = if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or_else(invalid)?;
        host.parse::<core::net::Ipv6Addr>().map_err(|_| invalid())?;
        let port = match rest.strip_prefix(':') {
            None if !rest.is_empty() => return Err(invalid()),
            port => port,
        };
        (host, port)
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:".contains(c);
    if host.is_empty() || !host.chars().all(is_allowed) {
        return Err(invalid());
    }
    let port = match port.filter(|port| !port.is_empty()) {
        None => scheme.port(),
        Some(port) => match port.parse() {
            // `parse` also accepts a sign.
            Ok(number) if number > 0 && !port.starts_with('+') => number,
            _ => return Err(UrlError::Port(port.to_owned())),
        },
    };
    Ok(Origin {
        scheme,
        host: host.to_ascii_lowercase(),
        port,
    })
}

/// The characters of a path that are percent-encoded: the path set of the URL standard, without those that end a path, and
/// without braces, which every version of HTTP transmits, and curl sends.
const PATH: &[u8] = b"\"<>^`";
/// The same of a query: the special-query set.
const QUERY: &[u8] = b"\"#<>'";

/// Path and query as sent to the server: without dot segments (RFC 3986 §5.2.4) and fragment, encoded.
fn path_of(text: &str) -> String {
    let text = text.split('#').next().unwrap_or_default();
    let (path, query) = match text.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (text, None),
    };
    let mut parts: Vec<&str> = Vec::new();
    let mut ends_in_folder = true;
    for part in path.split('/').skip(1) {
        ends_in_folder = matches!(part, "" | "." | "..");
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if ends_in_folder && parts.last().is_none_or(|last| !last.is_empty()) {
        parts.push("");
    }
    let mut out = String::new();
    for part in &parts {
        out.push('/');
        push_encoded(part, PATH, &mut out);
    }
    if let Some(query) = query {
        out.push('?');
        push_encoded(query, QUERY, &mut out);
    }
    out
}

/// Percent-encodes these characters, and all that are not ASCII.
fn push_encoded(text: impl AsRef<[u8]>, encoded: &[u8], out: &mut String) {
    for byte in text.as_ref() {
        if byte.is_ascii() && !encoded.contains(byte) {
            out.push(char::from(*byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.origin.scheme.name();
        write!(f, "{scheme}://{}{}", self.origin, self.path)
    }
}
