//! The correction for the distance between a line and its neighbours: a weighted linear regression of the outcomes on the features,
//! with a penalty (local linear forests: Friedberg, Tibshirani, Athey and Wager, 2020).

use crate::forest::Weighted;

#[cfg(test)]
mod tests;

/// The penalty, on features scaled to a variance of 1 over the bank.
const PENALTY: f64 = 0.1;
/// A feature further than this from the neighbours' mean, in deviations over the bank, counts as this far: no extrapolation.
const REACH: f64 = 1.5;

/// The outcomes at `features`, from those of weighted neighbours, whose weights have the sum 1.
pub(crate) fn at(
    features: &[f64],
    neighbours: &[Weighted],
    of: &[Vec<f64>],
    outcomes: &[[f64; 2]],
) -> [f64; 2] {
    let count = features.len();
    let mut center = vec![0.0; count];
    let mut mean = [0.0; 2];
    for (path, weight) in neighbours {
        for (center, value) in center.iter_mut().zip(&of[*path as usize]) {
            *center += weight * value;
        }
        for (mean, value) in mean.iter_mut().zip(outcomes[*path as usize]) {
            *mean += weight * value;
        }
    }
    // The lower triangle of the normal equations, row by row.
    let mut rows: Vec<Vec<f64>> = (0..count).map(|row| vec![0.0; row + 1]).collect();
    let mut right = vec![[0.0; 2]; count];
    let mut offset = vec![0.0; count];
    for (path, weight) in neighbours {
        let values = &of[*path as usize];
        for ((offset, value), center) in offset.iter_mut().zip(values).zip(&center) {
            *offset = value - center;
        }
        let outcome = outcomes[*path as usize];
        for (row, cells) in rows.iter_mut().enumerate() {
            let scaled = weight * offset[row];
            for (cell, other) in cells.iter_mut().zip(&offset) {
                *cell += scaled * other;
            }
            for at in [0, 1] {
                right[row][at] += scaled * (outcome[at] - mean[at]);
            }
        }
    }
    for (row, cells) in rows.iter_mut().enumerate() {
        cells[row] += PENALTY;
    }
    let slopes = solve(rows, right);
    for ((feature, center), slope) in features.iter().zip(&center).zip(&slopes) {
        let distance = (feature - center).clamp(-REACH, REACH);
        for at in [0, 1] {
            mean[at] += distance * slope[at];
        }
    }
    mean
}

/// Solves a positive definite system, given by its lower triangle (Cholesky).
fn solve(mut rows: Vec<Vec<f64>>, mut right: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let count = rows.len();
    for row in 0..count {
        for column in 0..=row {
            let done: f64 = (0..column).map(|k| rows[row][k] * rows[column][k]).sum();
            let rest = rows[row][column] - done;
            rows[row][column] = if row == column {
                // The penalty keeps it positive; rounding must not make it zero.
                libm::sqrt(rest.max(PENALTY * 1e-6))
            } else {
                rest / rows[column][column]
            };
        }
    }
    for row in 0..count {
        for at in [0, 1] {
            let done: f64 = (0..row).map(|k| rows[row][k] * right[k][at]).sum();
            right[row][at] = (right[row][at] - done) / rows[row][row];
        }
    }
    for row in (0..count).rev() {
        for at in [0, 1] {
            let done: f64 = (row + 1..count).map(|k| rows[k][row] * right[k][at]).sum();
            right[row][at] = (right[row][at] - done) / rows[row][row];
        }
    }
    right
}
