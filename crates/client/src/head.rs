//! The head of a response, whatever version of HTTP it came by.

use core::fmt;

use lastbyte_http3::Response;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0 (RFC 1945): only what servers answer with.
    Http10,
    /// HTTP/1.1 (RFC 9112).
    Http11,
    /// HTTP/2 (RFC 9113).
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
}

impl Version {
    /// Its number, as curl's `%{http_version}` has it.
    #[must_use]
    pub const fn number(self) -> &'static str {
        match self {
            Self::Http10 => "1.0",
            Self::Http11 => "1.1",
            Self::Http2 => "2",
            Self::Http3 => "3",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/{}", self.number())
    }
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The version that it came by.
    pub version: Version,
    /// Status and fields; names are in lower case.
    pub response: &'a Response,
    /// What HTTP/1 says beside the status; else empty.
    pub reason: &'a str,
}

impl Head<'_> {
    /// The first line, as HTTP/1 writes it and curl shows it for all versions (RFC 9112 §4).
    #[must_use]
    pub fn status_line(&self) -> String {
        let (version, status) = (self.version, self.response.status());
        format!("{version} {status} {}", self.reason)
    }

    /// The value of a field, if it is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        core::str::from_utf8(self.response.fields().get(name)?).ok()
    }
}
