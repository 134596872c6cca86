//! An HTTPS record in `ServiceMode` (RFC 9460 §2.4.3, §7): where and how an origin is served.

use std::net::IpAddr;

/// Keys of parameters (RFC 9460 §14.3.2) that are understood.
const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const IPV6_HINT: u16 = 6;

/// What is spoken where nothing else is said (RFC 9460 §9).
const DEFAULT_ALPN: &str = "http/1.1";

/// Where and how an origin is served, as its HTTPS record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The lower, the sooner it is tried.
    pub priority: u16,
    /// The host; `None` for the origin's own.
    pub target: Option<String>,
    /// The port, if it is not the origin's.
    pub port: Option<u16>,
    /// What is spoken there, as TLS names it.
    pub alpn: Vec<String>,
    /// Where the host may be, until it is known.
    pub hints: Vec<IpAddr>,
}

impl Service {
    /// On this host, and else as if there was no record.
    pub(super) fn at(target: String) -> Self {
        Self {
            priority: 1,
            target: Some(target),
            alpn: vec![DEFAULT_ALPN.to_owned(), "h2".to_owned(), "h3".to_owned()],
            ..Self::default()
        }
    }

    /// Whether HTTP/3 is spoken there.
    #[must_use]
    pub fn has_quic(&self) -> bool {
        self.alpn.iter().any(|name| name == "h3")
    }

    /// Whether HTTP/2 or 1.1 is spoken there.
    #[must_use]
    pub fn has_tcp(&self) -> bool {
        self.alpn
            .iter()
            .any(|name| name == "h2" || name == DEFAULT_ALPN)
    }

    /// From the parameters of a record, with their keys. `None` if it cannot be used, as something that is not known here
    /// would have to be (RFC 9460 §8).
    ///
    /// # Errors
    ///
    /// It is no such record; then none beside it is to be believed, either (RFC 9460 §2.2).
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
                MANDATORY => mandatory = pairs(value).ok_or("`mandatory` is no list of keys")?,
                ALPN => this.alpn = names(value).ok_or("`alpn` is no list of names")?,
                PORT => match pairs(value).as_deref() {
                    Some([port]) if *port > 0 => this.port = Some(*port),
                    _ => return Err("`port` is no port"),
                },
                IPV4_HINT => {
                    let (addresses, rest) = value.as_chunks::<4>();
                    if addresses.is_empty() || !rest.is_empty() {
                        return Err("`ipv4hint` is no list of addresses");
                    }
                    let addresses = addresses.iter().map(|it| IpAddr::from(*it));
                    this.hints.extend(addresses);
                }
                IPV6_HINT => {
                    let (addresses, rest) = value.as_chunks::<16>();
                    if addresses.is_empty() || !rest.is_empty() {
                        return Err("`ipv6hint` is no list of addresses");
                    }
                    let addresses = addresses.iter().map(|it| IpAddr::from(*it));
                    this.hints.extend(addresses);
                }
                NO_DEFAULT_ALPN if !value.is_empty() => {
                    return Err("`no-default-alpn` has a value");
                }
                _ => {}
            }
        }
        let is_rising = |keys: &[u16]| keys.is_sorted_by(|one, next| one < next);
        if !is_rising(&keys) || !is_rising(&mandatory) {
            return Err("keys are not in their order");
        }
        if mandatory
            .iter()
            .any(|key| *key == MANDATORY || !keys.contains(key))
        {
            return Err("what is mandatory is missing");
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
        let is_of_use = is_known && (this.has_quic() || this.has_tcp());
        Ok(is_of_use.then_some(this))
    }
}

/// Numbers of two bytes; at least one.
fn pairs(value: &[u8]) -> Option<Vec<u16>> {
    let (pairs, rest) = value.as_chunks::<2>();
    let numbers = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
    (!pairs.is_empty() && rest.is_empty()).then(|| numbers.collect())
}

/// Names, each behind its length; at least one. Those that are not text are names of nothing that is spoken here.
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
