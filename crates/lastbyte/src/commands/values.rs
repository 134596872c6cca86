//! Parsers of option values that all commands share. Errors name the expected form. The grammar is that of
//! [`lastbyte_units`].

use core::{num::NonZeroUsize, ops::RangeInclusive, time::Duration};
use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use clap::{
    ValueEnum,
    builder::{PathBufValueParser, TypedValueParser},
};
use lastbyte_driver::AeadChoice;
use lastbyte_quic::crypto::AeadProvider;
use lastbyte_units as units;

use crate::failure::Failure;

#[cfg(test)]
mod tests;

/// A value of `--aead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Aead {
    /// The faster one, measured at startup
    Auto,
    /// aws-lc
    AwsLc,
    /// ring
    Ring,
}

impl Aead {
    pub(crate) fn choose(self) -> AeadChoice {
        match self {
            Self::Auto => AeadChoice::measure(),
            Self::AwsLc => AeadChoice::pinned(AeadProvider::AwsLc),
            Self::Ring => AeadChoice::pinned(AeadProvider::Ring),
        }
    }
}

/// Whether packets to one address arrive at a socket that is bound to the other: they would be forwarded for ever.
pub(crate) fn reaches(to: SocketAddr, bound: SocketAddr) -> bool {
    let (ip, own) = (to.ip().to_canonical(), bound.ip().to_canonical());
    let is_here = ip == own || own.is_unspecified() && (ip.is_loopback() || ip.is_unspecified());
    to.port() == bound.port() && is_here
}

/// Returns an error if two of these listeners, each the name and value of an option, cannot be bound at the same time: they have the same
/// port, and the same address or one that stands for all addresses.
pub(crate) fn check_listeners(listeners: &[(&str, Option<SocketAddr>)]) -> Result<(), Failure> {
    let given = listeners
        .iter()
        .filter_map(|(option, address)| Some((option, (*address)?)));
    let given: Vec<_> = given.filter(|(_, address)| address.port() > 0).collect();
    for (at, (option, address)) in given.iter().enumerate() {
        let is_same = |(_, other): &&(&&str, SocketAddr)| {
            let (one, two) = (address.ip().to_canonical(), other.ip().to_canonical());
            // `[::]` stands for IPv4 as well.
            let has =
                |any: IpAddr, one: IpAddr| any.is_unspecified() && (any.is_ipv6() || one.is_ipv4());
            address.port() == other.port() && (one == two || has(one, two) || has(two, one))
        };
        if let Some((earlier, other)) = given[..at].iter().find(is_same) {
            return Err(Failure::Usage(format!(
                "{option} `{address}`: {earlier} has `{other}` (expected another port)"
            )));
        }
    }
    Ok(())
}

/// Parses a time limit: a span of at least 100 µs, since a limit that has passed at once ends everything.
pub(crate) fn time_limit(text: &str) -> Result<Duration, String> {
    let span = units::span(text).map_err(|error| error.to_string())?;
    if span < Duration::from_micros(100) {
        return Err("expected at least 100us".into());
    }
    Ok(span)
}

/// Parses the time between requests that are sent for ever: a span of at least 1 s.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let span = units::span(text).map_err(|error| error.to_string())?;
    if span < Duration::from_secs(1) {
        return Err("expected at least 1s".into());
    }
    Ok(span)
}

/// Parses an address, or a port of 127.0.0.1.
pub(crate) fn loopback_by_default(text: &str) -> Result<SocketAddr, String> {
    address(text, Ipv4Addr::LOCALHOST.into())
        .ok_or_else(|| "expected ADDR:PORT, such as 127.0.0.1:9100, or a port".into())
}

/// Parses an address, or a port of all addresses.
pub(crate) fn any_by_default(text: &str) -> Result<SocketAddr, String> {
    address(text, Ipv6Addr::UNSPECIFIED.into())
        .ok_or_else(|| "expected ADDR:PORT, such as 127.0.0.1:4433 or [::]:4433, or a port".into())
}

fn address(text: &str, default: IpAddr) -> Option<SocketAddr> {
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Some((default, port).into()),
        Err(_) => text.parse().ok(),
    }
}

/// Checks a host name of which an authority can issue a certificate: letters, digits and hyphens in two labels or more
/// (RFC 5890 §2.3.1).
pub(crate) fn host_name(text: &str) -> Result<String, String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let is_address = text.parse::<IpAddr>().is_ok();
    let is_name = text.len() <= 253 && text.contains('.') && text.split('.').all(is_label);
    if is_name && !is_address {
        return Ok(text.to_ascii_lowercase());
    }
    Err("expected a host name, such as www.example.com, without a wildcard".to_owned())
}

/// Checks that a URL begins with `https://` and has a host.
pub(crate) fn https_url(text: &str) -> Result<String, String> {
    let url = text.parse::<lastbyte_client::Url>();
    match url {
        Ok(_) if text.starts_with("https://") => Ok(text.to_owned()),
        _ => Err("expected an https URL".to_owned()),
    }
}

/// Takes the name of a log, which is not `-`.
pub(crate) fn log() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(not_a_dash)
}

fn not_a_dash(path: PathBuf) -> Result<PathBuf, &'static str> {
    if path.as_os_str() == "-" {
        return Err("expected a file, such as /dev/stdout");
    }
    Ok(path)
}

/// Parses a size in bytes within these bounds.
pub(crate) fn size<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let bytes = units::bytes(text).map_err(|error| error.to_string())?;
        let inside = Some(bytes).filter(|bytes| range.contains(bytes));
        inside
            .and_then(|bytes| T::try_from(bytes).ok())
            .ok_or_else(|| format!("expected {} to {} bytes", range.start(), range.end()))
    }
}

/// Parses a count within these bounds.
pub(crate) fn count<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = units::count(text).ok();
        let inside = number.filter(|number| range.contains(number));
        inside
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| {
                format!(
                    "expected a whole number from {} to {}",
                    range.start(),
                    range.end()
                )
            })
    }
}

/// Parses a span of time above 0.
pub(crate) fn positive_span(text: &str) -> Result<Duration, String> {
    match units::span(text) {
        Ok(span) if span.is_zero() => Err("expected a time above 0, such as 10s".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// Parses a share above 0, at most 1.
pub(crate) fn change(text: &str) -> Result<f64, String> {
    let share = units::probability(text).map_err(|error| error.to_string())?;
    if share > 0.0 {
        Ok(share)
    } else {
        Err("expected a share above 0%".to_owned())
    }
}

/// Parses a count from one to `max`.
pub(crate) fn positive(max: u64) -> impl Fn(&str) -> Result<NonZeroUsize, String> + Clone {
    move |text| {
        let number = count::<usize>(1..=max)(text)?;
        NonZeroUsize::new(number).ok_or_else(|| "expected 1 or more".to_owned())
    }
}

/// Maximum number of threads.
pub(crate) const THREADS_MAX: u64 = 4096;
