//! Distributions of quantities as text.
//!
//! | text | distribution |
//! |---|---|
//! | `40mbit` | a constant |
//! | `40mbit p10 14mbit p90 100mbit` | a log-normal distribution split at its median, with a separate width on each side |
//! | `0.1% sigma 1.5`, `0.1% sigma 1.5 cap 3%` | a log-normal distribution with this median; values above the cap are set to the cap |
//! | `uniform 1ms 5ms` | a uniform distribution |
//! | `log-uniform 32kB 4MB` | a distribution with a uniform logarithm |
//! | `15% of 1mbit \| 85% of uniform 2mbit 5mbit` | a mixture of these |

use lastbyte_units as units;

use super::random::Stream;
use crate::setting::SettingError;

#[cfg(test)]
mod tests;

/// What a distribution is of, which determines its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// `40mbit`: bits a second.
    Rate,
    /// `39ms`: nanoseconds.
    Span,
    /// `64kB`: bytes.
    Bytes,
    /// `2%` or `0.02`.
    Share,
    /// `1.5`.
    Number,
}

impl Quantity {
    /// Parses a value, in the unit of this quantity.
    fn parse(self, text: &str) -> Result<f64, SettingError> {
        match self {
            Self::Rate => units::rate(text)
                .map(|rate| rate.bits_per_second() as f64)
                .map_err(SettingError::from),
            Self::Span => units::span(text)
                .map(|span| span.as_nanos() as f64)
                .map_err(SettingError::from),
            Self::Bytes => units::bytes(text)
                .map(|bytes| bytes as f64)
                .map_err(SettingError::from),
            Self::Share => units::probability(text).map_err(SettingError::from),
            Self::Number => number(text),
        }
    }
}

fn number(text: &str) -> Result<f64, SettingError> {
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| SettingError::of_value(format!("`{text}`"), "a number of zero or more"))
}

/// A distribution of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// A constant.
    Constant(f64),
    /// Log-normal on either side of the median: `median × exp(s × z)`, where s is `ln(median / p10) / 1.2816` for z below
    /// zero and `ln(p90 / median) / 1.2816` above.
    Split {
        /// The median.
        median: f64,
        /// The 10th percentile.
        p10: f64,
        /// The 90th percentile.
        p90: f64,
    },
    /// Log-normal.
    LogNormal {
        /// The median.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
        /// The maximum; values above are set to it.
        cap: f64,
    },
    /// Uniform.
    Uniform {
        /// The minimum.
        from: f64,
        /// The maximum.
        to: f64,
    },
    /// Log-uniform.
    LogUniform {
        /// The minimum.
        from: f64,
        /// The maximum.
        to: f64,
    },
    /// A mixture, with weights whose sum is one.
    Mixture(Vec<(f64, Distribution)>),
}

/// The 90th percentile of the normal distribution.
const Z90: f64 = 1.281_551_565_5;

impl Distribution {
    /// Reads a distribution.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] with the text if it is not one of the forms above.
    pub fn parse(text: &str, quantity: Quantity) -> Result<Self, SettingError> {
        if text.contains('|') || text.contains(" of ") {
            return Self::mixture(text, quantity);
        }
        let figure = |word: &str| quantity.parse(word);
        let words: Vec<&str> = text.split_whitespace().collect();
        let distribution = match words[..] {
            [value] => return figure(value).map(Self::Constant),
            [median, "p10", p10, "p90", p90] => Self::Split {
                median: figure(median)?,
                p10: figure(p10)?,
                p90: figure(p90)?,
            },
            [median, "sigma", sigma] => Self::LogNormal {
                median: figure(median)?,
                sigma: number(sigma)?,
                cap: f64::INFINITY,
            },
            [median, "sigma", sigma, "cap", cap] => Self::LogNormal {
                median: figure(median)?,
                sigma: number(sigma)?,
                cap: figure(cap)?,
            },
            ["uniform", from, to] => Self::Uniform {
                from: figure(from)?,
                to: figure(to)?,
            },
            ["log-uniform", from, to] => Self::LogUniform {
                from: figure(from)?,
                to: figure(to)?,
            },
            _ => {
                return Err(SettingError::reason(format!(
                    "`{text}` is no distribution: write `40`, `40 p10 14 p90 100`, `40 sigma 1.5 cap 80`, `uniform 1 5`, \
                     `log-uniform 1 5` or `30% of 1 | 70% of 2`, with units"
                )));
            }
        };
        let is_possible = match distribution {
            Self::Split { median, p10, p90 } => 0.0 < p10 && p10 <= median && median <= p90,
            Self::LogNormal { median, cap, .. } => 0.0 < median && median <= cap,
            Self::Uniform { from, to } => from <= to,
            Self::LogUniform { from, to } => 0.0 < from && from <= to,
            Self::Constant(_) | Self::Mixture(_) => true,
        };
        if is_possible {
            Ok(distribution)
        } else {
            Err(SettingError::reason(format!(
                "the figures of `{text}` are not in order, or one that has a logarithm is zero"
            )))
        }
    }

    fn mixture(text: &str, quantity: Quantity) -> Result<Self, SettingError> {
        let mut parts = Vec::new();
        for part in text.split('|') {
            let (weight, rest) = part.trim().split_once(" of ").ok_or_else(|| {
                SettingError::reason(format!("`{}` is not like `30% of 2mbit`", part.trim()))
            })?;
            let weight = units::probability(weight)?;
            parts.push((weight, Self::parse(rest.trim(), quantity)?));
        }
        let sum: f64 = parts.iter().map(|(weight, _)| weight).sum();
        if (sum - 1.0).abs() > 1e-6 {
            return Err(SettingError::reason(format!(
                "the weights of `{text}` come to {sum}, and not to 1"
            )));
        }
        Ok(Self::Mixture(parts))
    }

    /// Draws a value. The first number of the stream selects the quantile, the next ones the part of a mixture.
    pub(crate) fn draw(&self, stream: Stream) -> f64 {
        self.draw_at(stream, 1)
    }

    fn draw_at(&self, stream: Stream, depth: u64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Split { median, p10, p90 } => {
                let z = stream.normal(0);
                let width = if z < 0.0 { median / p10 } else { p90 / median };
                median * (width.ln() / Z90 * z).exp()
            }
            Self::LogNormal { median, sigma, cap } => {
                (median * (sigma * stream.normal(0)).exp()).min(*cap)
            }
            Self::Uniform { from, to } => from + (to - from) * stream.unit(0),
            Self::LogUniform { from, to } => from * ((to / from).ln() * stream.unit(0)).exp(),
            Self::Mixture(parts) => {
                let part = stream.choose(depth, parts.iter().map(|(weight, _)| *weight));
                parts
                    .get(part)
                    .map_or(0.0, |(_, part)| part.draw_at(stream, depth + 1))
            }
        }
    }
}
