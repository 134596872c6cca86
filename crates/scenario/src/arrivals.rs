//! Open-loop arrivals: transfers that start at random times, however long those before take.

use core::time::Duration;

use lastbyte_units::{self as units, Rate};

use crate::setting::SettingError;

#[cfg(test)]
mod tests;

/// Arrivals of a Poisson process, with sizes of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrivals {
    /// The offered load: bytes of transfers in relation to what the bottleneck passes, above 0 and at most 1. Headers and
    /// retransmissions come on top.
    pub load: f64,
    /// The sizes of the transfers.
    pub sizes: Sizes,
}

/// Sizes of transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All of this many bytes.
    Fixed(u64),
    /// Those of queries and updates of a web search engine, up to 30 MB (Alizadeh et al., "Data Center TCP", SIGCOMM 2010, as
    /// simulators of the field use it): most transfers are small, and most bytes are of large ones.
    Web,
}

/// The cumulative distribution of [`Sizes::Web`]: bytes, and the share of transfers of at most that size. Sizes between are
/// equally likely.
const WEB: [(f64, f64); 12] = [
    (1.0, 0.0),
    (10e3, 0.15),
    (20e3, 0.2),
    (30e3, 0.3),
    (50e3, 0.4),
    (80e3, 0.53),
    (200e3, 0.6),
    (1e6, 0.7),
    (2e6, 0.8),
    (5e6, 0.9),
    (10e6, 0.97),
    (30e6, 1.0),
];

impl Sizes {
    /// The mean, in bytes.
    pub fn mean(self) -> f64 {
        match self {
            Self::Fixed(bytes) => bytes as f64,
            Self::Web => WEB
                .windows(2)
                .map(|step| f64::midpoint(step[0].0, step[1].0) * (step[1].1 - step[0].1))
                .sum(),
        }
    }

    /// The size that this share of transfers does not exceed, 0 to 1.
    pub fn at(self, share: f64) -> u64 {
        if let Self::Fixed(bytes) = self {
            return bytes;
        }
        let step = WEB.windows(2).find(|step| share <= step[1].1);
        let size = step.map_or(30e6, |step| {
            let [(from, low), (to, high)] = [step[0], step[1]];
            from + (to - from) * ((share - low) / (high - low)).clamp(0.0, 1.0)
        });
        size.max(1.0) as u64
    }
}

impl Arrivals {
    /// Parses `LOAD of SIZES`: `60% of web`, `30% of 100kB`, with the words split already.
    pub(crate) fn parse<'a>(
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<Self, SettingError> {
        const EXPECTED: &str = "`LOAD of SIZES`, such as `60% of web`";
        let load = words
            .next()
            .ok_or_else(|| SettingError::of_value("arrivals without a load", EXPECTED))?;
        let share = units::probability(load)?;
        if share <= 0.0 {
            return Err(SettingError::of_value("a load of 0", "a share above 0"));
        }
        if words.next() != Some("of") {
            return Err(SettingError::of_value("arrivals without sizes", EXPECTED));
        }
        let sizes = match words.next() {
            Some("web") => Sizes::Web,
            Some(size) => match units::bytes(size)? {
                0 => return Err(SettingError::of_value("a size of 0", "1B or more")),
                size => Sizes::Fixed(size),
            },
            None => return Err(SettingError::of_value("arrivals without sizes", EXPECTED)),
        };
        Ok(Self { load: share, sizes })
    }

    /// Parses `LOAD of SIZES for SPAN`: `60% of web for 120s`. The span is 60 s if it is absent.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] for the first part that is invalid.
    pub fn for_span(text: &str) -> Result<(Self, Duration), SettingError> {
        let mut words = text.split_whitespace();
        let arrivals = Self::parse(&mut words)?;
        let rest: Vec<&str> = words.collect();
        let span = match rest[..] {
            [] => Duration::from_secs(60),
            ["for", span] => units::span(span)?,
            _ => Duration::ZERO,
        };
        if span.is_zero() {
            return Err(SettingError::of_value(
                format!("`{}` behind the sizes", rest.join(" ")),
                "`for SPAN`, such as `for 120s`",
            ));
        }
        Ok((arrivals, span))
    }

    /// The mean time between two arrivals on a bottleneck of this rate.
    pub fn interval(&self, rate: Rate) -> Duration {
        let bits = self.sizes.mean() * 8.0;
        let seconds = bits / (self.load * rate.bits_per_second() as f64);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}
