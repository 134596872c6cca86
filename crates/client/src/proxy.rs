//! HTTP proxies (RFC 9110 §3.7) and the choice of a proxy for an origin, by the same rules as curl. Does not read
//! environment variables.

use core::fmt;
use std::net::IpAddr;

use crate::url::{Origin, Scheme, Url};

/// The default port of a proxy; the same as curl.
const PORT: u16 = 1080;

/// A proxy, which is reached by HTTP/1.1 without TLS.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// The host name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// `user:password` for Basic authentication (RFC 7617).
    pub credentials: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl core::str::FromStr for Proxy {
    type Err = String;

    /// Parses `[http://][user:password@]host[:port]`.
    fn from_str(text: &str) -> Result<Self, String> {
        let rest = match text.split_once("://") {
            None => text,
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some((scheme, _)) => {
                return Err(format!(
                    "unsupported proxy scheme `{scheme}` (expected `http`)"
                ));
            }
        };
        let authority = rest.split('/').next().unwrap_or_default();
        let has_port = authority
            .rsplit(['@', ']'])
            .next()
            .is_some_and(|rest| rest.contains(':'));
        let url: Url = format!("http://{authority}")
            .parse()
            .map_err(|error| format!("invalid proxy `{text}`: {error}"))?;
        let origin = url.origin();
        Ok(Self {
            host: origin.host.clone(),
            port: if has_port { origin.port } else { PORT },
            credentials: url.credentials().map(str::to_owned),
        })
    }
}

/// The proxies for each scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// The proxy for `http://` URLs.
    pub http: Option<Proxy>,
    /// The proxy for `https://` URLs, used through a CONNECT tunnel (RFC 9110 §9.3.6).
    pub https: Option<Proxy>,
    /// Hosts that are reached directly.
    pub except: Exceptions,
    /// Whether a tunnel is also used for `http://` URLs. Default: no.
    pub tunnels_all: bool,
}

impl Proxies {
    /// The proxy for an origin; `None` if it is reached directly.
    #[must_use]
    pub fn of(&self, origin: &Origin) -> Option<&Proxy> {
        let proxy = match origin.scheme {
            Scheme::Http => &self.http,
            Scheme::Https => &self.https,
        };
        proxy.as_ref().filter(|_| !self.except.has(&origin.host))
    }

    /// Whether an origin is reached through a CONNECT tunnel.
    pub(crate) fn tunnels(&self, origin: &Origin) -> bool {
        self.tunnels_all || origin.scheme == Scheme::Https
    }
}

/// Hosts that are reached without a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions(Vec<Exception>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    All,
    /// A domain and its subdomains.
    Domain(String),
    /// A network: an address and the length of its prefix in bits.
    Network(IpAddr, u32),
}

impl Exceptions {
    /// Parses names, domains, addresses and networks (`192.0.2.0/24`), separated by commas or blanks. `*` matches all
    /// hosts. Invalid entries match no host.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let words = text.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        Self(words.map(exception).collect())
    }

    fn has(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        let address = host.parse::<IpAddr>().ok();
        self.0.iter().any(|it| match (it, address) {
            (Exception::All, _) => true,
            (Exception::Network(network, bits), Some(address)) => {
                is_within(address, *network, *bits)
            }
            (Exception::Domain(domain), None) => {
                let before = host.strip_suffix(domain.as_str());
                before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
            }
            _ => false,
        })
    }
}

fn exception(word: &str) -> Exception {
    if word == "*" {
        return Exception::All;
    }
    let (address, bits) = match word.split_once('/') {
        Some((address, bits)) => (address, bits.parse().ok()),
        None => (word, Some(u32::MAX)),
    };
    let address = address.trim_matches(['[', ']']).parse::<IpAddr>();
    if let (Ok(address), Some(bits)) = (address, bits) {
        return Exception::Network(address, bits);
    }
    let domain = word.strip_prefix('.').unwrap_or(word).trim_end_matches('.');
    Exception::Domain(domain.to_ascii_lowercase())
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.leading_zeros() >= bits.min(32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let differing = address.to_bits() ^ network.to_bits();
            differing.leading_zeros() >= bits.min(128)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(text: &str) -> Result<(String, u16, Option<String>), String> {
        let proxy: Proxy = text.parse()?;
        Ok((proxy.host, proxy.port, proxy.credentials))
    }

    #[test]
    fn proxies_are_parsed_as_by_curl() {
        let of = |host: &str, port, credentials: Option<&str>| {
            Ok((host.to_owned(), port, credentials.map(str::to_owned)))
        };
        assert_eq!(proxy("a.example"), of("a.example", 1080, None));
        assert_eq!(proxy("HTTP://A.example:80/"), of("a.example", 80, None));
        assert_eq!(
            proxy("http://u:p%40@[::1]:3128"),
            of("::1", 3128, Some("u:p@"))
        );
        assert_eq!(proxy("u:p@a.example"), of("a.example", 1080, Some("u:p")));
        for invalid in [
            "socks5://a.example",
            "https://a.example",
            "http://",
            "a:b:c",
        ] {
            assert!(proxy(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn exceptions_are_domains_addresses_and_networks() {
        let some = Exceptions::parse(
            "a.example, .B.example. 127.0.0.1,10.0.0.0/8 [2001:db8::]/32,10.0.0.0/x",
        );
        for (host, expected) in [
            ("a.example", true),
            ("x.a.example", true),
            ("xa.example", false),
            ("b.example", true),
            ("example", false),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("10.255.0.1", true),
            ("11.0.0.1", false),
            ("2001:db8:1::1", true),
            ("2001:db9::1", false),
        ] {
            assert_eq!(some.has(host), expected, "{host}");
        }
        assert!(Exceptions::parse("*").has("anything"));
        assert!(!Exceptions::default().has("anything"));
    }

    #[test]
    fn each_scheme_has_its_own_proxy() {
        let all = Proxies {
            http: Some("first.example:1".parse().expect("a proxy")),
            https: Some("second.example:2".parse().expect("a proxy")),
            except: Exceptions::parse("here.example"),
            tunnels_all: false,
        };
        let of = |url: &str| {
            let url: Url = url.parse().expect(url);
            all.of(url.origin()).map(|proxy| proxy.port)
        };
        assert_eq!(of("http://a.example/"), Some(1));
        assert_eq!(of("https://a.example/"), Some(2));
        assert_eq!(of("https://www.here.example/"), None);
    }
}
