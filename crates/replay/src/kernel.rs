//! The kernel over the bank: what similar paths are, which of them a line has, and how far the nearest one may be.

use crate::{
    forest::{Data, Forest, Weighted},
    line::{Line, Selection},
    linear,
    random::Random,
    statistics,
};

/// Numbers that decide how much is computed, not what.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Trees of a kernel.
    pub trees: usize,
    /// Lines of a population on which errors are measured.
    pub lines: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self {
            trees: 80,
            lines: 80,
        }
    }
}

/// The sizes of leaves of which the best is taken.
const LEAVES: [usize; 3] = [5, 10, 20];
/// Lines on which sizes of leaves are compared.
const COMPARED: usize = 600;
/// The share of the bank whose distances are within the limit of support.
const SUPPORTED: f64 = 0.99;
/// Fewer paths than this teach nothing.
pub(crate) const PATHS_MIN: usize = 100;

/// The bank's lines under an arm, as the kernel sees them.
pub(crate) struct Kernel {
    selection: Selection,
    /// Mean and deviation of each feature over the bank.
    scales: Vec<(f64, f64)>,
    pub(crate) features: Vec<Vec<f64>>,
    pub(crate) populations: Vec<u32>,
    forest: Forest,
    /// The largest distance with support.
    pub(crate) limit: f64,
}

impl Kernel {
    /// Learns which features tell the outcomes of paths apart. Values of features, outcomes and populations are in the same order.
    pub(crate) fn train(
        selection: &Selection,
        mut features: Vec<Vec<f64>>,
        outcomes: &[[f64; 2]],
        populations: Vec<u32>,
        effort: Effort,
        seed: u64,
    ) -> Self {
        let scales = scales(&features);
        for values in &mut features {
            standardise(values, &scales);
        }
        let mut standard = outcomes.to_vec();
        let rows: Vec<Vec<f64>> = outcomes.iter().map(|pair| pair.to_vec()).collect();
        let outcome_scales = self::scales(&rows);
        for outcome in &mut standard {
            standardise(outcome, &outcome_scales);
        }
        let data = Data {
            features: &features,
            outcomes: &standard,
            populations: &populations,
        };
        let candidates = LEAVES.map(|leaf| {
            let forest = Forest::grow(&data, effort.trees / 2, leaf, seed);
            (error_of(&forest, &data, seed), leaf)
        });
        let leaf = candidates
            .into_iter()
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(LEAVES[0], |best| best.1);
        let forest = Forest::grow(&data, effort.trees, leaf, seed);
        let mut kernel = Self {
            selection: selection.clone(),
            scales,
            features,
            populations,
            forest,
            limit: f64::INFINITY,
        };
        kernel.limit = kernel.support_limit(seed);
        kernel
    }

    /// The values of a line on the scale of the kernel; `None` if it lacks one.
    pub(crate) fn values(&self, line: &Line) -> Option<Vec<f64>> {
        let mut values = self.selection.values(line)?;
        standardise(&mut values, &self.scales);
        Some(values)
    }

    /// The neighbours of these values, and their weights.
    pub(crate) fn weigh(&self, values: &[f64]) -> Vec<Weighted> {
        self.forest.weigh(values, None)
    }

    /// The neighbours of a path in trees that have not seen its population.
    pub(crate) fn weigh_unseen(&self, one: usize) -> Vec<Weighted> {
        let population = self.populations[one];
        self.forest.weigh(&self.features[one], Some(population))
    }

    /// The nearest path of another population than `population`, and the distance to it.
    pub(crate) fn nearest(&self, values: &[f64], population: Option<u32>) -> (f64, usize) {
        let mut nearest = (f64::INFINITY, 0);
        for (one, (other, its)) in self.features.iter().zip(&self.populations).enumerate() {
            if Some(*its) == population {
                continue;
            }
            let squares = values.iter().zip(other).map(|(a, b)| (a - b) * (a - b));
            let square = squares.sum::<f64>();
            if square < nearest.0 {
                nearest = (square, one);
            }
        }
        (libm::sqrt(nearest.0), nearest.1)
    }

    fn support_limit(&self, seed: u64) -> f64 {
        let mut random = Random::new(seed, 2);
        let count = self.features.len();
        let mut distances: Vec<f64> = (0..count.min(2000))
            .map(|_| {
                let one = random.below(count);
                self.nearest(&self.features[one], Some(self.populations[one]))
                    .0
            })
            .collect();
        distances.sort_by(f64::total_cmp);
        statistics::quantile(&distances, SUPPORTED)
    }
}

/// The mean square of the errors of a kernel, on populations that its trees have not seen.
fn error_of(forest: &Forest, data: &Data<'_>, seed: u64) -> f64 {
    let mut random = Random::new(seed, 4);
    let (mut total, mut count) = (0.0, 0.0);
    for _ in 0..data.features.len().min(COMPARED) {
        let one = random.below(data.features.len());
        let features = &data.features[one];
        let weights = forest.weigh(features, Some(data.populations[one]));
        if weights.is_empty() {
            continue;
        }
        let at = linear::at(features, &weights, data.features, data.outcomes);
        let truth = data.outcomes[one];
        total += (at[0] - truth[0]) * (at[0] - truth[0]) + (at[1] - truth[1]) * (at[1] - truth[1]);
        count += 1.0;
    }
    if count > 0.0 {
        total / count
    } else {
        f64::INFINITY
    }
}

/// Mean and deviation of each column.
fn scales(rows: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let (columns, count) = (rows.first().map_or(0, Vec::len), rows.len() as f64);
    let scale = |column: usize| {
        let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
        let square = rows
            .iter()
            .map(|row| (row[column] - mean) * (row[column] - mean))
            .sum::<f64>()
            / count;
        // A column without variance separates nothing.
        let deviation = libm::sqrt(square);
        (mean, if deviation > 1e-9 { deviation } else { 1.0 })
    };
    (0..columns).map(scale).collect()
}

fn standardise(values: &mut [f64], scales: &[(f64, f64)]) {
    for (value, (mean, deviation)) in values.iter_mut().zip(scales) {
        *value = (*value - mean) / deviation;
    }
}
