//! Scales: from values to places, ticks and their labels.

/// The unit of a value, which decides how it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Bytes,
    BitsPerSecond,
    Milliseconds,
    Percent,
    PerSecond,
    /// None.
    Number,
}

impl Unit {
    fn symbol(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::BitsPerSecond => "b/s",
            Self::Milliseconds => "ms",
            Self::Percent => "%",
            Self::PerSecond => "/s",
            Self::Number => "",
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
        if matches!(self, Self::Percent | Self::Number) {
            return (1.0, self.symbol().to_owned());
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
        format!("{number} {symbol}").trim_end().to_owned()
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

/// A scale of relative changes in percent, onto a range of places: linear, or of the logarithm of the ratio where a value more than
/// doubles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changes {
    scale: Linear,
    is_logarithmic: bool,
}

/// The smallest ratio on a logarithmic scale.
const RATIO_MIN: f64 = 1e-3;

fn log_ratio(percent: f64) -> f64 {
    (1.0 + percent / 100.0).max(RATIO_MIN).ln()
}

impl Changes {
    pub(crate) fn new(domain: (f64, f64), range: (f64, f64)) -> Self {
        let is_logarithmic = Self::is_logarithmic(domain);
        let (low, high) = domain;
        let ends = if is_logarithmic {
            (log_ratio(low), log_ratio(high))
        } else {
            domain
        };
        Self {
            scale: Linear::new(ends, range),
            is_logarithmic,
        }
    }

    pub(crate) fn is_logarithmic((_, high): (f64, f64)) -> bool {
        high > Extent::LINEAR.1
    }

    pub(crate) fn place(&self, percent: f64) -> f64 {
        self.scale.place(if self.is_logarithmic {
            log_ratio(percent)
        } else {
            percent
        })
    }

    /// At most about `wanted` ticks with their labels: `−50 %`, `+100 %`.
    pub(crate) fn ticks((low, high): (f64, f64), wanted: usize) -> Vec<(f64, String)> {
        if !Self::is_logarithmic((low, high)) {
            let ticks = ticks((low, high), wanted, Unit::Percent).into_iter();
            return ticks.map(|(at, label)| (at, signed(at, &label))).collect();
        }
        // Some ratios of each power of ten, or one of every few.
        let of = |digits: &[f64], powers: usize| -> Vec<(f64, String)> {
            let powers = (-300..=300).step_by(powers).map(|power| 10f64.powi(power));
            let ratios = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
            let changes = ratios.map(|ratio| ((ratio - 1.0) * 1000.0).round() / 10.0);
            let changes = changes.filter(|at| (low..=high).contains(at) && *at > -100.0);
            let label = |at: f64| match 1.0 + at / 100.0 {
                ratio if ratio >= 1e6 => format!("×{ratio:e}"),
                ratio if ratio >= 100.0 => format!("×{ratio}"),
                _ => signed(at, &format!("{at} %")),
            };
            changes.map(|at| (at, label(at))).collect()
        };
        let digits = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];
        let finest = [of(&digits, 1), of(&[1.0, 2.0, 5.0], 1), of(&[1.0], 1)];
        let mut finest = finest.into_iter().chain([of(&[1.0], 3)]);
        finest
            .find(|ticks| ticks.len() <= wanted)
            .unwrap_or_else(|| of(&[1.0], 6))
    }
}

/// The label of a change with its sign.
fn signed(at: f64, label: &str) -> String {
    match label.strip_prefix('-') {
        Some(rest) => format!("−{rest}"),
        None if at > 0.0 => format!("+{label}"),
        None => "0".to_owned(),
    }
}

/// The range of changes in percent that an axis covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    estimates: (f64, f64),
    bands: (f64, f64),
    /// Whether an estimate is zero, or nearly, which has no place on a logarithmic axis.
    has_zero: bool,
}

impl Extent {
    /// A linear axis goes from a third to twice the baseline, farther only where an estimate does.
    const LINEAR: (f64, f64) = (-66.0, 100.0);

    pub(crate) const fn new() -> Self {
        Self {
            estimates: (-4.0, 4.0),
            bands: (0.0, 0.0),
            has_zero: false,
        }
    }

    pub(crate) fn add(&mut self, estimate: Option<f64>, bands: impl IntoIterator<Item = f64>) {
        let widen = |(low, high): &mut (f64, f64), value: f64| {
            if value.is_finite() {
                (*low, *high) = (low.min(value * 100.0), high.max(value * 100.0));
            }
        };
        match estimate {
            Some(estimate) if estimate + 1.0 <= RATIO_MIN => self.has_zero = true,
            Some(estimate) => widen(&mut self.estimates, estimate),
            None => {}
        }
        for value in bands {
            widen(&mut self.bands, value);
        }
    }

    /// All estimates, and bands within limits, with a margin.
    pub(crate) fn domain(&self) -> (f64, f64) {
        let ((low, high), bands) = (self.estimates, self.bands);
        if high <= Self::LINEAR.1 {
            let least = if self.has_zero { -100.0 } else { low };
            let low = least.min(bands.0.max(Self::LINEAR.0));
            let high = high.max(bands.1.min(Self::LINEAR.1));
            let room = (high - low) * 0.06;
            let end = if low < Self::LINEAR.0 {
                -100.0
            } else {
                Self::LINEAR.0
            };
            return ((low - room).max(end), (high + room).min(Self::LINEAR.1));
        }
        let (low, high) = (log_ratio(low), log_ratio(high));
        let most = (high - low) / 3.0;
        let low = low.min(log_ratio(bands.0).max(low - most));
        let high = high.max(log_ratio(bands.1).min(high + most));
        let room = (high - low) * 0.04;
        (
            100.0 * (low - room).exp_m1(),
            100.0 * (high + room).exp_m1(),
        )
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
                let label = format!("{:.decimals$} {symbol}", value / factor);
                label.trim_end().to_owned()
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
