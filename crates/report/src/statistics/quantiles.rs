//! Quantiles whose bounds hold at every look: of a stream of values, and the change of one between two arms.
//!
//! # The bounds
//!
//! Howard and Ramdas, "Sequential estimation of quantiles with applications to A/B testing and best-arm identification"
//! (Bernoulli 28, 2022), with the beta-binomial mixture. Let Q be the quantile p, and n the number of values. The number
//! of values below Q is at most, and that of values up to Q at least, a sum N of n independent Bernoulli variables of mean p: with
//! values that are equal, by a coupling. A mixture of likelihood ratios over means that are distributed as Beta(r p, r (1 − p)),
//!
//! M(N) = B(r p + N, r (1 − p) + n − N) / (B(r p, r (1 − p)) p^N (1 − p)^(n − N)),
//!
//! is a martingale that starts at 1, so by Ville's inequality it ever exceeds 1 / α with a probability of at most α. M is convex in
//! N on a logarithmic scale: N is in an interval \[l, u\] at all n. So Q is between the value of rank l and that of rank u + 1. This
//! is not asymptotic. M is [`sample_ratio`] of the two numbers against p and 1 − p.
//!
//! # The change between two arms
//!
//! Each arm has bounds of half the error. The change is at least that from the upper bound of the control to the lower bound of the
//! arm, and at most the opposite. Values must come from the same distribution in both arms apart from the arm's effect: of one
//! period with constant shares.
//!
//! # Bounded memory
//!
//! A [`Histogram`] counts values in bins of equal ratio, 1/128 of an octave (0.54 %). Quantiles of binned values are the bins of the
//! quantiles, so a bound is the outer edge of the bin that its rank is in: wider by the width of a bin at most, and never too narrow.
//! Histograms of parts of a stream are merged by addition.
//!
//! The example `sequence` measures how often such a bound is wrong at any of 200 looks:
//!
//! ```console
//! cargo run --release -p lastbyte-report --example sequence
//! ```

use std::collections::BTreeMap;

use super::sequence::sample_ratio;

#[cfg(test)]
mod tests;

/// Bins an octave.
const BINS: f64 = 128.0;
/// Values outside are counted at the ends: 2⁻¹⁰ to 2⁴⁰.
const OCTAVES: (f64, f64) = (-10.0, 40.0);

/// Numbers of positive values in bins of equal ratio: 6400 bins at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    bins: BTreeMap<i16, u64>,
    count: u64,
}

/// The lower edge of a bin.
fn edge(bin: i16) -> f64 {
    (f64::from(bin) / BINS).exp2()
}

impl Histogram {
    /// Adds a value. One that is not a number above zero is counted as the smallest.
    pub fn add(&mut self, value: f64) {
        let octave = value.max(f64::MIN_POSITIVE).log2();
        let bin = octave.clamp(OCTAVES.0, OCTAVES.1) * BINS;
        *self.bins.entry(bin.floor() as i16).or_default() += 1;
        self.count += 1;
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Self) {
        for (bin, count) in &other.bins {
            *self.bins.entry(*bin).or_default() += count;
        }
        self.count += other.count;
    }

    /// The bins that have values, and their numbers.
    pub fn bins(&self) -> impl Iterator<Item = (i16, u64)> {
        self.bins.iter().map(|(bin, count)| (*bin, *count))
    }

    /// The histogram of these bins, as [`Histogram::bins`] has them. `None` if one is out of range.
    pub fn of_bins(bins: impl IntoIterator<Item = (i16, u64)>) -> Option<Self> {
        let mut all = Self::default();
        for (bin, count) in bins {
            let octave = f64::from(bin) / BINS;
            if !(OCTAVES.0..=OCTAVES.1).contains(&octave) {
                return None;
            }
            *all.bins.entry(bin).or_default() += count;
            all.count += count;
        }
        Some(all)
    }

    /// The number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The bin of the value of a rank from 1, and the share of the bin's values that are below it.
    fn of_rank(&self, rank: u64) -> Option<(i16, f64)> {
        let mut below = 0;
        for (bin, count) in &self.bins {
            if below + count >= rank {
                let within = (rank.max(1) - below) as f64 - 0.5;
                return Some((*bin, within / *count as f64));
            }
            below += count;
        }
        None
    }

    /// The quantile of a share above 0 and below 1, with bounds both of which hold at all looks with the probability 1 − `error` at
    /// least. `None` without values.
    ///
    /// ```
    /// use lastbyte_report::statistics::quantiles::Histogram;
    ///
    /// let mut times = Histogram::default();
    /// for number in 1..=1000_u32 {
    ///     times.add(f64::from(number));
    /// }
    /// let median = times.quantile(0.5, 0.05).expect("values");
    /// assert!((median.value - 500.0).abs() < 3.0);
    /// assert!(median.low > Some(430.0) && median.high < Some(570.0));
    /// ```
    pub fn quantile(&self, share: f64, error: f64) -> Option<Bounded> {
        let (bin, within) = self.of_rank((self.count as f64 * share).ceil() as u64)?;
        let (low, high) = ranks(self.count, share, error)?;
        Some(Bounded {
            value: edge(bin) * (within / BINS).exp2(),
            low: self
                .of_rank(low)
                .filter(|_| low > 0)
                .map(|(bin, _)| edge(bin)),
            high: self.of_rank(high).map(|(bin, _)| edge(bin + 1)),
        })
    }
}

/// A value with its bounds, where there are any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded {
    /// As it was seen.
    pub value: f64,
    /// The lower bound.
    pub low: Option<f64>,
    /// The upper bound.
    pub high: Option<f64>,
}

/// The change of a quantile of the arm against the control, −0.05 for 5 % less, with bounds both of which hold at all looks with the
/// probability 1 − `error` at least. `None` without values of both.
pub fn change(control: &Histogram, arm: &Histogram, share: f64, error: f64) -> Option<Bounded> {
    let [control, arm] = [control, arm].map(|one| one.quantile(share, error / 2.0));
    let (control, arm) = (control?, arm?);
    let ratio = |(of, to): (f64, f64)| of / to - 1.0;
    Some(Bounded {
        value: ratio((arm.value, control.value)),
        low: arm.low.zip(control.high).map(ratio),
        high: arm.high.zip(control.low).map(ratio),
    })
}

/// The ranks of the bounds, l and u + 1. `None` without values.
fn ranks(count: u64, share: f64, error: f64) -> Option<(u64, u64)> {
    let limit = -error.ln();
    let is_possible = |below: u64| {
        let factor = sample_ratio(&[below, count - below], &[share, 1.0 - share]);
        factor.is_some_and(|factor| factor <= limit)
    };
    let middle = ((count as f64 * share) as u64).min(count);
    if count == 0 || !is_possible(middle) {
        return None;
    }
    let low = last(middle, 0, is_possible);
    Some((low, last(middle, count, is_possible) + 1))
}

/// The last possible number from one that is towards an end, where all beyond it are not.
fn last(possible: u64, end: u64, is_possible: impl Fn(u64) -> bool) -> u64 {
    if is_possible(end) {
        return end;
    }
    let (mut possible, mut impossible) = (possible, end);
    while possible.abs_diff(impossible) > 1 {
        let middle = possible.midpoint(impossible);
        if is_possible(middle) {
            possible = middle;
        } else {
            impossible = middle;
        }
    }
    possible
}
