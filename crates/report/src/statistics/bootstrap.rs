//! Bootstrap: percentiles of resampled groups, and the confidence intervals of changes that follow.
//!
//! Independent groups: the percentiles of a resample are the values at resampled ranks, and these ranks are order statistics of
//! uniform variates, whose gaps are gamma variates. The cost of a resample depends on the number of percentiles and not on the
//! number of connections, and the distribution is exactly that of drawing each connection.
//!
//! Pairs: a pair is drawn as a unit, so what its connections have in common (the path) is in every arm of a resample and does
//! not widen the interval of the difference.

use super::{
    Z_95,
    counts::{Counts, rank},
    random::Random,
    tests_of::Estimate,
};

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
    #[must_use]
    pub fn len(&self) -> usize {
        self.arms.first().map_or(0, Vec::len)
    }

    /// The number of arms.
    #[must_use]
    pub const fn arms(&self) -> usize {
        self.arms.len()
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of the pairs that exist in both arms.
    pub fn of(
        &self,
        first: usize,
        second: usize,
    ) -> impl Iterator<Item = (Option<u64>, Option<u64>)> + '_ {
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

/// Percentiles of resamples: by replicate, by arm, by percentile; `None` where the member of that rank has no value.
type Resampled = Vec<Vec<Vec<Option<u64>>>>;

/// Percentiles of resamples of independent groups.
#[must_use]
pub fn apart(groups: &[&Counts], shares: &[f64], replicates: usize, seed: u64) -> Resampled {
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

/// Percentiles of resamples of pairs.
#[must_use]
pub fn paired(pairs: &Pairs, shares: &[f64], replicates: usize, seed: u64) -> Resampled {
    let mut random = Random::new(seed, 2);
    // The index of each value among the distinct values of the arm, so that a resample is counted without sorting.
    let arms: Vec<(Vec<u32>, Vec<u64>)> = pairs
        .arms
        .iter()
        .map(|values| {
            let mut distinct = values.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let places = values
                .iter()
                .map(|value| distinct.partition_point(|other| other < value) as u32);
            (places.collect(), distinct)
        })
        .collect();
    let mut counts: Vec<Vec<u32>> = arms
        .iter()
        .map(|(_, distinct)| vec![0; distinct.len()])
        .collect();
    let total = pairs.len() as u64;
    let all = (0..replicates).map(|_| {
        for counts in &mut counts {
            counts.fill(0);
        }
        for _ in 0..total {
            let pair = random.below(total) as usize;
            for ((places, _), counts) in arms.iter().zip(&mut counts) {
                counts[places[pair] as usize] += 1;
            }
        }
        let arms = arms
            .iter()
            .zip(&counts)
            .map(|((_, distinct), counts)| of_counted(distinct, counts, shares));
        arms.collect()
    });
    all.collect()
}

fn of_counted(distinct: &[u64], counts: &[u32], shares: &[f64]) -> Vec<Option<u64>> {
    let there = distinct
        .iter()
        .zip(counts)
        .filter(|(value, _)| **value != ABSENT);
    let total: u64 = there.clone().map(|(_, count)| u64::from(*count)).sum();
    let mut there = there;
    let (mut value, mut passed) = (None, 0);
    let percentiles = shares.iter().map(|share| {
        let rank = rank(total, *share);
        while passed < rank {
            let Some((next, count)) = there.next() else {
                break;
            };
            passed += u64::from(*count);
            value = (*next != UNFINISHED).then_some(*next);
        }
        value
    });
    percentiles.collect()
}

/// How a percentile of an arm is compared with that of the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// (arm − baseline) / baseline.
    Change,
    /// arm − baseline.
    Difference,
}

/// A change with its confidence intervals. Unknown values are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The observed value.
    pub estimate: Option<f64>,
    /// 95 % of the resamples lie between these values at this percentile alone.
    pub alone: Option<(f64, f64)>,
    /// 95 % of the resamples lie between these values at all percentiles and in all arms at once.
    pub together: Option<(f64, f64)>,
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
}

/// The minimum number of connections beyond a percentile for an interval.
pub(crate) const BEYOND_MIN: f64 = 5.0;
/// The joint band covers the percentiles between these shares. Beyond them, a few connections would widen it everywhere.
const JOINT: (f64, f64) = (0.05, 0.95);

/// Whether the joint band covers the percentile of this share.
#[must_use]
pub fn is_joint(share: f64) -> bool {
    share >= JOINT.0 - 1e-9 && share <= JOINT.1 + 1e-9
}

impl BaselineComparison<'_> {
    /// The change of each arm at each percentile. That of the baseline is empty.
    #[must_use]
    pub fn intervals(&self, resampled: &Resampled) -> Vec<Vec<Interval>> {
        let seen: Vec<Vec<Option<u64>>> = self
            .groups
            .iter()
            .map(|counts| {
                self.shares
                    .iter()
                    .map(|share| counts.percentile(*share))
                    .collect()
            })
            .collect();
        let mut cells = Vec::new();
        for (arm, _) in self.groups.iter().enumerate() {
            for (place, _) in self.shares.iter().enumerate() {
                cells.push(self.cell(arm, place, &seen, resampled));
            }
        }
        let critical = Self::critical(&cells, resampled.len());
        let intervals = cells
            .iter()
            .map(|cell| self.interval(cell, critical))
            .collect::<Vec<_>>();
        intervals
            .chunks(self.shares.len().max(1))
            .map(<[Interval]>::to_vec)
            .collect()
    }

    /// The mean of the changes of each arm at the joint percentiles, with an interval that is simultaneous over all arms
    /// (Bonferroni). `None` for the baseline, and if a percentile has no change.
    #[must_use]
    pub fn overall(&self, resampled: &Resampled) -> Vec<Option<Estimate>> {
        let joint = || {
            let places = self.shares.iter().enumerate();
            places.filter(|(_, share)| is_joint(**share))
        };
        let arms = self.groups.len();
        let tail = 0.025 / arms.saturating_sub(1).max(1) as f64;
        let mean = |value: &dyn Fn(usize, usize) -> Option<u64>, arm: usize| {
            let mut sum = 0.0;
            for (place, _) in joint() {
                let change = self.scaled(value(arm, place), value(self.baseline, place))?;
                sum += self.unscaled(change);
            }
            Some(sum / joint().count().max(1) as f64)
        };
        let of_arm = |arm: usize| {
            if arm == self.baseline {
                return None;
            }
            let seen = |arm: usize, place: usize| self.groups[arm].percentile(self.shares[place]);
            let value = mean(&seen, arm)?;
            let draws: Option<Vec<f64>> = resampled
                .iter()
                .map(|by_arm| {
                    let drawn = |arm: usize, place: usize| *by_arm.get(arm)?.get(place)?;
                    mean(&drawn, arm)
                })
                .collect();
            let mut draws = draws?;
            draws.sort_by(f64::total_cmp);
            let at = |share: f64| {
                let rank = (share * draws.len() as f64).ceil() as usize;
                draws.get(rank.saturating_sub(1)).copied()
            };
            Some(Estimate {
                value,
                interval: (at(tail)?, at(1.0 - tail)?),
            })
        };
        (0..arms).map(of_arm).collect()
    }

    fn cell(
        &self,
        arm: usize,
        place: usize,
        seen: &[Vec<Option<u64>>],
        resampled: &Resampled,
    ) -> Cell {
        if arm == self.baseline {
            return Cell::default();
        }
        let value = |by_arm: &[Vec<Option<u64>>], arm: usize| {
            by_arm.get(arm).and_then(|by_share| *by_share.get(place)?)
        };
        let (one, base) = (value(seen, arm), value(seen, self.baseline));
        let Some(center) = self.scaled(one, base) else {
            return Cell::default();
        };
        let share = self.shares[place];
        let beyond = |arm: usize| self.groups[arm].total() as f64 * share.min(1.0 - share);
        if beyond(arm).min(beyond(self.baseline)) < BEYOND_MIN {
            return Cell {
                center: Some(center),
                ..Cell::default()
            };
        }
        let draws: Option<Vec<f64>> = resampled
            .iter()
            .map(|by_arm| self.scaled(value(by_arm, arm), value(by_arm, self.baseline)))
            .collect();
        let Some(draws) = draws else {
            return Cell {
                center: Some(center),
                ..Cell::default()
            };
        };
        let count = draws.len().max(2) as f64;
        let mean = draws.iter().sum::<f64>() / count;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / (count - 1.0);
        // Values are rounded to whole numbers, so smaller differences are unknown.
        let grain = match self.measure {
            Measure::Change => {
                (1.0 / one.unwrap_or(1).max(1) as f64).hypot(1.0 / base.unwrap_or(1).max(1) as f64)
            }
            Measure::Difference => core::f64::consts::SQRT_2,
        };
        let deviation = (variance + grain * grain / 12.0).sqrt();
        Cell {
            center: Some(center),
            deviation: Some(deviation),
            is_joint: is_joint(share),
            draws,
        }
    }

    /// The value on the scale on which resamples are symmetric around the observed value: logarithmic for a change.
    fn scaled(&self, one: Option<u64>, base: Option<u64>) -> Option<f64> {
        let (one, base) = (one? as f64, base? as f64);
        match self.measure {
            Measure::Change if one > 0.0 && base > 0.0 => Some((one / base).ln()),
            Measure::Change => None,
            Measure::Difference => Some(one - base),
        }
    }

    fn unscaled(&self, value: f64) -> f64 {
        match self.measure {
            Measure::Change => value.exp_m1(),
            Measure::Difference => value,
        }
    }

    /// The number of standard deviations within which 95 % of the resamples lie, at all joint percentiles and in all arms at
    /// once.
    fn critical(cells: &[Cell], replicates: usize) -> f64 {
        let joint: Vec<&Cell> = cells.iter().filter(|cell| cell.is_joint).collect();
        let mut farthest: Vec<f64> = (0..replicates)
            .map(|replicate| {
                let distances = joint.iter().filter_map(|cell| {
                    Some((cell.draws.get(replicate)? - cell.center?).abs() / cell.deviation?)
                });
                distances.fold(0.0, f64::max)
            })
            .collect();
        farthest.sort_by(f64::total_cmp);
        let rank = (0.95 * farthest.len() as f64).ceil() as usize;
        farthest
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(Z_95)
            .max(Z_95)
    }

    fn interval(&self, cell: &Cell, critical: f64) -> Interval {
        let mut sorted = cell.draws.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted
                .get(rank.saturating_sub(1))
                .map(|value| self.unscaled(*value))
        };
        let together = cell.center.zip(cell.deviation).filter(|_| cell.is_joint);
        Interval {
            estimate: cell.center.map(|center| self.unscaled(center)),
            alone: at(0.025).zip(at(0.975)),
            together: together.map(|(center, deviation)| {
                (
                    self.unscaled(center - critical * deviation),
                    self.unscaled(center + critical * deviation),
                )
            }),
        }
    }
}

/// A percentile of an arm.
#[derive(Clone, Debug, Default)]
struct Cell {
    center: Option<f64>,
    deviation: Option<f64>,
    is_joint: bool,
    draws: Vec<f64>,
}
