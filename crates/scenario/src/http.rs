//! Versions of HTTP and of TLS, and which hosts have them.

use core::{fmt, str::FromStr};

use crate::setting::SettingError;

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpVersion {
    /// HTTP/1.1 (RFC 9112) with TLS: up to six connections to a host.
    Http1,
    /// HTTP/2 (RFC 9113): one connection to a group of hosts.
    Http2,
    /// HTTP/3 (RFC 9114): one connection to a group of hosts.
    Http3,
}

impl HttpVersion {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Http1, Self::Http2, Self::Http3];

    /// Its name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "1.1",
            Self::Http2 => "2",
            Self::Http3 => "3",
        }
    }

    /// The version that a text means by one of the names that are used elsewhere, such as `h2` and `HTTP/2`.
    pub fn by_any_name(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let number = ["http/", "http", "h"]
            .iter()
            .find_map(|start| text.strip_prefix(start))
            .unwrap_or(&text);
        Self::ALL.into_iter().find(|one| one.name() == number)
    }
}

impl fmt::Display for HttpVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP/{}", self.name())
    }
}

impl FromStr for HttpVersion {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        SettingError::named(&Self::ALL, Self::name, "HTTP version", text)
    }
}

/// Which hosts have more than HTTP/1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upgrade {
    /// All hosts.
    #[default]
    All,
    /// Hosts of the page's own site.
    FirstParty,
}

impl Upgrade {
    /// Its name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::FirstParty => "first-party",
        }
    }
}

impl FromStr for Upgrade {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        SettingError::named(&[Self::All, Self::FirstParty], Self::name, "hosts", text)
    }
}

/// TLS of connections over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    /// TLS 1.3 (RFC 8446).
    #[default]
    V13,
    /// TLS 1.2 (RFC 5246): a full handshake takes a round trip more.
    V12,
    /// No TLS.
    None,
}

impl FromStr for TlsVersion {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        match text {
            "1.3" => Ok(Self::V13),
            "1.2" => Ok(Self::V12),
            "none" => Ok(Self::None),
            _ => Err(SettingError::of_value(
                format!("unknown version of TLS `{text}`"),
                "`1.3`, `1.2` or `none`",
            )),
        }
    }
}
