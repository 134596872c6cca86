//! Figures with units: `55Mb/s`, `39ms`, `1.6MB`, `2%`. One grammar for all commands, files and flags; `docs/units.md` is its
//! reference.
//!
//! | what | written | refused |
//! |---|---|---|
//! | size | `1200`, `1200B`, `1.6MB` (decimal), `64KiB` (binary) | `64k`, `1Mb`: bits or bytes, 1000 or 1024? |
//! | rate | `55Mb/s`, `55Mbps`, `55mbit`: bits; `7MB/s`: bytes | `55`, `55M`, `55MBps` |
//! | span of time | `250us`, `39ms`, `1.5s`, `5min`, `24h`, `1d` | `39`, `5m` |
//! | share | `2%`, `0.02` | `1`, which is 100 % and looks like 1 % |
//! | count | `20000`, `20_000`, `2e4` | `20k` |
//! | seed | 0 to 2^53 - 1, which all readers of JSON keep | more |
//!
//! Zero needs no unit. An error says what is expected, and [`UnitError::text`] is the refused value.

use alloc::{borrow::ToOwned, format, string::String};
use core::{fmt, time::Duration};

use crate::Rate;

#[cfg(test)]
mod tests;

/// A figure that is not understood, or that could mean several things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    expected: String,
}

impl UnitError {
    fn new(text: &str, expected: impl Into<String>) -> Self {
        Self {
            text: text.to_owned(),
            expected: expected.into(),
        }
    }

    /// The refused value.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is expected in its place.
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl core::error::Error for UnitError {}

/// The number before the unit: a whole one exactly.
#[derive(Clone, Copy, Debug)]
enum Number {
    Whole(u64),
    Fraction(f64),
}

impl Number {
    fn value(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Fraction(fraction) => fraction,
        }
    }

    /// The number in units of `scale`, rounded; `None` above `max`.
    fn scaled(self, scale: u64, max: u64) -> Option<u64> {
        let scaled = match self {
            Self::Whole(whole) => whole.checked_mul(scale)?,
            Self::Fraction(fraction) => {
                let scaled = libm::round(fraction * scale as f64);
                if scaled > max as f64 {
                    return None;
                }
                scaled as u64
            }
        };
        (scaled <= max).then_some(scaled)
    }
}

/// The number, as it is written, and the unit.
fn split(text: &str) -> Option<(Number, &str, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let plain = digits.replace('_', "");
    let number = if plain.contains('.') {
        Number::Fraction(plain.parse().ok()?)
    } else {
        Number::Whole(plain.parse().ok()?)
    };
    Some((number, digits, unit.trim_start()))
}

/// A number whose unit is one of these, in any case; without a unit only zero.
fn with_unit(text: &str, units: &[(&str, u64)], max: u64) -> Option<u64> {
    let (number, _, unit) = split(text)?;
    if unit.is_empty() && number.value() == 0.0 {
        return Some(0);
    }
    let lower = unit.to_lowercase();
    let (_, scale) = units.iter().find(|(name, _)| *name == lower)?;
    number.scaled(*scale, max)
}

const SPANS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
/// A century.
const NANOS_MAX: u64 = 3_200_000_000_000_000_000;

/// A span of time: `39ms`, `1.5s`, `250us`, `5min`, `24h`. A number without a unit is refused, unless it is 0.
///
/// # Errors
///
/// Returns an error if the text is not a span of time, or longer than a century.
pub fn span(text: &str) -> Result<Duration, UnitError> {
    let nanos = with_unit(text, SPANS, NANOS_MAX).ok_or_else(|| {
        UnitError::new(
            text,
            match split(text) {
                Some((_, digits, "")) => {
                    format!("a span of time with its unit, such as `{digits}s` or `{digits}ms`")
                }
                Some((_, digits, "m" | "M")) => {
                    format!("a span of time with its unit: `{digits}min` or `{digits}ms`")
                }
                _ => "a span of time, such as `39ms`, `1.5s` or `5min`".to_owned(),
            },
        )
    })?;
    Ok(Duration::from_nanos(nanos))
}

/// Names of rates in bits, in any case. `mbps` is the same as `mbit`, as everywhere but in `tc`.
const BIT_RATES: &[(&str, u64)] = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("bit/s", 1),
    ("kbit/s", 1_000),
    ("mbit/s", 1_000_000),
    ("gbit/s", 1_000_000_000),
    ("bps", 1),
    ("kbps", 1_000),
    ("mbps", 1_000_000),
    ("gbps", 1_000_000_000),
    ("b/s", 1),
    ("kb/s", 1_000),
    ("mb/s", 1_000_000),
    ("gb/s", 1_000_000_000),
];
/// Names of rates in bytes: a capital B, and a prefix in any case.
const BYTE_RATES: &[(&str, u64)] = &[
    ("b/s", 8),
    ("kb/s", 8_000),
    ("mb/s", 8_000_000),
    ("gb/s", 8_000_000_000),
    ("kib/s", 8 * 1024),
    ("mib/s", 8 * 1_048_576),
    ("gib/s", 8 * 1_073_741_824),
];
const BITS_MAX: u64 = 1_000_000_000_000_000;

/// A rate: `55Mb/s`, `55Mbps` and `55mbit` are bits a second, `7MB/s` and `7MiB/s` bytes. Prefixes are decimal, but for
/// `Ki`, `Mi` and `Gi`. A number without a unit is refused.
///
/// # Errors
///
/// Returns an error if the text is not a rate, or if it is zero or above 1 Pb/s.
pub fn rate(text: &str) -> Result<Rate, UnitError> {
    let is_bytes = text.contains('B');
    let bits = if is_bytes && !text.to_ascii_lowercase().contains("bit") {
        with_unit(text, BYTE_RATES, BITS_MAX)
    } else {
        with_unit(text, BIT_RATES, BITS_MAX)
    };
    let bits = bits.filter(|bits| *bits > 0).ok_or_else(|| {
        UnitError::new(
            text,
            match split(text) {
                Some((_, digits, "")) => format!(
                    "a rate with its unit, such as `{digits}Mb/s` (or `{digits}mbit`), or `{digits}MB/s` for bytes"
                ),
                Some((_, digits, unit)) => match unit.chars().next().map(|c| c.to_ascii_uppercase()) {
                    Some(prefix @ ('K' | 'M' | 'G')) => {
                        let prefix = if prefix == 'K' { 'k' } else { prefix };
                        format!(
                            "a rate above zero: `{digits}{prefix}b/s` for bits, or `{digits}{prefix}B/s` for bytes"
                        )
                    }
                    _ => RATE.to_owned(),
                },
                None => RATE.to_owned(),
            },
        )
    })?;
    Ok(Rate::from_bits_per_second(bits))
}

const RATE: &str = "a rate above zero, such as `55Mb/s`, `800kbit` or `7MB/s`";

const BYTES: &[(&str, u64)] = &[
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1024),
    ("mib", 1_048_576),
    ("gib", 1_073_741_824),
    ("tib", 1_099_511_627_776),
];
const BYTES_MAX: u64 = 1_000_000_000_000_000_000;
const SIZE: &str = "a size, such as `1600000`, `1.6MB` or `64KiB`";

/// A size in bytes: `1600000`, `1200B`, `1.6MB` (decimal), `64KiB` (binary). Refused are `64k`, which is 64 000 to one
/// program and 65 536 to another, and `1Mb`, which is megabits.
///
/// # Errors
///
/// Returns an error if the text is not a size, or above 1 EB.
pub fn bytes(text: &str) -> Result<u64, UnitError> {
    let error = |expected: String| Err(UnitError::new(text, expected));
    let Some((number, digits, unit)) = split(text) else {
        return error(SIZE.to_owned());
    };
    match (number, unit) {
        (Number::Whole(bytes), "") if bytes <= BYTES_MAX => return Ok(bytes),
        (Number::Fraction(_), "") => {
            return error(format!(
                "a whole number of bytes, or a unit: `{digits}kB` or `{digits}MB`"
            ));
        }
        _ => {}
    }
    let mut letters = unit.chars();
    let prefix = letters.next().map(|c| c.to_ascii_uppercase());
    let prefix = prefix.filter(|c| matches!(c, 'K' | 'M' | 'G' | 'T'));
    if let Some(prefix) = prefix {
        let decimal = if prefix == 'K' { 'k' } else { prefix };
        match letters.as_str() {
            "" => {
                return error(format!(
                    "a size with its unit: `{digits}{decimal}B` (decimal) or `{digits}{prefix}iB` (binary)"
                ));
            }
            "b" | "bit" | "ib" => {
                return error(format!(
                    "a size in bytes: `{digits}{decimal}B` or `{digits}{prefix}iB`; a small b stands for bits"
                ));
            }
            _ => {}
        }
    }
    match with_unit(text, BYTES, BYTES_MAX) {
        Some(bytes) => Ok(bytes),
        None => error(SIZE.to_owned()),
    }
}

const SHARE: &str = "a share from 0% to 100%, such as `2%` or `0.02`";

/// A share: `2%`, or `0.02`. Above one half the sign is needed: `1` may be meant as 1 %, as in `tc` and mahimahi.
///
/// # Errors
///
/// Returns an error if the text is not a share from 0 to 1, or could be meant in percent.
pub fn probability(text: &str) -> Result<f64, UnitError> {
    let error = |expected: String| Err(UnitError::new(text, expected));
    let Some((number, digits, unit)) = split(text) else {
        return error(SHARE.to_owned());
    };
    match (number.value(), unit) {
        (share, "") if share <= 0.5 => Ok(share),
        (share, "") if share <= 1.0 => error(format!(
            "a percent sign: `{digits}%`, or `{}%` if {digits} is meant as a share of one",
            libm::round(share * 1e9) / 1e7
        )),
        (share, "") if share <= 100.0 => error(format!("a percent sign: `{digits}%`")),
        (percent, "%") if percent <= 100.0 => Ok(percent / 100.0),
        _ => error(SHARE.to_owned()),
    }
}

/// A count: `20000`, `20_000` or `2e4`.
///
/// # Errors
///
/// Returns an error if the text is not a whole number of zero or more.
pub fn count(text: &str) -> Result<u64, UnitError> {
    let error = || {
        UnitError::new(
            text,
            match split(text) {
                Some((Number::Whole(_), digits, "k" | "K")) => {
                    format!("a whole number: `{digits}000` or `{digits}e3`")
                }
                _ => "a whole number, such as `20000` or `2e4`".to_owned(),
            },
        )
    };
    let plain = text.trim().replace('_', "");
    let (digits, exponent) = match plain.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<u32>().map_err(|_| error())?),
        None => (plain.as_str(), 0),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits
        .parse()
        .ok()
        .filter(|_| is_number)
        .ok_or_else(error)?;
    let scale = 10u64.checked_pow(exponent).ok_or_else(error)?;
    number.checked_mul(scale).ok_or_else(error)
}

/// Seeds are below this: JavaScript, jq and others read JSON's numbers as floats, which are exact up to here.
pub const SEED_END: u64 = 1 << 53;

/// A random seed, below [`SEED_END`].
///
/// # Errors
///
/// Returns an error if the text is not a whole number from 0 to 2^53 - 1.
pub fn seed(text: &str) -> Result<u64, UnitError> {
    let seed = count(text).ok().filter(|seed| *seed < SEED_END);
    seed.ok_or_else(|| {
        UnitError::new(
            text,
            format!("a whole number from 0 to {} (2^53 - 1)", SEED_END - 1),
        )
    })
}

/// A value in the largest of these units that it reaches, rounded to a `precision`th of it; otherwise in `smallest`.
fn in_units(value: u64, units: [&str; 3], smallest: &str, precision: f64) -> String {
    for (unit, size) in units.into_iter().zip([1_000_000_000, 1_000_000, 1000]) {
        if value >= size {
            let rounded = libm::round(value as f64 / size as f64 * precision) / precision;
            return format!("{rounded}{unit}");
        }
    }
    format!("{value}{smallest}")
}

/// Bytes as [`bytes`] reads them: `1.6MB`, `200kB`, `1234B`.
pub fn show_bytes(bytes: u64) -> String {
    in_units(bytes, ["GB", "MB", "kB"], "B", 100.0)
}

/// A span as [`span`] reads it: in milliseconds (`39ms`, `0.25ms`, `1500ms`), or in seconds if it is a whole number of them,
/// at least 10 (`60s`).
pub fn show_span(span: Duration) -> String {
    if span.as_secs() >= 10 && span.subsec_nanos() == 0 {
        return format!("{}s", span.as_secs());
    }
    format!("{}ms", libm::round(span.as_secs_f64() * 1e6) / 1e3)
}

/// A rate as [`rate`] reads it: `55mbit`.
pub fn show_rate(rate: Rate) -> String {
    in_units(
        rate.bits_per_second(),
        ["gbit", "mbit", "kbit"],
        "bit",
        1000.0,
    )
}

/// A number with its sign and this many decimals, for people: `−0.50` with the minus sign of typography.
pub fn show_signed(number: f64, decimals: usize) -> String {
    format!("{number:+.decimals$}").replace('-', "−")
}

/// A share as [`probability`] reads it: `2%`.
pub fn show_share(share: f64) -> String {
    format!("{}%", libm::round(share * 1e8) / 1e6)
}
