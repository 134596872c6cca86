//! Scales: from values to places, ticks and their labels.

/// The unit of a value, which decides how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Bytes,
    BitsPerSecond,
    Milliseconds,
    Percent,
    PerSecond,
}

impl Unit {
    fn symbol(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::BitsPerSecond => "b/s",
            Self::Milliseconds => "ms",
            Self::Percent => "%",
            Self::PerSecond => "/s",
        }
    }

    /// The factor and symbol for values up to `magnitude`.
    fn prefixed(self, magnitude: f64) -> (f64, String) {
        if self == Self::Milliseconds {
            return match magnitude {
                m if m >= 10_000.0 => (1e3, "s".to_owned()),
                m if m >= 0.1 || m == 0.0 => (1.0, "ms".to_owned()),
                _ => (1e-3, "µs".to_owned()),
            };
        }
        if self == Self::Percent {
            return (1.0, "%".to_owned());
        }
        let (factor, prefix) = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
            .into_iter()
            .find(|(factor, _)| magnitude >= *factor)
            .unwrap_or((1.0, ""));
        (factor, format!("{prefix}{}", self.symbol()))
    }

    /// A value with three digits, such as `812 kB`, `1.62 MB`, `55 Mb/s`, `39.4 ms`.
    pub(crate) fn format(self, value: f64) -> String {
        let (mut factor, mut symbol) = self.prefixed(value.abs());
        // What rounds to 1000 is one of the next prefix.
        if self != Self::Milliseconds && (value.abs() / factor).round() >= 1000.0 && factor < 1e12 {
            (factor, symbol) = self.prefixed(factor * 1000.0);
        }
        let scaled = value / factor;
        let decimals = match scaled.abs() {
            a if a >= 99.95 || (factor <= 1.0 && self != Self::Milliseconds) => 0,
            a if a >= 9.995 => 1,
            _ => 2,
        };
        let number = format!("{scaled:.decimals$}");
        let number = if number.contains('.') {
            number.trim_end_matches('0').trim_end_matches('.')
        } else {
            &number
        };
        let number = if number == "-0" { "0" } else { number };
        format!("{number} {symbol}")
    }
}

/// A linear scale from a domain of values to a range of places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    lo: f64,
    hi: f64,
    from: f64,
    to: f64,
}

impl Linear {
    /// The domain `lo..hi` onto `from..to`. An empty or invalid domain is widened.
    pub(crate) fn new((lo, hi): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (lo, hi) = widened(lo, hi);
        Self { lo, hi, from, to }
    }

    pub(crate) fn place(&self, value: f64) -> f64 {
        self.from + (value - self.lo) / (self.hi - self.lo) * (self.to - self.from)
    }

    pub(crate) fn domain(&self) -> (f64, f64) {
        (self.lo, self.hi)
    }
}

/// `lo..hi`, widened if it is empty or invalid.
fn widened(lo: f64, hi: f64) -> (f64, f64) {
    if !(lo.is_finite() && hi.is_finite()) || hi < lo {
        return (0.0, 1.0);
    }
    if hi - lo > hi.abs().max(lo.abs()) * 1e-9 {
        return (lo, hi);
    }
    if lo == 0.0 {
        return (0.0, 1.0);
    }
    (lo - lo.abs() * 0.5, hi + hi.abs() * 0.5)
}

/// Ticks at 1, 2 or 5 times a power of ten, about `wanted` of them, all within the domain, with their labels.
pub(crate) fn ticks((lo, hi): (f64, f64), wanted: usize, unit: Unit) -> Vec<(f64, String)> {
    let (lo, hi) = widened(lo, hi);
    let step = step((hi - lo) / wanted.max(1) as f64);
    let (factor, symbol) = unit.prefixed(lo.abs().max(hi.abs()));
    let mut decimals = 0;
    while decimals < 6 && !is_whole(step / factor * 10f64.powi(decimals)) {
        decimals += 1;
    }
    let decimals = decimals as usize;
    let first = (lo / step - 1e-9).ceil();
    let count = ((hi / step + 1e-9).floor() - first).max(0.0) as usize;
    (0..=count.min(1000))
        .map(|index| {
            let value = (first + index as f64) * step;
            let value = if value == 0.0 { 0.0 } else { value };
            let label = if value == 0.0 {
                "0".to_owned()
            } else {
                format!("{:.decimals$} {symbol}", value / factor)
            };
            (value, label)
        })
        .collect()
}

fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() < 1e-6
}

/// The round number nearest to `raw` by ratio: 1, 2 or 5 times a power of ten.
fn step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let mantissa = raw / power;
    let round = match mantissa {
        m if m <= 2f64.sqrt() => 1.0,
        m if m <= 10f64.sqrt() => 2.0,
        m if m <= 50f64.sqrt() => 5.0,
        _ => 10.0,
    };
    round * power
}

#[cfg(test)]
mod tests;
