//! The statistics of a prediction: means, percentiles and shares of lines, their changes, and intervals.

use crate::random::Random;

#[cfg(test)]
mod tests;

/// The percentiles of a curve, as shares: P5 to P95.
pub const SHARES: [f64; 19] = {
    let mut shares = [0.0; 19];
    let mut at = 0;
    while at < 19 {
        shares[at] = (at + 1) as f64 / 20.0;
        at += 1;
    }
    shares
};

/// The number of statistics: mean of the logarithm of TTLB, packet loss, share of lines made slower, and the percentiles.
pub(crate) const COUNT: usize = 3 + SHARES.len();
/// The index of the mean logarithm.
pub(crate) const MEAN: usize = 0;
/// The index of the packet loss.
pub(crate) const LOSS: usize = 1;
/// The index of the share that is slower by more than 5 %.
pub(crate) const SLOWER: usize = 2;
/// The index of the first percentile.
pub(crate) const FIRST: usize = 3;

/// All statistics.
pub(crate) type Statistics = [f64; COUNT];

/// The logarithm of the ratio beyond which a line counts as slower.
const SLOWER_FROM: f64 = 0.048_790_164_169_432;

/// A transfer: the logarithm of its TTLB in ms, and its loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transfer {
    pub(crate) log_ttlb: f64,
    pub(crate) loss: f64,
}

/// The statistics of transfers. The share that is slower is left at 0. All are `NaN` without transfers.
pub(crate) fn levels(transfers: impl Iterator<Item = Transfer>) -> Statistics {
    let mut times = Vec::new();
    let mut loss = 0.0;
    for transfer in transfers {
        times.push(transfer.log_ttlb);
        loss += transfer.loss;
    }
    let mut levels = [f64::NAN; COUNT];
    if times.is_empty() {
        return levels;
    }
    let count = times.len() as f64;
    levels[MEAN] = times.iter().sum::<f64>() / count;
    levels[LOSS] = loss / count;
    levels[SLOWER] = 0.0;
    times.sort_by(f64::total_cmp);
    for (level, share) in levels.iter_mut().skip(FIRST).zip(SHARES) {
        *level = quantile(&times, share);
    }
    levels
}

/// The quantile of sorted values, interpolated. `NaN` without values.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    let (low, part) = (place as usize, place - libm::floor(place));
    let high = (low + 1).min(last);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// The change from the transfers as logged to those predicted, in the same order.
pub(crate) fn change(pairs: impl Iterator<Item = (Transfer, Transfer)> + Clone) -> Statistics {
    let (own, new) = (
        levels(pairs.clone().map(|pair| pair.0)),
        levels(pairs.clone().map(|pair| pair.1)),
    );
    let mut change = [0.0; COUNT];
    for ((change, new), own) in change.iter_mut().zip(new).zip(own) {
        *change = new - own;
    }
    let (mut slower, mut count) = (0.0, 0.0);
    for (own, new) in pairs {
        count += 1.0;
        slower += f64::from(u8::from(new.log_ttlb - own.log_ttlb > SLOWER_FROM));
    }
    change[SLOWER] = slower / count;
    change
}

/// An estimate, and the interval that contains the true value with the probability of [`crate::LEVEL`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// Whether the interval contains a value.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The estimate of a share from that of a logarithm: 0.1 is 10 % more.
    pub(crate) fn exponentiated(self) -> Self {
        let [value, low, high] = [self.value, self.low, self.high].map(libm::expm1);
        Self { value, low, high }
    }
}

/// The number of replicates of a bootstrap.
const REPLICATES: usize = 400;

/// The estimates of all statistics: `point`, with intervals of `level` from replicates, each moved by a normal error of the deviations
/// in `errors`.
pub(crate) fn estimates(
    point: &Statistics,
    errors: &Statistics,
    level: f64,
    random: &mut Random,
    mut replicate: impl FnMut(&mut Random) -> Statistics,
) -> [Estimate; COUNT] {
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); COUNT];
    for _ in 0..REPLICATES {
        let statistics = replicate(random);
        let error = random.normal();
        for ((values, value), deviation) in values.iter_mut().zip(statistics).zip(errors) {
            values.push(value + error * deviation);
        }
    }
    let mut estimates = [Estimate {
        value: f64::NAN,
        low: f64::NAN,
        high: f64::NAN,
    }; COUNT];
    for ((estimate, values), point) in estimates.iter_mut().zip(&mut values).zip(point) {
        values.sort_by(f64::total_cmp);
        let (low, high) = (
            quantile(values, (1.0 - level) / 2.0),
            quantile(values, f64::midpoint(1.0, level)),
        );
        *estimate = Estimate {
            value: *point,
            low: low.min(*point),
            high: high.max(*point),
        };
    }
    estimates
}

/// The probability that a chi-squared variable is above a value (Wilson and Hilferty, 1931).
pub(crate) fn chi_squared_above(value: f64, freedom: f64) -> f64 {
    let spread = 2.0 / (9.0 * freedom);
    let z = (libm::cbrt(value / freedom) - 1.0 + spread) / libm::sqrt(spread);
    0.5 * libm::erfc(z / core::f64::consts::SQRT_2)
}
