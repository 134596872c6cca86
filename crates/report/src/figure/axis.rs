//! The axes of figures: from values to shares of the axis, ticks, and values in data.

use super::quoted;
use crate::scale::{Changes, Linear, Unit, ticks};

/// An axis from one value to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) domain: (f64, f64),
}

/// The places of values on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear(Unit),
    Logarithmic(Unit),
    /// Relative changes in percent: see [`Changes`].
    Changes,
    /// Whole numbers.
    Counts,
    /// Percentiles, from 0 to 100.
    Percentiles,
    /// Shares from 0 to 1; each further nine has the same length.
    Nines,
    /// Names, whose places are 0, 1, 2 …
    Names(Vec<String>),
}

impl Axis {
    /// An axis of percentiles.
    pub(crate) const fn percentiles() -> Self {
        Self {
            scale: Scale::Percentiles,
            domain: (0.0, 100.0),
        }
    }

    /// An axis of names.
    pub(crate) fn names(names: Vec<String>) -> Self {
        let domain = (-0.5, names.len() as f64 - 0.5);
        Self {
            scale: Scale::Names(names),
            domain,
        }
    }

    /// An axis from zero to a little more than the largest of these values.
    pub(crate) fn from_zero(unit: Unit, values: impl Iterator<Item = f64>) -> Self {
        let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        let end = if most > 0.0 { most * 1.06 } else { 1.0 };
        Self {
            scale: Scale::Linear(unit),
            domain: (0.0, end),
        }
    }

    /// The place of a value on the axis, 0 at its start and 1 at its end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let unit = (0.0, 1.0);
        if self.scale == Scale::Changes {
            return Changes::new(self.domain, unit).place(value);
        }
        let domain = (self.even(self.domain.0), self.even(self.domain.1));
        Linear::new(domain, unit).place(self.even(value))
    }

    /// A value on the scale on which the axis is even.
    fn even(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Logarithmic(_) => value.max(f64::MIN_POSITIVE).log10(),
            Scale::Nines => -(1.0 - value).max(1e-12).log10(),
            _ => value,
        }
    }

    /// Whether a value is drawn: it is within the axis, or infinite.
    pub(crate) fn contains(&self, value: f64) -> bool {
        value.is_infinite() || (-1e-6..=1.0 + 1e-6).contains(&self.share(value))
    }

    /// About as many ticks as wanted, with their labels.
    pub(super) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        match &self.scale {
            Scale::Linear(unit) => {
                let ticks = ticks(self.domain, wanted, *unit).into_iter();
                ticks
                    .map(|(at, label)| (at, label.replace('-', "−")))
                    .collect()
            }
            Scale::Counts => {
                let ticks = ticks(self.domain, wanted, Unit::Number).into_iter();
                let whole = ticks.filter(|(at, _)| at.fract() == 0.0);
                whole.map(|(at, _)| (at, at.to_string())).collect()
            }
            Scale::Logarithmic(unit) => logarithmic(self.domain, wanted, *unit),
            Scale::Changes => Changes::ticks(self.domain, wanted),
            Scale::Percentiles => [0, 10, 25, 50, 75, 90, 100]
                .map(|at| (f64::from(at), format!("P{at}")))
                .to_vec(),
            Scale::Nines => {
                let names = [
                    (0.5, "P50"),
                    (0.9, "P90"),
                    (0.99, "P99"),
                    (0.999, "P99.9"),
                    (0.999_9, "P99.99"),
                    (0.999_99, "P99.999"),
                ];
                let names = names.into_iter().filter(|(at, _)| self.contains(*at));
                names.map(|(at, name)| (at, name.to_owned())).collect()
            }
            Scale::Names(names) => (0..).map(f64::from).zip(names.iter().cloned()).collect(),
        }
    }

    /// A value in data.
    pub(super) fn show(&self, value: f64) -> String {
        match &self.scale {
            Scale::Names(names) => {
                let name = names.get(value.round() as usize);
                name.map_or_else(String::new, |name| quoted(name))
            }
            _ if value.is_finite() => {
                let text = format!("{value:.6}");
                let text = text.trim_end_matches('0').trim_end_matches('.');
                if text == "-0" { "0" } else { text }.to_owned()
            }
            _ => value.to_string(),
        }
    }
}

/// The finest of powers of ten with doubles and fives, powers of ten, and every few of them that are not more than wanted.
fn logarithmic((low, high): (f64, f64), wanted: usize, unit: Unit) -> Vec<(f64, String)> {
    if high < 10.0 * low {
        return ticks((low, high), wanted, unit);
    }
    let label = |at: f64| match unit {
        Unit::Milliseconds if at >= 1000.0 => format!("{} s", at / 1000.0),
        _ => unit.format(at),
    };
    let of = |digits: &'static [f64], step: usize| -> Vec<(f64, String)> {
        let powers = (-12..=18).step_by(step).map(|power| 10f64.powi(power));
        let all = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
        let within = all.filter(|at| (low..=high).contains(at));
        within.map(|at| (at, label(at))).collect()
    };
    let mut finest = [of(&[1.0, 2.0, 5.0], 1), of(&[1.0], 1), of(&[1.0], 3)].into_iter();
    let fitting = finest.find(|ticks| ticks.len() <= wanted.max(2) && !ticks.is_empty());
    fitting.unwrap_or_else(|| of(&[1.0, 2.0, 5.0], 1))
}
