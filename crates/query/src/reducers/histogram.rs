//! `histogram`: how many numbers fall into each bucket, of a fixed width or from a power of two to the next. With narrow buckets
//! whose width is a share of the number, percentiles within a relative error (`DDSketch`; Masson, Rim and Lee, 2019).

use super::shares::{Shares, rank};
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, no_conversion};
use crate::value::inspect::inspect;
use crate::value::number::{float_of, wide};
use crate::value::table::Table;
use std::collections::BTreeMap;

#[derive(Clone)]
pub(super) enum Width {
    Whole(i64),
    Real(f64),
    /// Powers of two. Buckets of negative numbers mirror those of positive ones; zero has a bucket of its own.
    Doubling,
    /// The percentiles are the result. Buckets lie as those of powers of two, whose place the power of a smaller number has.
    Relative(Relative),
}

/// Percentiles within a relative error.
#[derive(Clone)]
pub(super) struct Relative {
    pub(super) error: f64,
    pub(super) shares: Shares,
}

impl Relative {
    pub(super) fn new(error: f64, shares: Shares) -> Option<Relative> {
        let is_wide_enough = (0.000_1..=0.5).contains(&error);
        is_wide_enough.then_some(Relative { error, shares })
    }

    /// The logarithm of the ratio of two neighbouring bounds, (1 + error) / (1 - error).
    fn step(&self) -> f64 {
        2.0 * self.error.atanh()
    }

    /// Makes the index of a bucket from an exponent: at least 1 for the least float, whose logarithm is -744.4.
    fn shift(&self) -> f64 {
        (745.0 / self.step()).ceil() + 1.0
    }

    fn index(&self, it: f64) -> f64 {
        if it == 0.0 {
            return 0.0;
        }
        ((it.abs().ln() / self.step()).ceil() + self.shift()) * it.signum()
    }

    /// The number of a bucket whose relative distance from both bounds is the same.
    fn middle(&self, index: i64) -> f64 {
        if index == 0 {
            return 0.0;
        }
        let bound = (index.unsigned_abs() as f64 - self.shift()) * self.step();
        (bound + (1.0 - self.error).ln()).exp().min(f64::MAX) * index.signum() as f64
    }
}

#[derive(Clone)]
pub(crate) struct Histogram {
    pub(super) width: Width,
    /// Counts by the index of the bucket.
    pub(super) counts: BTreeMap<i64, u64>,
}

/// Makes the index of a bucket from an exponent of two: at least 1 for the least exponent, -1023.
const EXPONENT_SHIFT: i64 = 1024;

/// Indices above this do not fit into a float.
const INDEX_MAX: f64 = 9_007_199_254_740_992.0;

impl Histogram {
    pub(crate) fn new(width: Option<&Value>) -> Eval<Histogram> {
        let width = match width {
            None | Some(Value::Nil) => Width::Doubling,
            Some(Value::Int(width)) if *width > 0 => Width::Whole(*width),
            Some(Value::Float(width)) if *width > 0.0 && width.is_finite() => Width::Real(*width),
            Some(other) => {
                return Err(argument_error(format!(
                    "histogram expects a positive width, or none for powers of two: {}",
                    inspect(other)
                )));
            }
        };
        Ok(Histogram::of(width))
    }

    /// `None` if the error is below 0.0001 or above 0.5.
    pub(crate) fn relative(error: f64, shares: Shares) -> Option<Histogram> {
        Relative::new(error, shares).map(|relative| Histogram::of(Width::Relative(relative)))
    }

    pub(super) fn of(width: Width) -> Histogram {
        Histogram {
            width,
            counts: BTreeMap::new(),
        }
    }

    /// One of the same buckets.
    pub(super) fn empty(&self) -> Histogram {
        Histogram::of(self.width.clone())
    }

    /// The index of the bucket of a number.
    pub(crate) fn index(&self, value: &Value) -> Eval<i64> {
        Ok(match (&self.width, value) {
            (Width::Whole(width), Value::Int(it)) => it.div_euclid(*width),
            (width, value) => {
                let it = float_of(value).ok_or_else(|| no_conversion(value, "Float"))?;
                let index = match width {
                    Width::Whole(width) => (it / *width as f64).floor(),
                    Width::Real(width) => (it / width).floor(),
                    Width::Doubling => doubling(it),
                    Width::Relative(relative) => relative.index(it),
                };
                // Also false for NaN.
                if index.abs() <= INDEX_MAX {
                    index as i64
                } else {
                    return Err(argument_error(format!("no bucket for {}", inspect(value))));
                }
            }
        })
    }

    pub(super) fn add(&mut self, value: &Value) -> Eval<()> {
        *self.counts.entry(self.index(value)?).or_default() += 1;
        Ok(())
    }

    pub(super) fn append(&mut self, other: Histogram) {
        for (index, count) in other.counts {
            *self.counts.entry(index).or_default() += count;
        }
    }

    /// The bound of a bucket that is nearer to minus infinity, or to zero for powers of two.
    pub(crate) fn bound(&self, index: i64) -> Value {
        match &self.width {
            Width::Whole(width) => wide(i128::from(index) * i128::from(*width)),
            Width::Real(width) => Value::Float(multiple(index, *width)),
            Width::Doubling => power(index),
            Width::Relative(relative) => Value::Float(relative.middle(index)),
        }
    }

    /// The counts by the bound of the bucket, or the percentiles.
    pub(super) fn finish(self) -> Value {
        if let Width::Relative(relative) = &self.width {
            let count: u64 = self.counts.values().sum();
            return relative.shares.each(|p| {
                let mut left = rank(p, count)?;
                let at = self.counts.iter().find(|(_, count)| {
                    let is_here = left < **count;
                    left = left.saturating_sub(**count);
                    is_here
                });
                at.map(|(index, _)| self.bound(*index))
            });
        }
        let counts = self.counts.iter();
        let pairs = counts.map(|(at, count)| (self.bound(*at), Value::Int(count.cast_signed())));
        Value::hash(Table::from_pairs(pairs))
    }
}

fn doubling(it: f64) -> f64 {
    if it == 0.0 || !it.is_finite() {
        return if it == 0.0 { 0.0 } else { f64::NAN };
    }
    let exponent = (it.to_bits() >> 52 & 0x7ff).cast_signed() - 1023;
    (exponent + EXPONENT_SHIFT) as f64 * it.signum()
}

fn power(index: i64) -> Value {
    let exponent = index.saturating_abs() - EXPONENT_SHIFT;
    match (index, exponent) {
        (0, _) => Value::Int(0),
        (_, 0..=62) => Value::Int((1 << exponent) * index.signum()),
        _ => Value::Float(2_f64.powi(exponent.clamp(-1100, 1100) as i32) * index.signum() as f64),
    }
}

/// The product, or the quotient where that is the shorter number: 3 × 0.1 is 0.3.
fn multiple(index: i64, width: f64) -> f64 {
    let parts = (1.0 / width).round();
    if parts > 1.0 && (1.0 / parts).to_bits() == width.to_bits() {
        index as f64 / parts
    } else {
        index as f64 * width
    }
}
