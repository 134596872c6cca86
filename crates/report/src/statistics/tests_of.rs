//! Tests of hypotheses, and intervals that need no resampling. Each names the function of `SciPy` that it agrees with.

use super::{Counts, special};

/// The result of a rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// The two-sided p: the probability of a difference at least this large if there is none.
    pub p: f64,
    /// The share of pairs in which a value of the first is less than one of the second; ties count half.
    pub share_less: f64,
}

/// Whether values of one group tend to be less than those of another (Mann and Whitney, with ties, normal approximation,
/// without a correction for continuity): `scipy.stats.mannwhitneyu(…, method="asymptotic", use_continuity=False)`. Members
/// without a value rank above all others and tie with each other. `None` if either group is empty.
pub fn mann_whitney(first: &Counts, second: &Counts) -> Option<RankTest> {
    let (m, n) = (first.total() as f64, second.total() as f64);
    if m == 0.0 || n == 0.0 {
        return None;
    }
    let mut ours = first.iter().peekable();
    let mut theirs = second.iter().peekable();
    // The number of pairs in which ours is less, with halves for ties; and Σ(t³ − t) over ties.
    let (mut less, mut ties, mut theirs_before) = (0.0, 0.0, 0.0);
    let mut meet = |a: f64, b: f64, theirs_before: &mut f64| {
        less += a * (n - *theirs_before - b) + a * b / 2.0;
        *theirs_before += b;
        let t = a + b;
        ties += t * t * t - t;
    };
    loop {
        let value = match (ours.peek(), theirs.peek()) {
            (Some((a, _)), Some((b, _))) => *a.min(b),
            (Some((a, _)), None) => *a,
            (None, Some((b, _))) => *b,
            (None, None) => break,
        };
        let a = ours
            .next_if(|(a, _)| *a == value)
            .map_or(0.0, |(_, count)| count as f64);
        let b = theirs
            .next_if(|(b, _)| *b == value)
            .map_or(0.0, |(_, count)| count as f64);
        meet(a, b, &mut theirs_before);
    }
    meet(
        first.unfinished() as f64,
        second.unfinished() as f64,
        &mut theirs_before,
    );
    let total = m + n;
    let variance = if total > 1.0 {
        m * n / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)))
    } else {
        0.0
    };
    let z = if variance > 0.0 {
        (less - m * n / 2.0) / variance.sqrt()
    } else {
        0.0
    };
    Some(RankTest {
        p: special::normal_two_sided(z),
        share_less: less / (m * n),
    })
}

/// Whether the first of a pair tends to be less than the second, by the ranks of the logarithms of their ratio (Wilcoxon's
/// signed ranks; pairs without a difference are left out, ties share their rank, normal approximation without a
/// correction): `scipy.stats.wilcoxon(numpy.log(first / second), zero_method="wilcox", correction=False,
/// method="asymptotic")`. A member without a value ranks above all others. `None` without pairs.
pub fn wilcoxon(pairs: impl Iterator<Item = (Option<u64>, Option<u64>)>) -> Option<RankTest> {
    let mut differences = Vec::new();
    let (mut all, mut less) = (0.0, 0.0);
    for (first, second) in pairs {
        all += 1.0;
        let difference = match (first, second) {
            (Some(first), Some(second)) => (first.max(1) as f64 / second.max(1) as f64).ln(),
            (None, Some(_)) => f64::INFINITY,
            (Some(_), None) => f64::NEG_INFINITY,
            (None, None) => 0.0,
        };
        less += if difference < 0.0 {
            1.0
        } else if difference == 0.0 {
            0.5
        } else {
            0.0
        };
        if difference != 0.0 {
            // Rounded so that a/b and b/a have the same distance from one.
            differences.push(((difference.abs() * 1e12).round(), difference < 0.0));
        }
    }
    if all == 0.0 {
        return None;
    }
    differences.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = differences.len() as f64;
    let (mut sum, mut ties, mut before) = (0.0, 0.0, 0.0);
    for tied in differences.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let t = tied.len() as f64;
        let rank = before + f64::midpoint(t, 1.0);
        sum += rank * tied.iter().filter(|(_, is_less)| *is_less).count() as f64;
        ties += t * t * t - t;
        before += t;
    }
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0 - ties / 48.0;
    let z = if variance > 0.0 {
        (sum - n * (n + 1.0) / 4.0) / variance.sqrt()
    } else {
        0.0
    };
    Some(RankTest {
        p: special::normal_two_sided(z),
        share_less: less / all,
    })
}

/// Whether counts agree with shares (Pearson): the statistic and its p, as `scipy.stats.chisquare`. Shares need not add up
/// to one; one of zero must have no count.
pub fn chi_squared(counts: &[u64], shares: &[f64]) -> Option<(f64, f64)> {
    let total: u64 = counts.iter().sum();
    let whole: f64 = shares.iter().sum();
    if total == 0 || counts.len() != shares.len() || whole <= 0.0 {
        return None;
    }
    let (mut statistic, mut cells) = (0.0, 0usize);
    for (count, share) in counts.iter().zip(shares) {
        let expected = total as f64 * share / whole;
        if expected > 0.0 {
            statistic += (*count as f64 - expected).powi(2) / expected;
            cells += 1;
        } else if *count > 0 {
            return Some((f64::INFINITY, 0.0));
        }
    }
    Some((
        statistic,
        special::chi_squared_above(statistic, cells.saturating_sub(1)),
    ))
}

/// The p of many tests, corrected so that a test is significant by chance in at most 5 % of experiments (Holm):
/// `statsmodels.stats.multitest.multipletests(…, method="holm")`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let (mut adjusted, mut least) = (vec![1.0; p.len()], 0.0f64);
    for (place, index) in order.into_iter().enumerate() {
        least = least.max((p[index] * (p.len() - place) as f64).min(1.0));
        adjusted[index] = least;
    }
    adjusted
}

/// An estimate and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// As it was seen.
    pub value: f64,
    /// The interval.
    pub interval: (f64, f64),
}

impl Estimate {
    /// Whether the interval excludes zero.
    pub fn excludes_zero(&self) -> bool {
        self.interval.0 > 0.0 || self.interval.1 < 0.0
    }
}

/// The half width, in standard deviations, of intervals that all contain their true values in 95 % of experiments, if there
/// are this many (Bonferroni). One is [`Z_95`](super::Z_95).
pub fn simultaneous(intervals: usize) -> f64 {
    special::normal_quantile(0.025 / intervals.max(1) as f64)
}

/// The interval of a share, of `z` standard deviations (Wilson): `scipy.stats.binomtest(…).proportion_ci(method="wilson")`.
pub fn share(count: u64, total: u64, z: f64) -> Option<Estimate> {
    if total == 0 {
        return None;
    }
    let (n, share) = (total as f64, count as f64 / total as f64);
    let center = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    Some(Estimate {
        value: share,
        interval: ((center - half).max(0.0), (center + half).min(1.0)),
    })
}

/// The interval of the difference of two shares, from the intervals of both (Newcombe's method 10).
pub fn share_difference(first: (u64, u64), second: (u64, u64), z: f64) -> Option<Estimate> {
    let (one, other) = (share(first.0, first.1, z)?, share(second.0, second.1, z)?);
    let value = one.value - other.value;
    let low = (one.value - one.interval.0).hypot(other.interval.1 - other.value);
    let high = (one.interval.1 - one.value).hypot(other.value - other.interval.0);
    Some(Estimate {
        value,
        interval: (value - low, value + high),
    })
}

/// The means of two groups, of the members with a value, and what an interval of their ratio needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanPair {
    first: f64,
    second: f64,
    /// The variances of the two means, relative to their squares; that of a first mean of zero is relative to the square of the second.
    variances: (f64, f64),
    /// The variance of the difference of the two, each relative to its mean. What the members of pairs have in common is not in it.
    difference: f64,
}

impl MeanPair {
    /// Of independent groups. `None` if a group has fewer than two members with a value, or the second mean is not above zero.
    pub fn apart(first: &Counts, second: &Counts) -> Option<Self> {
        let relative = |counts: &Counts| {
            Some(counts.variance()? / counts.finished() as f64 / counts.mean()?.powi(2))
        };
        if first.finished() > 1 && first.mean()? == 0.0 {
            let of_members = relative(second)? * second.finished() as f64;
            let (ours, theirs) = (first.finished() as f64, second.finished() as f64);
            return Self::zero(ours, second.mean()?, of_members, theirs);
        }
        let variances = (relative(first)?, relative(second)?);
        Self {
            first: first.mean()?,
            second: second.mean()?,
            variances,
            difference: variances.0 + variances.1,
        }
        .checked()
    }

    /// Of pairs in which both have a value.
    pub fn paired(pairs: impl Iterator<Item = (Option<u64>, Option<u64>)> + Clone) -> Option<Self> {
        let both = pairs.filter_map(|(first, second)| Some((first? as f64, second? as f64)));
        let (mut n, mut first, mut second) = (0.0, 0.0, 0.0);
        for (one, other) in both.clone() {
            n += 1.0;
            first += one;
            second += other;
        }
        if n < 2.0 || second <= 0.0 {
            return None;
        }
        let (first, second) = (first / n, second / n);
        if first <= 0.0 {
            let squares = both.map(|(_, other)| (other / second - 1.0).powi(2));
            return Self::zero(n, second, squares.sum::<f64>() / (n - 1.0), n);
        }
        let mut squares = [0.0; 3];
        for (one, other) in both {
            let (one, other) = (one / first, other / second);
            squares[0] += (one - 1.0).powi(2);
            squares[1] += (other - 1.0).powi(2);
            squares[2] += (one - other).powi(2);
        }
        let [one, other, difference] = squares.map(|sum| sum / (n - 1.0) / n);
        Self {
            first,
            second,
            variances: (one, other),
            difference,
        }
        .checked()
    }

    /// Of a first group of zeros, which have no variance of their own: they get that of the second, as if both had the same, so that
    /// zeros are not significant where the second has few values above zero. `of_members` is the variance of the second group, relative
    /// to the square of its mean.
    fn zero(first_members: f64, second: f64, of_members: f64, second_members: f64) -> Option<Self> {
        let variances = (of_members / first_members, of_members / second_members);
        let all = Self {
            first: 0.0,
            second,
            variances,
            difference: variances.0 + variances.1,
        };
        (second > 0.0 && all.difference.is_finite()).then_some(all)
    }

    fn checked(self) -> Option<Self> {
        let ratio = self.first / self.second;
        (ratio.is_finite() && ratio > 0.0 && self.difference.is_finite()).then_some(self)
    }

    /// The relative change of the mean from the second to the first, in an interval of `z` standard deviations (Fieller): the
    /// ratios `r` at which the mean of first − r × second is within `z` of its standard deviations of zero. At `r` = 1 it is the
    /// test of the plain difference, so one pair, however large, cannot make it exclude zero, as it can with a variance that is
    /// linearised at the observed means. The interval has no upper end (infinity) where the second mean is within `z` standard deviations of
    /// zero; its lower end is at least −1, as no value is negative.
    pub fn change(&self, z: f64) -> Estimate {
        let square = z * z;
        let (first, second) = (square * self.variances.0, square * self.variances.1);
        if self.first == 0.0 {
            let high = if second < 1.0 {
                (first / (1.0 - second)).sqrt() - 1.0
            } else {
                f64::INFINITY
            };
            return Estimate {
                value: -1.0,
                interval: (-1.0, high),
            };
        }
        let both = (first + second - square * self.difference) / 2.0;
        // The ratios, relative to the observed one, are the solutions of a r² − 2 b r + c ≤ 0.
        let (a, b, c) = (1.0 - second, 1.0 - both, 1.0 - first);
        let root = (square * self.difference - (first * second - both * both))
            .max(0.0)
            .sqrt();
        let low = if c > 0.0 { c / (b + root) } else { 0.0 };
        let high = if a > 0.0 {
            (b + root) / a
        } else {
            f64::INFINITY
        };
        let ratio = self.first / self.second;
        Estimate {
            value: ratio - 1.0,
            interval: (ratio * low - 1.0, ratio * high - 1.0),
        }
    }

    /// The standard deviation of the difference of the means, relative to the second, if the first were changed to have this ratio to the
    /// second.
    pub fn deviation_at(&self, ratio: f64) -> f64 {
        let (first, second) = self.variances;
        if self.first == 0.0 {
            return self.difference.sqrt();
        }
        let both = (first + second - self.difference) / 2.0;
        (ratio * ratio * first - 2.0 * ratio * both + second)
            .max(0.0)
            .sqrt()
    }
}

/// The difference of the means of the members with a value: normal, with separate variances. The interval has `z` standard
/// deviations.
pub fn mean_difference(first: &Counts, second: &Counts, z: f64) -> Option<Estimate> {
    let value = first.mean()? - second.mean()?;
    let of = |counts: &Counts| Some(counts.variance()? / counts.finished() as f64);
    let half = z * (of(first)? + of(second)?).sqrt();
    Some(Estimate {
        value,
        interval: (value - half, value + half),
    })
}

/// The same for pairs in which both have a value: the difference of `scipy.stats.ttest_rel`, with a normal interval. What they
/// have in common does not widen the interval.
pub fn mean_difference_paired(
    pairs: impl Iterator<Item = (Option<u64>, Option<u64>)>,
    z: f64,
) -> Option<Estimate> {
    let both = pairs.filter_map(|(first, second)| Some(first? as f64 - second? as f64));
    // Welford's sums, in one pass.
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for difference in both {
        n += 1.0;
        let step = difference - mean;
        mean += step / n;
        squares += step * (difference - mean);
    }
    if n < 2.0 {
        return None;
    }
    let half = z * (squares / (n - 1.0) / n).sqrt();
    Some(Estimate {
        value: mean,
        interval: (mean - half, mean + half),
    })
}
