//! An HTTPS record in `ServiceMode` (RFC 9460 §2.4.3, §7): an endpoint of an origin and its protocols.

use std::net::IpAddr;

/// The supported parameter keys (RFC 9460 §14.3.2).
const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const IPV6_HINT: u16 = 6;

/// The default protocol (RFC 9460 §9).
const DEFAULT_ALPN: &str = "http/1.1";

/// An endpoint of an origin and its protocols, from an HTTPS record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The priority. Lower values are tried first.
    pub priority: u16,
    /// The host; `None` for the origin's own.
    pub target: Option<String>,
    /// The port; `None` for the origin's own.
    pub port: Option<u16>,
    /// The supported protocols, as ALPN names.
    pub alpn: Vec<String>,
    /// Address hints, which are used until the host is resolved.
    pub hints: Vec<IpAddr>,
}

impl Service {
    /// A service on this host, otherwise as if there were no record.
    pub(super) fn at(target: String) -> Self {
        Self {
            priority: 1,
            target: Some(target),
            alpn: vec![DEFAULT_ALPN.to_owned(), "h2".to_owned(), "h3".to_owned()],
            ..Self::default()
        }
    }

    /// Whether HTTP/3 is supported.
    pub fn has_quic(&self) -> bool {
        self.alpn.iter().any(|name| name == "h3")
    }

    /// Whether HTTP/2 or HTTP/1.1 is supported.
    pub fn has_tcp(&self) -> bool {
        self.alpn
            .iter()
            .any(|name| name == "h2" || name == DEFAULT_ALPN)
    }

    /// Parses a record from its parameters and their keys. `None` if the record requires an unsupported parameter
    /// (RFC 9460 §8), or supports no protocol of this client.
    ///
    /// # Errors
    ///
    /// Returns a message if the record is malformed. Then the whole record set must be rejected (RFC 9460 §2.2).
    pub(super) fn parse<'a>(
        priority: u16,
        target: Option<String>,
        parameters: impl IntoIterator<Item = (u16, &'a [u8])>,
    ) -> Result<Option<Self>, &'static str> {
        let mut this = Self {
            priority,
            target,
            ..Self::default()
        };
        let mut keys = Vec::new();
        let mut mandatory = Vec::new();
        for (key, value) in parameters {
            keys.push(key);
            match key {
                MANDATORY => {
                    mandatory =
                        pairs(value).ok_or("invalid `mandatory` (expected a list of keys)")?;
                }
                ALPN => {
                    this.alpn = names(value).ok_or("invalid `alpn` (expected a list of names)")?;
                }
                PORT => match pairs(value).as_deref() {
                    Some([port]) if *port > 0 => this.port = Some(*port),
                    _ => return Err("invalid `port` (expected 1 to 65535)"),
                },
                IPV4_HINT => {
                    let (addresses, rest) = value.as_chunks::<4>();
                    if addresses.is_empty() || !rest.is_empty() {
                        return Err("invalid `ipv4hint` (expected a list of addresses)");
                    }
                    let addresses = addresses.iter().map(|it| IpAddr::from(*it));
                    this.hints.extend(addresses);
                }
                IPV6_HINT => {
                    let (addresses, rest) = value.as_chunks::<16>();
                    if addresses.is_empty() || !rest.is_empty() {
                        return Err("invalid `ipv6hint` (expected a list of addresses)");
                    }
                    let addresses = addresses.iter().map(|it| IpAddr::from(*it));
                    this.hints.extend(addresses);
                }
                NO_DEFAULT_ALPN if !value.is_empty() => {
                    return Err("invalid `no-default-alpn` (expected no value)");
                }
                _ => {}
            }
        }
        let is_ascending = |keys: &[u16]| keys.is_sorted_by(|one, next| one < next);
        if !is_ascending(&keys) || !is_ascending(&mandatory) {
            return Err("parameter keys are not in ascending order");
        }
        if mandatory
            .iter()
            .any(|key| *key == MANDATORY || !keys.contains(key))
        {
            return Err("a mandatory parameter is missing");
        }
        let has_default = !keys.contains(&NO_DEFAULT_ALPN);
        if !has_default && !keys.contains(&ALPN) {
            return Err("`no-default-alpn` without `alpn`");
        }
        if has_default && !this.alpn.iter().any(|name| name == DEFAULT_ALPN) {
            this.alpn.push(DEFAULT_ALPN.to_owned());
        }
        let known = [ALPN, NO_DEFAULT_ALPN, PORT, IPV4_HINT, IPV6_HINT];
        let is_known = mandatory.iter().all(|key| known.contains(key));
        let is_usable = is_known && (this.has_quic() || this.has_tcp());
        Ok(is_usable.then_some(this))
    }
}

/// Parses a list of 16-bit numbers, at least one.
fn pairs(value: &[u8]) -> Option<Vec<u16>> {
    let (pairs, rest) = value.as_chunks::<2>();
    let numbers = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    (!pairs.is_empty() && rest.is_empty()).then(|| numbers.collect())
}

/// Parses a list of length-prefixed names, at least one. Names that are not UTF-8 cannot match any supported protocol.
fn names(mut value: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    while let [len, rest @ ..] = value {
        let (name, rest) = rest.split_at_checked(usize::from(*len))?;
        if name.is_empty() {
            return None;
        }
        names.push(String::from_utf8_lossy(name).into_owned());
        value = rest;
    }
    (!names.is_empty()).then_some(names)
}
