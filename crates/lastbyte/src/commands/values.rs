//! Parsers of option values that all commands share. Errors name the expected form. The grammar is that of
//! [`lastbyte_units`].

use core::{num::NonZeroUsize, ops::RangeInclusive};
use std::net::{Ipv4Addr, SocketAddr};

use clap::ValueEnum;
use lastbyte_driver::AeadChoice;
use lastbyte_quic::crypto::AeadProvider;
use lastbyte_units as units;

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

/// Parses an address, or a port of 127.0.0.1.
pub(crate) fn loopback_by_default(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => text
            .parse()
            .map_err(|_| "expected ADDR:PORT, such as 127.0.0.1:9100, or a port".into()),
    }
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
