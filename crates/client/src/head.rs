//! The head of a response, for all versions of HTTP.

use core::fmt;

use lastbyte_http3::Response;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0 (RFC 1945). Only in responses; requests are sent as HTTP/1.1.
    Http10,
    /// HTTP/1.1 (RFC 9112).
    Http11,
    /// HTTP/2 (RFC 9113).
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
}

impl Version {
    /// The version number in the format of curl's `%{http_version}`.
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
    /// The HTTP version of the response.
    pub version: Version,
    /// Status and fields. Field names are in lower case.
    pub response: &'a Response,
    /// The reason phrase of HTTP/1; otherwise empty.
    pub reason: &'a str,
}

impl Head<'_> {
    /// The status line of HTTP/1 (RFC 9112 §4), in the format that curl prints for all versions.
    pub fn status_line(&self) -> String {
        let (version, status) = (self.version, self.response.status());
        format!("{version} {status} {}", self.reason)
    }

    /// The value of a list field: the values of all its lines, separated by commas (RFC 9110 §5.3). Octets that are not UTF-8
    /// are replaced.
    pub fn list(&self, name: &str) -> Option<String> {
        let lines = self.response.fields().iter();
        let lines = lines.filter(|line| line.name == name);
        let values: Vec<_> = lines
            .map(|line| String::from_utf8_lossy(line.value))
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    /// The value of a field that has one line, if it is valid UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        core::str::from_utf8(self.response.fields().get(name)?).ok()
    }
}
