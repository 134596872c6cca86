//! Where the time of transfers goes: the parts of their times to last byte, by percentile, and their difference between arms.
//!
//! `lastbyte_quic::anatomy` defines the parts. Only completed transfers have them all, so others do not count here, and of a pair
//! neither does the other member. Memory grows with the number of distinct times, not with the number of lines.

use std::collections::BTreeMap;

use super::{format::count, queries::PARTS};
use crate::statistics::{
    bootstrap::MEMBERS_MIN,
    tests_of::{self, Estimate},
};

/// The parts of a time, in milliseconds, in the order of [`PARTS`].
pub(super) type Times = [f64; PARTS.len()];

/// Their places in [`PARTS`].
const APPLICATION: usize = 0;
pub(super) const FLOW_CONTROL: usize = 1;
/// The place of the sum of both among moments.
const BOTH: usize = PARTS.len();

/// The bands of percentiles of the chart.
pub(super) const BANDS: [(f64, f64, &str); 6] = [
    (0.0, 1.0, "all"),
    (0.0, 0.25, "P0–P25"),
    (0.25, 0.5, "P25–P50"),
    (0.5, 0.75, "P50–P75"),
    (0.75, 0.95, "P75–P95"),
    (0.95, 1.0, "P95–P100"),
];

/// Mean and variance of values, in one pass (Welford).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let step = value - self.mean;
        self.mean += step / self.count;
        self.squares += step * (value - self.mean);
    }

    /// The variance of the mean; infinite if there are too few values for an interval.
    fn uncertainty(&self) -> f64 {
        if self.count < MEMBERS_MIN {
            return f64::INFINITY;
        }
        self.squares / (self.count - 1.0) / self.count
    }

    /// The mean, in an interval of `z` standard deviations. `None` for fewer than [`MEMBERS_MIN`] values.
    pub(super) fn interval(&self, z: f64) -> Option<Estimate> {
        estimate(self.mean, self.uncertainty(), z)
    }
}

/// Of each part, and of [`BOTH`].
type AllMoments = [Moments; PARTS.len() + 1];

fn add(moments: &mut AllMoments, times: &Times) {
    let both = times[APPLICATION] + times[FLOW_CONTROL];
    for (moments, time) in moments.iter_mut().zip(times.iter().chain([&both])) {
        moments.add(*time);
    }
}

/// Counts the parts of a log.
#[derive(Clone, Debug, Default)]
pub(super) struct PartCounts {
    /// By arm and time to last byte in microseconds: the number of transfers, and the sum of each part.
    by_ttlb: BTreeMap<(usize, u64), (u64, Times)>,
    by_arm: BTreeMap<usize, AllMoments>,
    /// Of members of a pair: the second arm's parts minus the first's, by the arms, the lower one first.
    by_pair: BTreeMap<(usize, usize), AllMoments>,
    /// The last seed, and the members with it.
    seed: Option<u64>,
    members: Vec<(usize, Times)>,
    /// Transfers of older logs, whose application part includes flow control.
    unsplit: u64,
}

impl PartCounts {
    /// Counts a completed transfer.
    pub(super) fn add(
        &mut self,
        arm: usize,
        ttlb: u64,
        seed: Option<u64>,
        times: Times,
        is_split: bool,
    ) {
        self.unsplit += u64::from(!is_split);
        let (count, sums) = self.by_ttlb.entry((arm, ttlb)).or_default();
        *count += 1;
        for (sum, time) in sums.iter_mut().zip(times) {
            *sum += time;
        }
        add(self.by_arm.entry(arm).or_default(), &times);
        if seed.is_none() || self.seed != seed {
            self.members.clear();
            self.seed = seed;
        }
        if self.members.iter().any(|(other, _)| *other == arm) {
            return;
        }
        for (other, theirs) in &self.members {
            let sign = if *other < arm { 1.0 } else { -1.0 };
            let key = (arm.min(*other), arm.max(*other));
            let mut differences = times;
            for (ours, theirs) in differences.iter_mut().zip(theirs) {
                *ours = sign * (*ours - theirs);
            }
            add(self.by_pair.entry(key).or_default(), &differences);
        }
        if seed.is_some() {
            self.members.push((arm, times));
        }
    }
}

/// The parts of all arms, the baseline first.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Completed transfers with known parts.
    pub(super) counts: Vec<u64>,
    /// The mean of each part, by band and arm.
    pub(super) means: Vec<Vec<Times>>,
    /// The difference of each mean from the baseline's in milliseconds, in intervals that are simultaneous over all parts and arms.
    pub(super) differences: Vec<[Option<Estimate>; PARTS.len()]>,
    pub(super) query: String,
    /// Transfers that do not have flow control apart. If there are any, the application part of all includes it.
    pub(super) unsplit: u64,
}

impl Parts {
    /// `None` if an arm has no transfers with known parts.
    pub(super) fn new(
        counts: &PartCounts,
        order: &[usize],
        is_paired: bool,
        looks: u32,
        query: String,
    ) -> Option<Self> {
        let intervals = PARTS.len() * order.len().saturating_sub(1);
        let z = tests_of::simultaneous(intervals * looks as usize);
        let totals: Vec<u64> = order
            .iter()
            .map(|arm| of_arm(counts, *arm).map(|(_, (count, _))| count).sum())
            .collect();
        if totals.contains(&0) {
            return None;
        }
        let is_split = counts.unsplit == 0;
        let means = BANDS.map(|(from, to, _)| {
            let arms = order.iter().zip(&totals);
            arms.map(|(arm, total)| {
                let mut times = band(counts, *arm, *total as f64, from, to);
                if !is_split {
                    times[APPLICATION] += core::mem::take(&mut times[FLOW_CONTROL]);
                }
                times
            })
            .collect()
        });
        let baseline = order.first().copied()?;
        let differences = order.iter().map(|arm| {
            let mut differences = [None; PARTS.len()];
            if *arm != baseline {
                for (part, difference) in differences.iter_mut().enumerate() {
                    let part = match part {
                        FLOW_CONTROL if !is_split => continue,
                        APPLICATION if !is_split => BOTH,
                        part => part,
                    };
                    *difference = if is_paired {
                        paired(counts, *arm, baseline, part, z)
                    } else {
                        apart(counts, *arm, baseline, part, z)
                    };
                }
            }
            differences
        });
        Some(Self {
            differences: differences.collect(),
            counts: totals,
            means: means.into(),
            query,
            unsplit: counts.unsplit,
        })
    }

    /// Whether a part is known apart from the others.
    pub(super) fn is_known(&self, part: usize) -> bool {
        part != FLOW_CONTROL || self.unsplit == 0
    }

    /// What is not known of older logs.
    pub(super) fn note(&self) -> Option<String> {
        let all: u64 = self.counts.iter().sum();
        (self.unsplit > 0).then(|| {
            format!(
                "{} of these {} transfers have no `{}`, so application includes flow control here.",
                count(self.unsplit),
                count(all),
                PARTS[FLOW_CONTROL].0.name()
            )
        })
    }
}

fn of_arm(counts: &PartCounts, arm: usize) -> impl Iterator<Item = (u64, &(u64, Times))> {
    let range = counts.by_ttlb.range((arm, 0)..=(arm, u64::MAX));
    range.map(|((_, ttlb), sums)| (*ttlb, sums))
}

/// The means of the transfers between two percentiles. Transfers of the same time that lie on both sides of one count in part.
fn band(counts: &PartCounts, arm: usize, total: f64, from: f64, to: f64) -> Times {
    let (from, to) = (from * total, to * total);
    let (mut before, mut sums, mut weight) = (0.0, Times::default(), 0.0);
    for (_, (count, parts)) in of_arm(counts, arm) {
        let count = *count as f64;
        let inside = ((before + count).min(to) - before.max(from)).max(0.0);
        before += count;
        weight += inside;
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum += part * inside / count;
        }
    }
    sums.map(|sum| if weight > 0.0 { sum / weight } else { 0.0 })
}

fn estimate(value: f64, variance: f64, z: f64) -> Option<Estimate> {
    let half = z * variance.sqrt();
    half.is_finite().then_some(Estimate {
        value,
        interval: (value - half, value + half),
    })
}

fn paired(counts: &PartCounts, arm: usize, base: usize, part: usize, z: f64) -> Option<Estimate> {
    let moments = counts.by_pair.get(&(arm.min(base), arm.max(base)))?[part];
    let sign = if base < arm { 1.0 } else { -1.0 };
    estimate(sign * moments.mean, moments.uncertainty(), z)
}

fn apart(counts: &PartCounts, arm: usize, base: usize, part: usize, z: f64) -> Option<Estimate> {
    let (ours, theirs) = (
        counts.by_arm.get(&arm)?[part],
        counts.by_arm.get(&base)?[part],
    );
    estimate(
        ours.mean - theirs.mean,
        ours.uncertainty() + theirs.uncertainty(),
        z,
    )
}
