//! The arithmetic of the reducers, as accumulators that can be cut into chunks: `step` takes a row's value, `merge` takes
//! what the next chunk of the input gathered, `finish` gives the result.
//!
//! Results must not depend on how the input is cut. Counts, minima and lists merge as they are, and sums of integers are
//! exact; additions of floats are not associative, so [`Accumulator::for_chunk`] of a sum, an average or a deviation
//! keeps the values of its chunk (eight bytes each), and `merge` adds them one by one: the same additions in the same
//! order as one thread makes, whatever the chunks were.

use super::column::Column;
use super::correlation::Correlation;
use super::histogram::Histogram;
use super::portable::{copies, copy};
use super::shares::{Shares, rank};
use super::top::Top;
use super::weighted::percentiles;
use super::{Evaluator, binary};
use crate::names::M;
use crate::tree::Op;
use crate::value::Value;
use crate::value::compare;
use crate::value::exception::Eval;
use crate::value::number::float_of;
use crate::value::table::Table;
use std::cmp::Ordering;

pub(crate) enum Accumulator {
    Count(u64),
    /// The sum so far; a numeric `initial` joins it at the end.
    Sum {
        total: Value,
        initial: Value,
    },
    /// One of the values; nil before the first.
    One(Which, Value),
    Average {
        sum: Value,
        count: u64,
    },
    Deviation(Deviation),
    /// The values, and which percentiles of them.
    Percentile {
        values: Column,
        shares: Box<Shares>,
    },
    /// The values, each with its weight after it.
    Weighted {
        values: Column,
        shares: Box<Shares>,
    },
    Group(Vec<Value>),
    /// The values as keys, in order of first appearance.
    Distinct(Box<Table>),
    Top(Top),
    Histogram(Histogram),
    /// How often each value occurs, in order of first appearance.
    Mode(Box<Table>),
    Correlation(Box<Correlation>),
    /// A chunk of one whose steps must be made in order.
    Chunk(Column),
}

/// Welford's count, mean and sum of squared distances.
#[derive(Clone, Copy)]
pub(crate) struct Deviation {
    count: u64,
    mean: f64,
    squares: f64,
    pub(super) sample: bool,
}

/// Which of the values is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    Least,
    Most,
    First,
    Last,
}

impl Accumulator {
    pub(crate) fn sum(initial: Value) -> Accumulator {
        match initial {
            Value::Int(_) | Value::Float(_) | Value::Big(_) => Accumulator::Sum {
                total: Value::Int(0),
                initial,
            },
            other => Accumulator::Sum {
                total: other,
                initial: Value::Nil,
            },
        }
    }

    pub(super) fn distinct(values: impl Iterator<Item = Value>) -> Accumulator {
        let values = Table::from_pairs(values.map(|value| (value, Value::Nil)));
        Accumulator::Distinct(Box::new(values))
    }

    pub(crate) fn average() -> Accumulator {
        Accumulator::Average {
            sum: Value::Float(0.0),
            count: 0,
        }
    }

    /// Percentiles, maybe of values with weights.
    pub(crate) fn percentile(shares: Shares, is_weighted: bool) -> Accumulator {
        let (values, shares) = (Column::default(), Box::new(shares));
        if is_weighted {
            Accumulator::Weighted { values, shares }
        } else {
            Accumulator::Percentile { values, shares }
        }
    }

    pub(crate) fn deviation(sample: bool) -> Accumulator {
        Accumulator::Deviation(Deviation {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            sample,
        })
    }

    /// One with the same state, which shares nothing that can be changed.
    pub(super) fn copy(&self) -> Accumulator {
        match self {
            Accumulator::Count(count) => Accumulator::Count(*count),
            Accumulator::Sum { total, initial } => Accumulator::Sum {
                total: copy(total),
                initial: copy(initial),
            },
            Accumulator::One(which, value) => Accumulator::One(*which, copy(value)),
            Accumulator::Average { sum, count } => Accumulator::Average {
                sum: sum.clone(),
                count: *count,
            },
            Accumulator::Deviation(it) => Accumulator::Deviation(*it),
            Accumulator::Percentile { values, shares } => Accumulator::Percentile {
                values: values.copy(),
                shares: shares.clone(),
            },
            Accumulator::Weighted { values, shares } => Accumulator::Weighted {
                values: values.copy(),
                shares: shares.clone(),
            },
            Accumulator::Group(list) => Accumulator::Group(copies(list)),
            Accumulator::Distinct(values) => Accumulator::distinct(values.keys().iter().map(copy)),
            Accumulator::Top(top) => Accumulator::Top(top.copy()),
            Accumulator::Histogram(histogram) => Accumulator::Histogram(histogram.clone()),
            Accumulator::Mode(counts) => {
                let pairs = counts.pairs().into_iter();
                let pairs = pairs.map(|(value, count)| (copy(&value), count));
                Accumulator::Mode(Box::new(Table::from_pairs(pairs)))
            }
            Accumulator::Correlation(it) => Accumulator::Correlation(it.clone()),
            Accumulator::Chunk(values) => Accumulator::Chunk(values.copy()),
        }
    }

    /// An empty one of the same kind, for the next chunk of the input.
    pub(crate) fn for_chunk(&self) -> Accumulator {
        match self {
            Accumulator::Count(_) => Accumulator::Count(0),
            Accumulator::One(which, _) => Accumulator::One(*which, Value::Nil),
            Accumulator::Percentile { shares, .. } => {
                Accumulator::percentile((**shares).clone(), false)
            }
            Accumulator::Weighted { shares, .. } => {
                Accumulator::percentile((**shares).clone(), true)
            }
            Accumulator::Group(_) => Accumulator::Group(Vec::new()),
            Accumulator::Distinct(_) => Accumulator::Distinct(Box::default()),
            Accumulator::Top(top) => Accumulator::Top(top.empty()),
            Accumulator::Histogram(it) => Accumulator::Histogram(it.empty()),
            Accumulator::Mode(_) => Accumulator::Mode(Box::default()),
            Accumulator::Correlation(_)
            | Accumulator::Sum { .. }
            | Accumulator::Average { .. }
            | Accumulator::Deviation(_)
            | Accumulator::Chunk(_) => Accumulator::Chunk(Column::default()),
        }
    }

    /// Takes a value; all but `Group` and `Count` are never given nil.
    pub(crate) fn step(&mut self, vm: &mut dyn Evaluator, value: Value) -> Eval<()> {
        match self {
            Accumulator::Count(count) => *count += 1,
            Accumulator::Sum { total, .. } => match (&*total, &value) {
                (Value::Str(text), Value::Str(more)) if std::rc::Rc::strong_count(text) == 1 => {
                    let more = more.string();
                    text.push(&more);
                }
                (Value::Array(list), Value::Array(more))
                    if std::rc::Rc::strong_count(list) == 1 =>
                {
                    let more = more.borrow().clone();
                    list.borrow_mut().extend(more);
                }
                _ => *total = binary(vm, Op::Add, total, &value)?,
            },
            Accumulator::One(which, known) => {
                let is_kept = known.is_nil()
                    || match which {
                        Which::Least => beats(vm, &value, known, Ordering::Less)?,
                        Which::Most => beats(vm, &value, known, Ordering::Greater)?,
                        Which::First => false,
                        Which::Last => true,
                    };
                if is_kept {
                    *known = value;
                }
            }
            Accumulator::Average { sum, count } => {
                *sum = binary(vm, Op::Add, sum, &value)?;
                *count += 1;
            }
            Accumulator::Deviation(it) => {
                let delta = match binary(vm, Op::Sub, &value, &Value::Float(it.mean))? {
                    Value::Float(delta) => delta,
                    other => return Err(crate::value::exception::no_conversion(&other, "Float")),
                };
                it.count += 1;
                it.mean += delta / it.count as f64;
                it.squares += delta * (float_of(&value).unwrap_or(f64::NAN) - it.mean);
            }
            Accumulator::Percentile { values, .. }
            | Accumulator::Weighted { values, .. }
            | Accumulator::Chunk(values) => values.push(value),
            Accumulator::Group(list) => list.push(value),
            Accumulator::Distinct(values) => values.insert(value, Value::Nil),
            Accumulator::Top(top) => top.push(value.clone(), value)?,
            Accumulator::Histogram(histogram) => histogram.add(&value)?,
            Accumulator::Mode(counts) => counts.count(value, 1),
            Accumulator::Correlation(it) => it.add(&value)?,
        }
        Ok(())
    }

    /// Takes a value with its weight.
    pub(crate) fn step_weighted(&mut self, value: Value, weight: Value) {
        if let Accumulator::Weighted { values, .. } = self {
            values.push(value);
            values.push(weight);
        }
    }

    /// Merges the values of the next chunk.
    pub(crate) fn merge(&mut self, vm: &mut dyn Evaluator, next: Accumulator) -> Eval<()> {
        match (self, next) {
            (Accumulator::Count(count), Accumulator::Count(more)) => *count += more,
            (Accumulator::Group(list), Accumulator::Group(more)) => list.extend(more),
            (
                Accumulator::Percentile { values, .. }
                | Accumulator::Weighted { values, .. }
                | Accumulator::Chunk(values),
                Accumulator::Percentile { values: more, .. }
                | Accumulator::Weighted { values: more, .. }
                | Accumulator::Chunk(more),
            ) => values.append(more),
            (Accumulator::Distinct(values), Accumulator::Distinct(more)) => {
                for value in more.keys() {
                    values.insert(value, Value::Nil);
                }
            }
            (Accumulator::Top(top), Accumulator::Top(more)) => {
                for (key, row) in more.rows {
                    top.push(key, row)?;
                }
            }
            (Accumulator::Histogram(histogram), Accumulator::Histogram(more)) => {
                histogram.append(more);
            }
            (Accumulator::Mode(counts), Accumulator::Mode(more)) => {
                for (value, count) in more.pairs() {
                    if let Value::Int(count) = count {
                        counts.count(value, count);
                    }
                }
            }
            (this, Accumulator::One(_, value)) => {
                if !value.is_nil() {
                    this.step(vm, value)?;
                }
            }
            (this, Accumulator::Chunk(values)) => {
                for value in values.into_values() {
                    this.step(vm, value)?;
                }
            }
            _ => debug_assert!(false, "chunks of one reducer are of one kind"),
        }
        Ok(())
    }

    pub(crate) fn finish(self, vm: &mut dyn Evaluator) -> Eval {
        Ok(match self {
            Accumulator::Count(count) => Value::Int(count.cast_signed()),
            Accumulator::Sum { total, initial } => match initial {
                Value::Nil => total,
                initial if compare::equal(&initial, &Value::Int(0)) => total,
                initial => vm.send_one(&initial, M::OpAdd, total)?,
            },
            Accumulator::One(_, value) => value,
            Accumulator::Average { count: 0, .. } => Value::Nil,
            Accumulator::Average { sum, count } => {
                binary(vm, Op::Div, &sum, &Value::Int(count.cast_signed()))?
            }
            Accumulator::Deviation(it) => match it.count.saturating_sub(u64::from(it.sample)) {
                0 => Value::Nil,
                divisor => Value::Float((it.squares / divisor as f64).sqrt()),
            },
            Accumulator::Percentile { mut values, shares } => {
                values.sort()?;
                shares.each(|p| values.get(rank(p, values.len() as u64)? as usize))
            }
            Accumulator::Weighted { values, shares } => percentiles(values, &shares)?,
            Accumulator::Group(list) => Value::array(list),
            Accumulator::Distinct(values) => Value::array(values.keys()),
            Accumulator::Top(top) => Value::array(top.into_rows()?),
            Accumulator::Histogram(histogram) => histogram.finish(),
            Accumulator::Mode(counts) => most_frequent(&counts),
            Accumulator::Correlation(it) => it.finish(),
            Accumulator::Chunk(values) => Value::array(values.into_values()),
        })
    }
}

/// Of values that occur equally often, the one that appeared first.
fn most_frequent(counts: &Table) -> Value {
    let mut most = (Value::Nil, 0);
    for (value, count) in counts.borrow().iter() {
        if let Value::Int(count) = count
            && *count > most.1
        {
            most = (value.clone(), *count);
        }
    }
    most.0
}

/// `value < known` or `value > known`, as the value's class has it: an Array has neither.
fn beats(vm: &mut dyn Evaluator, value: &Value, known: &Value, wanted: Ordering) -> Eval<bool> {
    let op = match (value, wanted) {
        (Value::Int(_) | Value::Float(_) | Value::Big(_) | Value::Str(_), _) => {
            return Ok(compare::order(value, known)? == wanted);
        }
        (_, Ordering::Less) => Op::Lt,
        _ => Op::Gt,
    };
    Ok(binary(vm, op, value, known)?.truthy())
}

#[cfg(test)]
mod tests;
