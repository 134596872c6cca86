//! The twin of one connection: the simulated paths that it may have had, and the time at which it parts from them.
//!
//! [`posteriors`] finds the paths; the caller simulates the transfer over them. [`parting`] compares the bytes acknowledged over time.

use crate::{
    bank::Bank,
    kernel::{Effort, Kernel, PATHS_MIN},
    line::Line,
    predict::{Refusal, selection_of},
    statistics::quantile,
};

#[cfg(test)]
mod tests;

/// Paths of a posterior: those with the largest weights.
const PATHS: usize = 32;

/// The paths that a transfer may have had.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// The index of its line among those given.
    pub line: usize,
    /// Indices of paths in the bank, those with the largest weights first. Empty without support.
    pub paths: Vec<usize>,
    /// The distance to the nearest path.
    pub distance: f64,
    /// The largest distance with support.
    pub limit: f64,
}

/// The paths that each of these transfers under `arm` may have had, by the features that all of them have. `path_facts` has, of each
/// path of the bank, the numbers by which paths differ: the kernel learns to tell them apart.
///
/// # Errors
///
/// Returns a [`Refusal`] if lines lack columns, or the bank has hardly a path.
pub fn posteriors(
    bank: &Bank,
    path_facts: &[[f64; 2]],
    arm: &str,
    lines: &[&Line],
    effort: Effort,
    seed: u64,
) -> Result<Vec<Posterior>, Refusal> {
    let selection = selection_of(lines)?;
    let (mut known, mut features) = (Vec::new(), Vec::new());
    for (path, line) in bank.lines(arm).unwrap_or_default().iter().enumerate() {
        if let Some(values) = line.as_ref().and_then(|line| selection.values(line)) {
            known.push(path);
            features.push(values);
        }
    }
    if known.len() < PATHS_MIN {
        return Err(Refusal::NoBank {
            arm: arm.to_owned(),
        });
    }
    let outcomes: Vec<[f64; 2]> = known.iter().map(|path| path_facts[*path]).collect();
    let populations = known.iter().map(|path| bank.paths()[*path].population);
    let populations = populations.collect();
    let kernel = Kernel::train(&selection, features, &outcomes, populations, effort, seed);
    let posterior = |(line, values): (usize, Vec<f64>)| {
        let (distance, _) = kernel.nearest(&values, None);
        let mut weights = kernel.weigh(&values);
        weights.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        weights.truncate(if distance > kernel.limit { 0 } else { PATHS });
        Posterior {
            line,
            paths: weights
                .iter()
                .map(|(one, _)| known[*one as usize])
                .collect(),
            distance,
            limit: kernel.limit,
        }
    };
    let values = lines.iter().enumerate();
    let values = values.filter_map(|(at, line)| Some((at, kernel.values(line)?)));
    Ok(values.map(posterior).collect())
}

/// Where a curve parts from its twin. Times are indices of the curves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parting {
    /// The index of the twin.
    pub twin: usize,
    /// When it parts; `None` if it does not.
    pub at: Option<usize>,
    /// When the difference exceeded the spread, or was largest.
    pub seen_at: usize,
    /// The bytes at that time by which the recorded curve is above the twin’s, or below it if negative.
    pub difference: f64,
    /// The difference at that time that similar paths have.
    pub spread: f64,
}

/// The smallest spread, as a share.
const SPREAD_MIN: f64 = 0.05;
/// The smallest difference that counts as one, as a share.
const TYPICAL_MIN: f64 = 0.02;
/// The share of similar paths of which the spread is.
const LEVEL: f64 = 0.95;
/// Paths that are similar to the recorded one.
const SIMILAR: usize = 24;

/// The differences of two curves over time: how far the first is from all values that the second has within `shift` of that time,
/// relative to the first and a tenth of its end.
fn differences(curve: &[f64], other: &[f64], shift: usize) -> Vec<f64> {
    let tenth = curve.last().copied().unwrap_or(0.0) / 10.0;
    let last = other.len().saturating_sub(1);
    let difference = |(at, value): (usize, &f64)| {
        let low = at.checked_sub(shift).map_or(0.0, |at| other[at]);
        let high = other[(at + shift).min(last)];
        let outside = value - value.clamp(low, high.max(low));
        outside / (value + tenth).max(1.0)
    };
    curve.iter().enumerate().map(difference).collect()
}

fn largest(differences: &[f64]) -> f64 {
    differences
        .iter()
        .fold(0.0, |most, one| one.abs().max(most))
}

/// The index of the first difference above a share.
fn first_above(differences: &[f64], share: f64) -> Option<usize> {
    differences.iter().position(|one| one.abs() > share)
}

/// Compares a recorded curve, which rises, with those of simulations, all at the same times. What a shift in time by `shift` explains is
/// no difference. The spread is what 95 % of the 24 most similar curves differ at most from the one nearest to them, and 5 % at least.
/// The recorded curve parts from its twin if it differs by more from every curve at some time. Its twin is then the last one from which
/// it differs by more than half of the similar curves do from theirs, and the parting is where that difference starts; else, the twin is
/// the nearest curve. `None` with fewer than three curves.
pub fn parting(recorded: &[f64], curves: &[Vec<f64>], shift: usize) -> Option<Parting> {
    if curves.len() < 3 || recorded.is_empty() {
        return None;
    }
    let all: Vec<Vec<f64>> = curves
        .iter()
        .map(|curve| differences(recorded, curve, shift))
        .collect();
    let mut similar: Vec<usize> = (0..curves.len()).collect();
    similar.sort_by(|a, b| largest(&all[*a]).total_cmp(&largest(&all[*b])));
    let nearest = similar[0];
    let to_nearest = |one: &usize| {
        let others = curves.iter().enumerate().filter(|(other, _)| other != one);
        let distances = others.map(|(_, other)| largest(&differences(&curves[*one], other, shift)));
        distances.fold(f64::INFINITY, f64::min)
    };
    let mut spreads: Vec<f64> = similar.iter().take(SIMILAR).map(to_nearest).collect();
    spreads.sort_by(f64::total_cmp);
    let spread = quantile(&spreads, LEVEL).max(SPREAD_MIN);
    let typical = quantile(&spreads, 0.5).clamp(TYPICAL_MIN, spread);
    let parts = largest(&all[nearest]) > spread;
    let leaves = |one: &usize| first_above(&all[*one], typical);
    let twin = if parts {
        similar.into_iter().rev().max_by_key(leaves)?
    } else {
        nearest
    };
    let found = &all[twin];
    let seen_at = first_above(
        found,
        if parts {
            spread
        } else {
            largest(found) * 0.999
        },
    );
    let seen_at = seen_at.unwrap_or(0);
    let start = |left: usize| {
        let differs_since = found[..left].iter().rposition(|one| *one == 0.0);
        differs_since.unwrap_or(0).saturating_sub(shift)
    };
    let scale = recorded[seen_at] + recorded[recorded.len() - 1] / 10.0;
    Some(Parting {
        twin,
        at: first_above(found, typical).filter(|_| parts).map(start),
        seen_at,
        difference: found[seen_at] * scale,
        spread: spread * scale,
    })
}
