//! Addresses of resources (RFC 3986, RFC 9110 §4.2.2), as far as they are fetched: `https`, a host, a path.
//!
//! Never: resolves a name, or guesses what a broken address could mean.

use core::fmt::{self, Write as _};

#[cfg(test)]
mod tests;

/// Whom requests go to: all that decides whether they can share a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// A name in lower case, or an IP address, without brackets.
    pub host: String,
    /// The port; 443 where none is given.
    pub port: u16,
}

impl Origin {
    /// As `:authority` has it (RFC 9114 §4.3.1): without the port where that is the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == PORT {
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
}

const PORT: u16 = 443;

/// Why a text is no address of something that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlError {
    /// A scheme that is not `https`.
    Scheme(String),
    /// There is no host, or it has a character that no host has.
    Host(String),
    /// The port is no number from 1 to 65535.
    Port(String),
    /// A name and password before the host.
    UserInformation,
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
            Self::UserInformation => {
                f.write_str("a name or password before the host; send an `authorization` field")
            }
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
        let forbidden = |c: &char| c.is_ascii_control() || *c == ' ';
        if let Some(character) = text.chars().find(forbidden) {
            return Err(UrlError::Character(character));
        }
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
            Some((scheme, _)) => return Err(UrlError::Scheme(scheme.to_owned())),
            None => text,
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(UrlError::UserInformation);
        }
        Ok(Self {
            origin: origin(authority)?,
            path: path_of(path),
        })
    }
}

fn origin(authority: &str) -> Result<Origin, UrlError> {
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
        None => PORT,
        Some(port) => match port.parse() {
            // `parse` takes a sign.
            Ok(number) if number > 0 && !port.starts_with('+') => number,
            _ => return Err(UrlError::Port(port.to_owned())),
        },
    };
    Ok(Origin {
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
        write!(f, "https://{}{}", self.origin, self.path)
    }
}
