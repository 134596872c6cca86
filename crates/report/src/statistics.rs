//! Statistics of an experiment: distributions as exact counts, their percentiles, and confidence intervals.
//!
//! The module does not depend on logs or pages. Randomness comes from a seed; the same seed gives the same intervals. Values
//! are whole numbers (microseconds, hundredths of a percent), so a distribution is a count per value for any number of
//! connections, and only resampling approximates.
//!
//! | file | owns |
//! |---|---|
//! | `statistics/counts.rs` | a distribution: its nearest-rank percentiles, as in the query language, and its mean |
//! | `statistics/random.rs` | the generator, and normal and gamma variates |
//! | `statistics/bootstrap.rs` | resampled percentiles of independent groups and of pairs; intervals and bands of their change
//! |
//! | `statistics/tests_of.rs` | Mann–Whitney, Wilcoxon, chi-squared, Holm; intervals of shares and of means |
//! | `statistics/quantiles.rs` | quantiles whose bounds hold at every look |
//! | `statistics/sequence.rs` | differences and sample ratios whose bounds hold at every look |
//! | `statistics/special.rs` | the error function and the incomplete gamma function as probabilities; quantiles |

pub mod bootstrap;
pub mod counts;
pub mod quantiles;
pub(crate) mod random;
pub mod sequence;
mod special;
pub mod tests_of;

pub use self::counts::Counts;
pub(crate) use self::special::chi_squared_above;

/// Two-sided 95 %: the normal distribution's 97.5th percentile.
pub const Z_95: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests;
