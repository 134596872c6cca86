//! Addresses of resources (RFC 3986, RFC 9110 §4.2), as far as they are fetched: `https` or `http`, a host, a path.
//!
//! Never: resolves a name, or guesses what a broken address could mean.

use core::fmt::{self, Write as _};

#[cfg(test)]
mod tests;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// Over TLS, by TCP or QUIC.
    #[default]
    Https,
    /// In clear text, over TCP.
    Http,
}

impl Scheme {
    /// Its name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    /// The port where none is given.
    #[must_use]
    pub const fn port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}

/// Whom requests go to: all that decides whether they can share a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// How it is spoken to.
    pub scheme: Scheme,
    /// A name in lower case, or an IP address, without brackets.
    pub host: String,
    /// The port; that of the scheme where none is given.
    pub port: u16,
}

impl Origin {
    /// As `:authority` has it (RFC 9114 §4.3.1): without the port where that is the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        if self.port == self.scheme.port() {
            self.bracketed()
        } else {
            self.with_port()
        }
    }

    /// The same with the port, whatever it is, as tunnels are asked for (RFC 9112 §3.2.3).
    pub(crate) fn with_port(&self) -> String {
        format!("{}:{}", self.bracketed(), self.port)
    }

    fn bracketed(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.authority())
    }
}

/// What is to be fetched.
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

/// Why a text is no address of something that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// A scheme that is neither `https` nor `http`.
    Scheme(String),
    /// There is no host, or it has a character that no host has.
    Host(String),
    /// The port is no number from 1 to 65535.
    Port(String),
    /// A blank or a control character.
    Character(char),
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => write!(
                f,
                "`{scheme}` is not a scheme that is spoken here; write `https://…`"
            ),
            Self::Host(host) => write!(
                f,
                "`{host}` is no host; write a name in ASCII (`xn--…` for others), an IPv4 address, or an IPv6 address in brackets"
            ),
            Self::Port(port) => write!(f, "`{port}` is no port; write 1 to 65535"),
            Self::Character(character) => write!(
                f,
                "{character:?} cannot stand in an address; write it as %{:02X}",
                u32::from(*character)
            ),
        }
    }
}

impl core::error::Error for UrlError {}

impl Url {
    /// Whom to ask.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Path and query, without a fragment: it begins with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `name:password`, as it stood before the host, with what was escaped there; it is not part of what is displayed.
    #[must_use]
    pub fn credentials(&self) -> Option<&str> {
        self.credentials.as_deref()
    }

    /// The same with these credentials, `name:password`.
    #[must_use]
    pub fn with_credentials(mut self, credentials: &str) -> Self {
        self.credentials = Some(credentials.to_owned());
        self
    }

    /// What a reference means that stands in what came from here (RFC 3986 §5.2), such as a `location`.
    ///
    /// # Errors
    ///
    /// It leads to nothing that can be fetched.
    pub fn join(&self, reference: &str) -> Result<Self, UrlError> {
        let reference = reference.trim_matches([' ', '\t']);
        let scheme_end = reference.find([':', '/', '?', '#']);
        let has_scheme = scheme_end.is_some_and(|end| reference[end..].starts_with(':'));
        if has_scheme {
            if reference.contains("://") {
                return reference.parse();
            }
            let scheme = reference.split(':').next().unwrap_or_default();
            return Err(UrlError::Scheme(scheme.to_owned()));
        }
        // What others escape before they send it is escaped here (RFC 3986 §2.1).
        let reference = reference.replace(' ', "%20");
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

    /// The same with this added to its query.
    #[must_use]
    pub fn with_query(mut self, more: &str) -> Self {
        if more.is_empty() {
            return self;
        }
        self.path
            .push(if self.path.contains('?') { '&' } else { '?' });
        push_ascii(more, &mut self.path);
        self
    }

    /// The last part of the path, for a file's name; `None` if there is none.
    #[must_use]
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
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
            // Behind a `?` it belongs to a query.
            Some((scheme, _)) if !scheme.contains(['/', '?', '#']) => {
                return Err(UrlError::Scheme(scheme.to_owned()));
            }
            _ => (Scheme::Https, text),
        };
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

fn check(text: &str) -> Result<(), UrlError> {
    let forbidden = |c: &char| c.is_ascii_control() || *c == ' ';
    match text.chars().find(forbidden) {
        Some(character) => Err(UrlError::Character(character)),
        None => Ok(()),
    }
}

/// With its `%41` as the bytes that they stand for (RFC 3986 §2.1); what is no text then stays as it was.
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
    let wrong = || UrlError::Host(authority.to_owned());
    let (host, port) = if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, rest) = bracketed.split_once(']').ok_or_else(wrong)?;
        host.parse::<core::net::Ipv6Addr>().map_err(|_| wrong())?;
        let port = match rest.strip_prefix(':') {
            None if !rest.is_empty() => return Err(wrong()),
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
        return Err(wrong());
    }
    let port = match port.filter(|port| !port.is_empty()) {
        None => scheme.port(),
        Some(port) => match port.parse() {
            // `parse` takes a sign.
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

/// Path and query as they go on the wire: no dots to go up (RFC 3986 §5.2.4), no fragment, ASCII only.
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
        push_ascii(part, &mut out);
    }
    if let Some(query) = query {
        out.push('?');
        push_ascii(query, &mut out);
    }
    out
}

fn push_ascii(text: &str, out: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii() {
            out.push(char::from(byte));
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
