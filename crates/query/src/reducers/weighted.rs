//! Weighted percentiles: the least value up to which the values have a share of all weights.

use super::column::Column;
use super::shares::Shares;
use crate::value::Value;
use crate::value::compare::{order, sort_with};
use crate::value::exception::Eval;
use crate::value::number::float_of;

/// The percentiles of values, each with its weight after it.
pub(super) fn percentiles(values: Column, shares: &Shares) -> Eval {
    let mut values = values.into_values().into_iter();
    let mut pairs: Vec<(Value, f64)> = Vec::with_capacity(values.len() / 2);
    while let (Some(value), Some(weight)) = (values.next(), values.next()) {
        pairs.push((value, float_of(&weight).unwrap_or_default()));
    }
    // Stable, so that the sums are those of the rows in order.
    sort_with(&mut pairs, &mut |a, b| order(&a.0, &b.0))?;
    let mut sum = 0.0;
    for (_, weight) in &mut pairs {
        sum += *weight;
        *weight = sum;
    }
    let last = pairs.len().saturating_sub(1);
    // The rounding of so many additions: equal weights have the percentiles of values without weights.
    let rounding = pairs.len() as f64 * f64::EPSILON * sum;
    Ok(shares.each(|share| {
        let wanted = share * sum - rounding;
        let at = pairs.partition_point(|(_, up_to)| *up_to < wanted);
        pairs.get(at.min(last)).map(|(value, _)| value.clone())
    }))
}
