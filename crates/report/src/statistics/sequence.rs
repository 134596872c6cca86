//! Statistics that hold at every look: intervals of a difference between two arms, and the test of their sample ratio.
//!
//! An interval of one look is wrong in more experiments the more often it is looked at. The bounds of this module hold at all
//! looks together: the probability that a bound is ever on the wrong side of the true difference is at most its error.
//!
//! # The difference of means
//!
//! Connections are counted in strata, in each of which the probability of assignment is constant: a site during an epoch of
//! shares. With n₁ and n₀ connections of the arm and the control in a stratum, its weight is w = n₁ n₀ / (n₁ + n₀), about
//! n p (1 − p). The difference is Σ w (ȳ₁ − ȳ₀) / Σ w: the average of the inverse-probability estimates of all connections,
//! each with the weight of its precision, p (1 − p). Within a stratum the difference of means is unbiased whatever the share,
//! so a share that changes, and a mean that changes with it over time, do not bias the result.
//!
//! # The bounds
//!
//! The sum S = Σ w (ȳ₁ − ȳ₀) behaves as a Brownian motion whose time is its variance V = Σ w² (v₁ / n₁ + v₀ / n₀). A mixture of
//! likelihood ratios over normally distributed effects (Robbins 1970) gives a bound of S that holds at all times:
//! √(2 (V + r) ln(1 + √((V + r) / r) / 2α)) for one side. It is the asymptotic confidence sequence of Waudby-Smith, Arbour,
//! Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and asymptotic confidence sequences" (Annals of Statistics 52,
//! 2024; one side: appendix B). The bound is narrowest for effects near a planned one, `effect`, the standard deviation of the
//! mixture: r = (V / Σ w / `effect`)².
//!
//! The variance of an arm is its own, or that of both arms together if that is larger: in a small arm, rare events may have been
//! missed by chance, and a variance from the others would be too small.
//!
//! Asymptotic: it holds for sums that are nearly normal when the first decision is made. A caller needs a least number of
//! connections. `examples/sequence.rs` measures the share of experiments without a difference in which a bound is ever wrong, at
//! 200 looks of 1000 experiments, and the number of connections until an effect is found; the tests repeat it with fewer:
//!
//! ```console
//! cargo run --release -p lastbyte-report --example sequence
//! ```
//!
//! # The sample ratio
//!
//! [`sample_ratio`] is the Bayes factor of a Dirichlet-multinomial model against the planned shares: Lindon and Malek,
//! "Anytime-valid inference for multinomial count data" (`NeurIPS` 2022). Its inverse is a p that holds at all looks.

#[cfg(test)]
mod tests;

/// The count, sum and sum of squares of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub squares: f64,
}

impl Sums {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    /// Adds the values of another.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// The mean. `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The sum of squared distances from the mean. 0 if rounding alone may be as large, so that equal values have none, in whatever
    /// order they were added.
    fn deviation(&self) -> f64 {
        let mean = self.mean().unwrap_or(0.0);
        let deviation = self.squares - mean * self.sum;
        // Each of three additions and products of sums is off by half an epsilon a value at the most.
        let rounding = 4.0 * f64::EPSILON * self.count as f64 * self.squares;
        if deviation > rounding { deviation } else { 0.0 }
    }
}

/// The values of two arms where the probability of assignment is constant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stratum {
    /// Of the control.
    pub control: Sums,
    /// Of the arm.
    pub arm: Sums,
}

/// The difference of the means of an arm and its control, over strata.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The difference: above zero if the arm's values are larger.
    pub value: f64,
    /// Σ w.
    weight: f64,
    /// V.
    variance: f64,
}

/// The difference of means over these strata, with the variance around the common mean where the arms have none of their own, as of shares
/// of 0 and 1. Strata without values of both arms do not count. `None` if none counts, or the
/// variance is unknown: no stratum has two values of an arm.
///
/// ```
/// use lastbyte_report::statistics::sequence::{Stratum, difference};
///
/// let mut stratum = Stratum::default();
/// for number in 0..1000_u32 {
///     stratum.control.add(f64::from(number % 10));
///     stratum.arm.add(f64::from(number % 10) - 2.0);
/// }
/// let difference = difference([stratum]).expect("both arms have values");
/// assert_eq!(difference.value, -2.0);
/// assert!(difference.above(0.01, 1.0) < -1.0);
/// ```
pub fn difference(strata: impl IntoIterator<Item = Stratum>) -> Option<Difference> {
    let (mut weight, mut sum, mut between) = (0.0, 0.0, 0.0);
    // Of control and arm: degrees of freedom, squared distances, and Σ w² / n.
    let mut arms: [(f64, f64, f64); 2] = Default::default();
    for stratum in strata {
        let both = [stratum.control, stratum.arm];
        let [Some(control), Some(arm)] = both.map(|one| one.mean()) else {
            continue;
        };
        let [n0, n1] = both.map(|one| one.count as f64);
        let w = n0 * n1 / (n0 + n1);
        weight += w;
        sum += w * (arm - control);
        // Means of equal values differ by rounding.
        if (arm - control).abs() > 1e-9 * (arm.abs() + control.abs()) {
            between += w * (arm - control).powi(2);
        }
        for ((degrees, distances, factor), one) in arms.iter_mut().zip(&both) {
            let n = one.count as f64;
            *degrees += n - 1.0;
            *distances += one.deviation();
            *factor += w * w / n;
        }
    }
    if weight <= 0.0 || arms.iter().any(|(degrees, ..)| *degrees <= 0.0) {
        return None;
    }
    // Within strata, and pooled over them: a stratum with few values of an arm has no variance of its own.
    let within = arms[0].1 + arms[1].1;
    let distances = if within > 0.0 { within } else { between };
    let both = distances / (arms[0].0 + arms[1].0);
    let variance = arms
        .iter()
        .map(|(degrees, distances, factor)| factor * (distances / degrees).max(both));
    Some(Difference {
        value: sum / weight,
        weight,
        variance: variance.sum(),
    })
}

impl Difference {
    /// The standard error of the difference.
    pub fn error(&self) -> f64 {
        self.variance.sqrt() / self.weight
    }

    /// A lower bound of the true difference, which at any look is above it with the probability `error` at most. It is
    /// narrowest where the true difference is about `effect`.
    pub fn below(&self, error: f64, effect: f64) -> f64 {
        self.value - self.width(error, effect)
    }

    /// An upper bound of the true difference, as [`Difference::below`].
    pub fn above(&self, error: f64, effect: f64) -> f64 {
        self.value + self.width(error, effect)
    }

    fn width(&self, error: f64, effect: f64) -> f64 {
        if self.variance <= 0.0 {
            // All values of an arm are equal, as far as seen.
            return f64::INFINITY;
        }
        let mixture = (self.variance / self.weight / effect).powi(2);
        let time = self.variance + mixture;
        let factor = (1.0 + (time / mixture).sqrt() / (2.0 * error)).ln();
        (2.0 * time * factor).sqrt() / self.weight
    }
}

/// The prior of [`sample_ratio`], as a number of connections: small deviations are found after about as many.
const PRIOR: f64 = 200.0;

/// The logarithm of the Bayes factor against these shares: above ln(1 / α) with the probability α at most, at any look, if
/// connections are assigned by the shares. `None` without connections, or if there is not one share above zero for each count.
pub fn sample_ratio(counts: &[u64], shares: &[f64]) -> Option<f64> {
    let total: f64 = counts.iter().map(|count| *count as f64).sum();
    let whole: f64 = shares.iter().sum();
    let are_shares = counts.len() == shares.len() && shares.iter().all(|share| *share > 0.0);
    if total == 0.0 || !are_shares {
        return None;
    }
    let cells = counts.iter().zip(shares).map(|(count, share)| {
        let (count, share) = (*count as f64, share / whole);
        let prior = PRIOR * share;
        libm::lgamma(prior + count) - libm::lgamma(prior) - count * share.ln()
    });
    Some(libm::lgamma(PRIOR) - libm::lgamma(PRIOR + total) + cells.sum::<f64>())
}
