//! Harm: what the neighbours of transfers lose or gain, by kind of neighbour. Only paired connections of logs with `neighbour.…`
//! have it: the neighbour of a path in an arm is compared with the neighbour of the same path in the baseline.
//!
//! Rates of paths differ by factors of a thousand, so rates are compared by their ratio on each path: its geometric mean, with
//! each path's ratio limited to a factor of [`RATIO_MAX`]. Delays and losses are compared by their differences.

use core::num::NonZeroUsize;

use super::{parts::Moments, paths, queries::QueryBuilder};
use crate::statistics::{
    bootstrap::Interval,
    counts::rank,
    tests_of::{self, Estimate},
};

/// The outcome of a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct NeighbourStats {
    /// In bits per second.
    pub(super) rate: f64,
    /// The mean time in the queue, in milliseconds; `None` if it had no packets.
    pub(super) delay: Option<f64>,
    /// The share of its packets that were lost; `None` if it had none.
    pub(super) loss: Option<f64>,
}

/// A path, by the arms' places in the tally.
#[derive(Clone, Debug)]
struct PathOf {
    kind: usize,
    arms: Vec<Option<NeighbourStats>>,
}

/// The neighbours of a log, path by path.
#[derive(Clone, Debug, Default)]
pub(super) struct NeighbourCounts {
    kinds: Vec<String>,
    paths: Vec<PathOf>,
    seed: Option<u64>,
}

impl NeighbourCounts {
    /// Counts a connection with a neighbour. Consecutive connections of the same seed are of one path.
    pub(super) fn add(&mut self, arm: usize, seed: Option<u64>, kind: &str, got: NeighbourStats) {
        if seed.is_none() {
            return;
        }
        let kind = match self.kinds.iter().position(|one| one == kind) {
            Some(kind) => kind,
            // No log of ours has more.
            None if self.kinds.len() >= KINDS_MAX => return,
            None => {
                self.kinds.push(kind.to_owned());
                self.kinds.len() - 1
            }
        };
        let is_next = self.seed != seed;
        self.seed = seed;
        match self.paths.last_mut() {
            Some(path) if !is_next && path.kind == kind => {
                if path.arms.len() <= arm {
                    path.arms.resize(arm + 1, None);
                }
                path.arms[arm] = Some(got);
            }
            _ => {
                let mut arms = vec![None; arm + 1];
                arms[arm] = Some(got);
                self.paths.push(PathOf { kind, arms });
            }
        }
    }
}

/// A kind of neighbour, and its outcome beside each arm, the baseline first.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) name: String,
    /// Paths with the arm and the baseline.
    pub(super) counts: Vec<u64>,
    /// The change of each path's rate at the percentiles 1 to 99.
    pub(super) curves: Vec<Vec<Interval>>,
    /// The median rate in bits per second, the mean delay in milliseconds, and the mean loss in percent.
    pub(super) typical: Vec<[Option<f64>; 3]>,
    /// The geometric mean of the ratios of rates, minus one; the difference of the delay in milliseconds; and of the loss in
    /// percentage points. The intervals are simultaneous over all kinds and arms.
    pub(super) differences: Vec<[Option<Estimate>; 3]>,
    /// The share of paths whose neighbour gets less by more than [`paths::NOTABLE`], in an interval that is simultaneous likewise.
    pub(super) less: Vec<Option<Estimate>>,
    /// The query for the typical values of all arms.
    pub(super) query: String,
}

impl Kind {
    /// Whether an arm's value differs significantly.
    pub(super) fn is_significant(&self) -> bool {
        let all = self.differences.iter().flatten().flatten();
        all.into_iter().any(Estimate::excludes_zero)
    }
}

/// All kinds, by name. `None` if no path has a neighbour in two arms.
pub(super) fn kinds(
    counts: &NeighbourCounts,
    order: &[usize],
    queries: &QueryBuilder<'_>,
    looks: u32,
) -> Option<Vec<Kind>> {
    let others = NonZeroUsize::new(order.len().saturating_sub(1))?.get();
    let is_paired = |path: &PathOf| path.arms.iter().flatten().count() > 1;
    if !counts.paths.iter().any(is_paired) {
        return None;
    }
    let list = counts.kinds.len() * others * looks as usize;
    let [z_differences, z_shares] = [3 * list, list].map(tests_of::simultaneous);
    let mut all: Vec<Kind> = (0..counts.kinds.len())
        .map(|kind| of_kind(counts, kind, order, queries, z_differences, z_shares))
        .collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Some(all)
}

fn of_kind(
    counts: &NeighbourCounts,
    kind: usize,
    order: &[usize],
    queries: &QueryBuilder<'_>,
    z_differences: f64,
    z_shares: f64,
) -> Kind {
    let name = counts.kinds[kind].clone();
    let got = |path: &PathOf, arm: usize| path.arms.get(order[arm]).copied().flatten();
    let paths = || counts.paths.iter().filter(|path| path.kind == kind);
    let mut one = Kind {
        query: queries.neighbours(&name),
        name,
        counts: vec![0; order.len()],
        curves: vec![Vec::new(); order.len()],
        typical: Vec::new(),
        differences: vec![[None; 3]; order.len()],
        less: vec![None; order.len()],
    };
    for arm in 0..order.len() {
        let all: Vec<NeighbourStats> = paths().filter_map(|path| got(path, arm)).collect();
        one.typical.push(typical(&all));
        if arm == 0 {
            continue;
        }
        let pairs: Vec<(NeighbourStats, NeighbourStats)> = paths()
            .filter_map(|path| got(path, arm).zip(got(path, 0)))
            .collect();
        let mut changes: Vec<f64> = pairs
            .iter()
            .map(|(ours, base)| change(ours.rate, base.rate))
            .collect();
        changes.sort_by(f64::total_cmp);
        let less = changes.iter().filter(|change| **change < -paths::NOTABLE);
        one.counts[arm] = pairs.len() as u64;
        one.less[arm] = tests_of::share(less.count() as u64, pairs.len() as u64, z_shares);
        one.curves[arm] = paths::curve(&changes);
        one.differences[arm] = differences(&pairs, z_differences);
    }
    one
}

fn differences(pairs: &[(NeighbourStats, NeighbourStats)], z: f64) -> [Option<Estimate>; 3] {
    let mut moments = [Moments::default(); 3];
    for (ours, base) in pairs {
        moments[0].add(log_ratio(ours.rate, base.rate));
        if let Some((ours, base)) = ours.delay.zip(base.delay) {
            moments[1].add(ours - base);
        }
        if let Some((ours, base)) = ours.loss.zip(base.loss) {
            moments[2].add((ours - base) * 100.0);
        }
    }
    let [rate, delay, loss] = moments.map(|one| one.interval(z));
    let rate = rate.map(|one| Estimate {
        value: one.value.exp_m1(),
        interval: (one.interval.0.exp_m1(), one.interval.1.exp_m1()),
    });
    [rate, delay, loss]
}

/// The share by which a rate differs from the baseline's. Where neither neighbour got anything, nothing changed.
fn change(ours: f64, base: f64) -> f64 {
    if ours <= 0.0 && base <= 0.0 {
        0.0
    } else if base <= 0.0 {
        f64::INFINITY
    } else {
        ours / base - 1.0
    }
}

fn log_ratio(ours: f64, base: f64) -> f64 {
    let ratio = change(ours, base) + 1.0;
    ratio.clamp(1.0 / RATIO_MAX, RATIO_MAX).ln()
}

fn typical(all: &[NeighbourStats]) -> [Option<f64>; 3] {
    let mut rates: Vec<f64> = all.iter().map(|got| got.rate).collect();
    rates.sort_by(f64::total_cmp);
    let median = (rank(rates.len() as u64, 0.5) as usize).checked_sub(1);
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    [
        median.and_then(|place| rates.get(place).copied()),
        mean(all.iter().filter_map(|got| got.delay).collect()),
        mean(
            all.iter()
                .filter_map(|got| got.loss.map(|loss| loss * 100.0))
                .collect(),
        ),
    ]
}

/// A path counts as a ratio of rates of at most this.
pub(super) const RATIO_MAX: f64 = 16.0;
/// As many as the simulator's experiments have.
const KINDS_MAX: usize = 64;
