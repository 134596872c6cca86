//! Bootstrap: percentiles of resampled groups, and the confidence intervals of changes that follow.
//!
//! Independent groups: the percentiles of a resample are the values at resampled ranks, and these ranks are order statistics of
//! uniform variates, whose gaps are gamma variates. The cost of a resample depends on the number of percentiles and not on the
//! number of connections, and the distribution is exactly that of drawing each connection.
//!
//! Pairs: a pair is drawn as a unit, so what its connections have in common (the path) is in every arm of a resample and does
//! not widen the interval of the difference. The percentiles of two paired arms are nearly the same, and single values decide
//! how they differ, in a resample more than in another experiment. Resamples of pairs are therefore compared by smoothed
//! percentiles: the mean, on the scale of the measure, of the values within [`WINDOW`] standard errors of the percentile's rank. As a percentile by
//! Harrell and Davis it has less variance, and its bootstrap the right one; its mean is over a window of ranks in place of the
//! weights of a beta distribution, so a resample costs one pass over its values.
//!
//! The simultaneous bands of pairs are conservative: without a difference, 14 of 600 pages of 500 pairs and three arms claimed one, 2.3 % in place of
//! 5 %, and single percentiles 4.0 % (`examples/null.rs`, six pools). The observed differences are 0.96 of the resamples' standard deviation at
//! the mean percentile, and 0.90 around the median, where values have gaps. Deviations from influence functions (of the mean of a window: values
//! that are cut off at its ends) are 5 % larger still, so they are no remedy; normal scores of the resamples give half a point.
//!
//! A member without a value is above all others: in a resample in which it takes a percentile, the percentile is infinite. An
//! interval is unbounded on a side on which more resamples are infinite than it leaves out.

use super::{
    Z_95,
    counts::{Counts, rank},
    random::Random,
    special,
    tests_of::{Estimate, simultaneous},
};

/// The half width of the window of a smoothed percentile, in standard errors of its rank. Wider windows have less variance; this one is
/// a window of 14 percentiles at the median of 300 pairs, and of 4 at that of 5000.
const WINDOW: f64 = 2.5;
/// A side of a simultaneous interval is unbounded if more than this share of the resamples is infinite there. It is about what a
/// simultaneous interval leaves out at one percentile.
const INFINITE_MAX: f64 = 0.001;

/// Connections over the same path, one in each arm: by arm, by pair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    arms: Vec<Vec<u64>>,
}

/// A member without a value.
const UNFINISHED: u64 = u64::MAX;
/// A member that does not exist.
const ABSENT: u64 = u64::MAX - 1;

/// A member of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Member {
    /// It does not exist.
    #[default]
    Absent,
    /// It has no value.
    Unfinished,
    /// Its value.
    Value(u64),
}

impl Pairs {
    /// Creates an empty list of pairs of this many arms.
    #[must_use]
    pub fn new(arms: usize) -> Self {
        Self {
            arms: vec![Vec::new(); arms],
        }
    }

    /// Adds a pair, with its member in each arm.
    pub fn push(&mut self, members: &[Member]) {
        for (arm, values) in self.arms.iter_mut().enumerate() {
            values.push(match members.get(arm) {
                None | Some(Member::Absent) => ABSENT,
                Some(Member::Unfinished) => UNFINISHED,
                Some(Member::Value(value)) => (*value).min(ABSENT - 1),
            });
        }
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.arms.first().map_or(0, Vec::len)
    }

    /// The number of arms.
    pub const fn arms(&self) -> usize {
        self.arms.len()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of the pairs that exist in both arms.
    pub fn of(
        &self,
        first: usize,
        second: usize,
    ) -> impl Iterator<Item = (Option<u64>, Option<u64>)> + Clone + '_ {
        let value = |raw: u64| (raw != UNFINISHED).then_some(raw);
        let empty: &[u64] = &[];
        let arm = |arm: usize| self.arms.get(arm).map_or(empty, Vec::as_slice);
        arm(first)
            .iter()
            .zip(arm(second))
            .filter(|(one, other)| **one != ABSENT && **other != ABSENT)
            .map(move |(one, other)| (value(*one), value(*other)))
    }
}

/// Percentiles of resamples of independent groups: by replicate, by group, by percentile; `None` where the member of that rank has
/// no value.
pub fn apart(
    groups: &[&Counts],
    shares: &[f64],
    replicates: usize,
    seed: u64,
) -> Vec<Vec<Vec<Option<u64>>>> {
    let mut random = Random::new(seed, 1);
    let all = (0..replicates).map(|_| {
        let groups = groups.iter().map(|counts| {
            let total = counts.total();
            let mut wanted = shares
                .iter()
                .map(|share| rank(total, *share))
                .collect::<Vec<_>>();
            order_statistics(&mut random, total, &mut wanted);
            wanted.iter().map(|rank| counts.at_rank(*rank)).collect()
        });
        groups.collect()
    });
    all.collect()
}

/// Replaces each rank (in ascending order) by the rank of the connection that a resample has there.
fn order_statistics(random: &mut Random, total: u64, ranks: &mut [u64]) {
    let (mut before, mut sum) = (0, 0.0);
    let mut sums = Vec::with_capacity(ranks.len());
    for rank in ranks.iter() {
        sum += random.gamma(rank - before);
        before = *rank;
        sums.push(sum);
    }
    let all = sum + random.gamma(total + 1 - before);
    for (rank, sum) in ranks.iter_mut().zip(sums) {
        *rank = ((sum / all * total as f64).ceil() as u64).clamp(total.min(1), total);
    }
}

/// An arm of pairs, prepared for resampling: its distinct values in ascending order, and the place of each pair's member among
/// them. Members without a value, and those that do not exist, have the two places behind them.
struct Sorted {
    places: Vec<u32>,
    /// On the scale of the measure.
    values: Vec<f64>,
    /// How many of the values are infinitely low, 0 or 1: the logarithm of zero.
    low: usize,
    /// How often a resample has each place.
    counts: Vec<u32>,
    /// Before each value, and behind the last: the number of members of a resample, and the sum of their values.
    before: Vec<(f64, f64)>,
}

impl Sorted {
    fn new(members: &[u64], measure: Measure) -> Self {
        let mut distinct: Vec<u64> = members
            .iter()
            .copied()
            .filter(|one| *one < ABSENT)
            .collect();
        distinct.sort_unstable();
        distinct.dedup();
        let places = members.iter().map(|member| {
            (match *member {
                UNFINISHED => distinct.len(),
                ABSENT => distinct.len() + 1,
                value => distinct.partition_point(|other| *other < value),
            }) as u32
        });
        let values: Vec<f64> = distinct
            .iter()
            .map(|value| measure.scaled(Some(*value)))
            .collect();
        Self {
            places: places.collect(),
            low: values.partition_point(|value| *value == f64::NEG_INFINITY),
            counts: vec![0; distinct.len() + 2],
            before: Vec::with_capacity(distinct.len() + 1),
            values,
        }
    }

    /// The smoothed percentiles of the counted members.
    fn percentiles(&mut self, shares: &[f64]) -> Vec<f64> {
        self.before.clear();
        let (mut members, mut sum) = (0.0, 0.0);
        for (value, count) in self.values.iter().zip(&self.counts) {
            self.before.push((members, sum));
            members += f64::from(*count);
            if value.is_finite() {
                sum += f64::from(*count) * value;
            }
        }
        self.before.push((members, sum));
        let total = members + f64::from(self.counts[self.values.len()]);
        shares
            .iter()
            .map(|share| self.percentile(*share, total))
            .collect()
    }

    /// The mean of the values in a window around a rank. The window ends where values end, on both sides of the rank, so that it stays
    /// in the middle.
    fn percentile(&self, share: f64, total: f64) -> f64 {
        let (middle, finite) = (share * total, self.before[self.values.len()].0);
        let low = self.before[self.low].0;
        if middle > finite || finite <= 0.0 {
            return f64::INFINITY;
        }
        let rank = middle.ceil().max(1.0);
        if rank <= low {
            return f64::NEG_INFINITY;
        }
        let half = (WINDOW * (middle * (1.0 - share)).sqrt())
            .min(finite - middle)
            .min(middle - low);
        let (from, to) = if half < 0.5 {
            (rank - 1.0, rank)
        } else {
            (middle - half, middle + half)
        };
        (self.sum_to(to) - self.sum_to(from)) / (to - from)
    }

    /// The sum of the values of this many members, the lowest.
    fn sum_to(&self, members: f64) -> f64 {
        let place = self
            .before
            .partition_point(|(before, _)| *before <= members)
            - 1;
        let (before, sum) = self.before[place];
        match self.values.get(place) {
            Some(value) if members > before => sum + (members - before) * value,
            _ => sum,
        }
    }
}

/// How a percentile of an arm is compared with that of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// (arm − baseline) / baseline.
    Change,
    /// arm − baseline.
    Difference,
}

impl Measure {
    /// A value on the scale on which resamples are symmetric around the observed value: logarithmic for a change. No value is
    /// above all others.
    fn scaled(self, value: Option<u64>) -> f64 {
        match (self, value) {
            (_, None) => f64::INFINITY,
            (Self::Change, Some(value)) => (value as f64).ln(),
            (Self::Difference, Some(value)) => value as f64,
        }
    }

    fn unscaled(self, difference: f64) -> f64 {
        match self {
            Self::Change => difference.exp_m1(),
            Self::Difference => difference,
        }
    }
}

/// Percentiles of resamples, on the scale of the measure. One without a value is infinite.
#[derive(Clone, Debug)]
pub struct Resampled {
    /// Of the connections themselves, by arm and percentile.
    pub(super) observed: Vec<Vec<f64>>,
    /// By replicate, arm and percentile.
    pub(super) draws: Vec<Vec<Vec<f64>>>,
    /// Whether they are smoothed percentiles of pairs.
    is_smoothed: bool,
}

/// Why there is no change of a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absent {
    /// The baseline has no members.
    NoBaseline,
    /// The other has no members.
    NoMembers,
    /// The member of the baseline has no value.
    BaselineUnfinished,
    /// The value of the baseline is zero: no change is relative to it.
    BaselineZero,
    /// The member of the other has no value.
    Unfinished,
}

/// A change with its confidence intervals. Unknown values are `None`; an end of an interval that is infinite is unbounded.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The observed value.
    pub estimate: Option<f64>,
    /// Why there is none.
    pub absent: Option<Absent>,
    /// The 95 % interval at this percentile alone.
    pub alone: Option<(f64, f64)>,
    /// 95 % of the resamples lie between these values at all percentiles and in all arms at once.
    pub together: Option<(f64, f64)>,
}

/// The mean of the changes at the joint percentiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overall {
    /// The mean, and its interval. An infinite end is unbounded.
    pub estimate: Estimate,
    /// The share of the last percentile that it covers.
    pub to: f64,
}

/// What is compared with the baseline, and how.
#[derive(Clone, Copy, Debug)]
pub struct BaselineComparison<'a> {
    /// The observed arms.
    pub groups: &'a [&'a Counts],
    /// The index of the baseline.
    pub baseline: usize,
    /// The percentiles.
    pub shares: &'a [f64],
    /// The measure of the comparison.
    pub measure: Measure,
    /// The number of comparisons like this that intervals are simultaneous over (Bonferroni); 1 for this one alone.
    pub looks: u32,
}

/// The minimum number of connections beyond a percentile for an interval.
pub(crate) const BEYOND_MIN: f64 = 5.0;
/// The minimum number of pairs for intervals of percentiles, since the smoothed percentiles of fewer are means of about half of their
/// values or more; and of members for a normal interval of the mean of a part.
pub(crate) const MEMBERS_MIN: f64 = 30.0;
/// The joint band covers the percentiles between these shares. Beyond them, a few connections would widen it everywhere.
const JOINT: (f64, f64) = (0.05, 0.95);
/// The last percentile of the mean of changes, if [`JOINT`]'s is lost.
const OVERALL_TO: f64 = 0.9;

fn is_between(share: f64, (from, to): (f64, f64)) -> bool {
    share >= from - 1e-9 && share <= to + 1e-9
}

/// Whether the joint band covers the percentile of this share.
pub fn is_joint(share: f64) -> bool {
    is_between(share, JOINT)
}

impl BaselineComparison<'_> {
    /// Percentiles of resamples of independent arms.
    pub fn apart(&self, replicates: usize, seed: u64) -> Resampled {
        let scaled = |values: &[Option<u64>]| -> Vec<f64> {
            values.iter().map(|one| self.measure.scaled(*one)).collect()
        };
        let draws = apart(self.groups, self.shares, replicates, seed);
        Resampled {
            observed: self
                .groups
                .iter()
                .map(|counts| {
                    let shares = self.shares.iter();
                    scaled(
                        &shares
                            .map(|share| counts.percentile(*share))
                            .collect::<Vec<_>>(),
                    )
                })
                .collect(),
            draws: draws
                .iter()
                .map(|arms| arms.iter().map(|values| scaled(values)).collect())
                .collect(),
            is_smoothed: false,
        }
    }

    /// Smoothed percentiles of resamples of pairs.
    pub fn paired(&self, pairs: &Pairs, replicates: usize, seed: u64) -> Resampled {
        let mut random = Random::new(seed, 2);
        let arms = pairs.arms.iter();
        let mut arms: Vec<Sorted> = arms.map(|arm| Sorted::new(arm, self.measure)).collect();
        let total = pairs.len() as u64;
        let mut resample = |draw: &mut dyn FnMut(usize) -> usize| -> Vec<Vec<f64>> {
            for arm in &mut arms {
                arm.counts.fill(0);
            }
            for place in 0..pairs.len() {
                let pair = draw(place);
                for arm in &mut arms {
                    arm.counts[arm.places[pair] as usize] += 1;
                }
            }
            let arms = arms.iter_mut();
            arms.map(|arm| arm.percentiles(self.shares)).collect()
        };
        Resampled {
            observed: resample(&mut |place| place),
            draws: (0..replicates)
                .map(|_| resample(&mut |_| random.below(total) as usize))
                .collect(),
            is_smoothed: true,
        }
    }

    /// The change of each arm at each percentile. That of the baseline is empty.
    pub fn intervals(&self, resampled: &Resampled) -> Vec<Vec<Interval>> {
        let mut cells = Vec::new();
        for (arm, _) in self.groups.iter().enumerate() {
            for (place, _) in self.shares.iter().enumerate() {
                cells.push(self.cell(arm, place, resampled));
            }
        }
        let critical = self.critical(&cells, resampled.draws.len());
        let intervals = cells
            .iter()
            .map(|cell| self.interval(cell, critical, resampled.is_smoothed))
            .collect::<Vec<_>>();
        intervals
            .chunks(self.shares.len().max(1))
            .map(<[Interval]>::to_vec)
            .collect()
    }

    /// The mean of the changes of each arm at the joint percentiles: of their logarithms, so that a rise by a factor and a fall by the same
    /// factor cancel. Its interval is Student's, with the standard deviation of the resampled means, and simultaneous over all arms
    /// (Bonferroni): quantiles of resamples leave out too much, as they do not count that the deviation is itself estimated. If too many
    /// transfers are incomplete for an interval with two ends, it covers the percentiles up to P90. `None` for the baseline, and if a
    /// percentile has no change.
    pub fn overall(&self, resampled: &Resampled) -> Vec<Option<Overall>> {
        let tail = 0.025 / (self.groups.len().saturating_sub(1).max(1) as f64 * self.looks());
        let of_arm = |arm: usize| {
            if arm == self.baseline {
                return None;
            }
            let mut all = [JOINT.1, OVERALL_TO].into_iter().filter_map(|to| {
                let (mean, interval) = self.mean_to(arm, to, tail, resampled)?;
                Some((mean, interval, to))
            });
            let first = all.next();
            let has_ends =
                |one: &(f64, (f64, f64), f64)| one.1.0.is_finite() && one.1.1.is_finite();
            let (mean, (low, high), to) = match first.filter(has_ends) {
                Some(one) => one,
                None => all.find(has_ends).or(first)?,
            };
            Some(Overall {
                estimate: Estimate {
                    value: self.measure.unscaled(mean),
                    interval: (self.measure.unscaled(low), self.measure.unscaled(high)),
                },
                to,
            })
        };
        (0..self.groups.len()).map(of_arm).collect()
    }

    /// The mean of the differences of an arm at the joint percentiles to a share, and its interval, on the scale of the measure.
    fn mean_to(
        &self,
        arm: usize,
        to: f64,
        tail: f64,
        resampled: &Resampled,
    ) -> Option<(f64, (f64, f64))> {
        let places: Vec<usize> = (0..self.shares.len())
            .filter(|place| is_between(self.shares[*place], (JOINT.0, to)))
            .collect();
        let mean = |difference: &dyn Fn(usize) -> f64| {
            places.iter().map(|place| difference(*place)).sum::<f64>() / places.len() as f64
        };
        let value = mean(&|place| self.observed(arm, place).unwrap_or(f64::NAN));
        if !value.is_finite() {
            return None;
        }
        let of = |arms: &[Vec<f64>]| mean(&|place| arms[arm][place] - arms[self.baseline][place]);
        let draws: Vec<f64> = resampled.draws.iter().map(|arms| of(arms)).collect();
        let center = of(&resampled.observed);
        let is_open = open_sides(&draws, tail);
        // The mean leaves out a twentieth of the members on each side, and the deviation follows from the others.
        let members = self.members(arm);
        let degrees = (members * (JOINT.1 - JOINT.0) - 1.0).max(1.0);
        let small = (members / (members - 1.0).max(1.0)).sqrt();
        let cell = Cell {
            center,
            deviation: deviation(&draws, center, is_open) * small,
            is_open,
            ..Cell::default()
        };
        let interval = cell.within(special::student_quantile(tail, degrees));
        Some((value, cell.containing(interval, value)))
    }

    /// The observed difference, on the scale of the measure: infinitely low where a value fell to zero.
    fn observed(&self, arm: usize, place: usize) -> Result<f64, Absent> {
        let [ours, base] = [arm, self.baseline].map(|arm| self.groups[arm]);
        let share = self.shares[place];
        if base.total() == 0 {
            return Err(Absent::NoBaseline);
        }
        if ours.total() == 0 {
            return Err(Absent::NoMembers);
        }
        let base = base.percentile(share).ok_or(Absent::BaselineUnfinished)?;
        if base == 0 && self.measure == Measure::Change {
            return Err(Absent::BaselineZero);
        }
        let ours = ours.percentile(share).ok_or(Absent::Unfinished)?;
        Ok(self.measure.scaled(Some(ours)) - self.measure.scaled(Some(base)))
    }

    fn cell(&self, arm: usize, place: usize, resampled: &Resampled) -> Cell {
        let observed = &resampled.observed;
        let share = self.shares[place];
        let (estimate, absent) = match self.observed(arm, place) {
            _ if arm == self.baseline => (None, None),
            Ok(estimate) => (Some(estimate), None),
            Err(absent) => (None, Some(absent)),
        };
        let beyond = |arm: usize| self.groups[arm].total() as f64 * share.min(1.0 - share);
        let members = self.members(arm);
        let is_wide = beyond(arm).min(beyond(self.baseline)) >= BEYOND_MIN
            && (!resampled.is_smoothed || members >= MEMBERS_MIN);
        let center = observed[arm][place] - observed[self.baseline][place];
        let draws = resampled.draws.iter();
        let draws: Vec<f64> = draws
            .map(|arms| arms[arm][place] - arms[self.baseline][place])
            .collect();
        let fell_to_zero = estimate == Some(f64::NEG_INFINITY);
        if fell_to_zero && is_wide {
            return Cell {
                estimate,
                draws,
                fell_to_zero,
                is_joint: is_joint(share),
                ..Cell::default()
            };
        }
        if estimate.is_none() || !is_wide || !center.is_finite() {
            return Cell {
                estimate,
                absent,
                ..Cell::default()
            };
        }
        let is_open = open_sides(&draws, INFINITE_MAX);
        let deviation = deviation(&draws, center, is_open);
        // Values are rounded to whole numbers, so smaller differences are unknown.
        let grain = match self.measure {
            Measure::Change => {
                let value = |arm: usize| self.groups[arm].percentile(share).unwrap_or(1).max(1);
                (1.0 / value(arm) as f64).hypot(1.0 / value(self.baseline) as f64)
            }
            Measure::Difference => core::f64::consts::SQRT_2,
        };
        Cell {
            estimate,
            center,
            deviation: deviation.hypot(grain / 12f64.sqrt()),
            pairs: resampled.is_smoothed.then_some(members),
            is_open,
            is_joint: is_joint(share),
            draws,
            ..Cell::default()
        }
    }

    /// The number of members of the smaller of an arm and the baseline.
    fn members(&self, arm: usize) -> f64 {
        let [ours, base] = [arm, self.baseline].map(|arm| self.groups[arm].total());
        ours.min(base) as f64
    }

    fn looks(&self) -> f64 {
        f64::from(self.looks.max(1))
    }

    /// The number of standard deviations within which 95 % of the resamples lie, at all joint percentiles and in all arms at
    /// once; more of them for several looks. Sides that are open do not count.
    fn critical(&self, cells: &[Cell], replicates: usize) -> f64 {
        let joint = cells
            .iter()
            .filter(|cell| cell.is_joint && !cell.fell_to_zero);
        let joint: Vec<&Cell> = joint.collect();
        let mut farthest: Vec<f64> = (0..replicates)
            .map(|replicate| {
                let distances = joint.iter().map(|cell| cell.distance(replicate));
                distances.fold(0.0, f64::max)
            })
            .collect();
        farthest.sort_by(f64::total_cmp);
        let rank = ((1.0 - 0.05 / self.looks()) * farthest.len() as f64).ceil() as usize;
        let least = simultaneous(self.looks.max(1) as usize);
        farthest
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(least)
            .max(least)
    }

    fn interval(&self, cell: &Cell, critical: f64, is_smoothed: bool) -> Interval {
        let Some(estimate) = cell.estimate else {
            return Interval {
                absent: cell.absent,
                ..Interval::default()
            };
        };
        let unscaled = |interval: (f64, f64)| {
            let (low, high) = cell.containing(interval, estimate);
            (self.measure.unscaled(low), self.measure.unscaled(high))
        };
        let is_known = !cell.draws.is_empty();
        if cell.fell_to_zero && is_known {
            // There is no distance from it on this scale, so both intervals are quantiles.
            let together = between(&cell.draws, INFINITE_MAX / self.looks());
            return Interval {
                estimate: Some(self.measure.unscaled(estimate)),
                absent: None,
                alone: Some(unscaled(between(&cell.draws, 0.025))),
                together: cell.is_joint.then(|| unscaled(together)),
            };
        }
        // Smoothed percentiles are nearly normal on this scale, and normal intervals have the level that they claim.
        let alone = || {
            if is_smoothed && cell.is_open == [false; 2] {
                cell.within(Z_95)
            } else {
                between(&cell.draws, 0.025)
            }
        };
        Interval {
            estimate: Some(self.measure.unscaled(estimate)),
            absent: None,
            alone: is_known.then(|| unscaled(alone())),
            together: (is_known && cell.is_joint).then(|| unscaled(cell.within(critical))),
        }
    }
}

/// Whether more than this share of the draws is infinite, below and above. A difference of two percentiles without values can be
/// anything.
fn open_sides(draws: &[f64], most: f64) -> [bool; 2] {
    [false, true].map(|is_above| {
        let lost = draws.iter().filter(|draw| {
            draw.is_nan() || (draw.is_infinite() && draw.is_sign_positive() == is_above)
        });
        lost.count() as f64 > most * draws.len() as f64
    })
}

/// The values that leave out this share of the draws on each side. A draw that can be anything is outside of both.
fn between(draws: &[f64], tail: f64) -> (f64, f64) {
    let at = |share: f64, unknown: f64| {
        let mut sorted: Vec<f64> = draws
            .iter()
            .map(|draw| if draw.is_nan() { unknown } else { *draw })
            .collect();
        let rank = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
        *sorted.select_nth_unstable_by(rank - 1, f64::total_cmp).1
    };
    if draws.is_empty() {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    (at(tail, f64::NEG_INFINITY), at(1.0 - tail, f64::INFINITY))
}

/// The standard deviation of finite draws. With an open side, what is known of them is on the other side of the center.
fn deviation(draws: &[f64], center: f64, is_open: [bool; 2]) -> f64 {
    let finite = || draws.iter().copied().filter(|draw| draw.is_finite());
    let squares = |draws: &mut dyn Iterator<Item = f64>, around: f64| {
        let (mut count, mut sum) = (0.0f64, 0.0);
        for draw in draws {
            count += 1.0;
            sum += (draw - around).powi(2);
        }
        (count, sum)
    };
    match is_open {
        [false, false] => {
            let (mut count, mut sum) = (0.0f64, 0.0);
            for draw in finite() {
                count += 1.0;
                sum += draw;
            }
            let (count, squares) = squares(&mut finite(), sum / count.max(1.0));
            (squares / (count - 1.0).max(1.0)).sqrt()
        }
        [is_low, is_high] => {
            let known = |draw: &f64| (*draw <= center && !is_low) || (*draw >= center && !is_high);
            let (count, squares) = squares(&mut finite().filter(known), center);
            (squares / count.max(1.0)).sqrt()
        }
    }
}

/// A percentile of an arm, on the scale of the measure.
#[derive(Clone, Debug, Default)]
struct Cell {
    estimate: Option<f64>,
    absent: Option<Absent>,
    /// Whether the observed value is zero and that of the baseline is not.
    fell_to_zero: bool,
    /// What the draws vary around.
    center: f64,
    deviation: f64,
    /// The number of pairs that the deviation follows from; `None` if they are not paired.
    pairs: Option<f64>,
    /// Whether the interval is unbounded below and above.
    is_open: [bool; 2],
    is_joint: bool,
    /// Empty without an interval.
    draws: Vec<f64>,
}

impl Cell {
    /// The interval with the observed value, which one of smoothed percentiles may not contain, and on each side of it half of what the
    /// interval has there: an interval does not end at a value that is itself uncertain.
    fn containing(&self, (low, high): (f64, f64), value: f64) -> (f64, f64) {
        let room = |end: f64| (end - self.center).abs() / 2.0;
        (low.min(value - room(low)), high.max(value + room(high)))
    }

    /// The interval of this many standard deviations, as if they were known: that of pairs is estimated from them, so it is Student's.
    fn within(&self, deviations: f64) -> (f64, f64) {
        let factor = self.pairs.map_or(deviations, |pairs| {
            let small = (pairs / (pairs - 1.0)).sqrt();
            small * special::student_of(deviations, pairs - 1.0)
        });
        let half = factor * self.deviation;
        let [is_low, is_high] = self.is_open;
        (
            if is_low {
                f64::NEG_INFINITY
            } else {
                self.center - half
            },
            if is_high {
                f64::INFINITY
            } else {
                self.center + half
            },
        )
    }

    /// The distance of a draw from the center in standard deviations; zero on an open side.
    fn distance(&self, replicate: usize) -> f64 {
        let draw = self.draws.get(replicate).copied().unwrap_or(self.center);
        let is_outside = match self.is_open {
            [true, true] => return 0.0,
            [true, false] => draw > self.center,
            [false, true] => draw < self.center,
            [false, false] => true,
        };
        if draw.is_nan() {
            f64::INFINITY
        } else if is_outside {
            (draw - self.center).abs() / self.deviation
        } else {
            0.0
        }
    }
}
