//! Sorting, extremes and sums.

use super::size_argument;
use crate::methods::call::Call;
use crate::methods::enumerable::{self, to_vec};
use crate::names::M;
use crate::tree::Op;
use crate::value::Value;
use crate::value::compare::sign;
use crate::value::compare::{self, order};
use crate::value::exception::Eval;
use crate::value::number::float_of;
use crate::vm::Vm;
use crate::vm::block::Block;
use std::cmp::Ordering;

pub(in crate::methods) fn call(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    if matches!(method, M::SortBy | M::MinBy | M::MaxBy | M::MinmaxBy) {
        return by(enumerable::with_results(vm, call)?, method, args);
    }
    let mut elements = to_vec(vm, receiver)?;
    Ok(match method {
        M::Sort => {
            sort(vm, &mut elements, block)?;
            Value::array(elements)
        }
        M::Min | M::Max => extreme(vm, elements, method == M::Max, args, block)?,
        M::Minmax => {
            let least = extreme(vm, elements.clone(), false, &[], block)?;
            Value::pair(least, extreme(vm, elements, true, &[], block)?)
        }
        M::Sum => {
            if let Some(block) = block {
                for it in &mut elements {
                    *it = vm.call1(block, std::mem::take(it))?;
                }
            }
            sum(
                vm,
                args.first().cloned().unwrap_or(Value::Int(0)),
                &elements,
            )?
        }
        _ => return Err(call.unknown()),
    })
}

pub(crate) fn sort(vm: &mut Vm, list: &mut Vec<Value>, block: Option<&Block<'_>>) -> Eval<()> {
    match block {
        None => compare::sort(list),
        Some(block) => compare::sort_with(list, &mut |a, b| {
            let value = vm.call_block(block, &[a.clone(), b.clone()])?;
            sign(&value, a, b)
        }),
    }
}

fn by(mut pairs: Vec<(Value, Value)>, method: M, args: &[Value]) -> Eval {
    let wanted = match args.first() {
        Some(wanted) if !wanted.is_nil() => Some(size_argument(wanted, "negative size")?),
        _ => None,
    };
    if method == M::SortBy || wanted.is_some() {
        compare::sort_with(&mut pairs, &mut |a, b| {
            if method == M::MaxBy {
                order(&b.0, &a.0)
            } else {
                order(&a.0, &b.0)
            }
        })?;
        pairs.truncate(wanted.unwrap_or(usize::MAX));
        return Ok(Value::array(pairs.into_iter().map(|(_, it)| it).collect()));
    }
    let mut least: Option<&(Value, Value)> = None;
    let mut most: Option<&(Value, Value)> = None;
    for pair in &pairs {
        if least.none_or_try(|least| Ok(order(&pair.0, &least.0)? == Ordering::Less))? {
            least = Some(pair);
        }
        if most.none_or_try(|most| Ok(order(&pair.0, &most.0)? == Ordering::Greater))? {
            most = Some(pair);
        }
    }
    let value = |pair: Option<&(Value, Value)>| pair.map(|(_, it)| it.clone()).unwrap_or_default();
    Ok(match method {
        M::MinBy => value(least),
        M::MaxBy => value(most),
        _ => Value::pair(value(least), value(most)),
    })
}

/// An Option's `is_none_or`, with a test that may fail.
trait NoneOrTry<T> {
    fn none_or_try(self, test: impl FnOnce(T) -> Eval<bool>) -> Eval<bool>;
}

impl<T> NoneOrTry<T> for Option<T> {
    fn none_or_try(self, test: impl FnOnce(T) -> Eval<bool>) -> Eval<bool> {
        match self {
            None => Ok(true),
            Some(it) => test(it),
        }
    }
}

fn extreme(
    vm: &mut Vm,
    mut list: Vec<Value>,
    most: bool,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    let mut compare = |a: &Value, b: &Value| match block {
        None => order(a, b),
        Some(block) => {
            let value = vm.call_block(block, &[a.clone(), b.clone()])?;
            sign(&value, a, b)
        }
    };
    if let Some(wanted) = args.first()
        && !wanted.is_nil()
    {
        let wanted = size_argument(wanted, "negative size")?;
        if wanted > 0 {
            compare::sort_with(&mut list, &mut |a, b| {
                if most { compare(b, a) } else { compare(a, b) }
            })?;
        }
        list.truncate(wanted);
        return Ok(Value::array(list));
    }
    let mut best: Option<Value> = None;
    let beats = if most {
        Ordering::Greater
    } else {
        Ordering::Less
    };
    for it in list {
        let better = match &best {
            None => true,
            Some(best) => compare(&it, best)? == beats,
        };
        if better {
            best = Some(it);
        }
    }
    Ok(best.unwrap_or_default())
}

/// `sum`: integers exactly, floats with Kahan and Babuška's compensation, anything else by `+`.
pub(crate) fn sum(vm: &mut Vm, initial: Value, list: &[Value]) -> Eval {
    let mut total = initial;
    let mut at = 0;
    // Exact while there are no floats.
    while let Some(it) = list.get(at) {
        if !matches!(
            (&total, it),
            (Value::Int(_) | Value::Big(_), Value::Int(_) | Value::Big(_))
        ) {
            break;
        }
        total = vm.binary(Op::Add, &total, it)?;
        at += 1;
    }
    let numeric = |it: &Value| matches!(it, Value::Int(_) | Value::Big(_) | Value::Float(_));
    let next_is_float = list.get(at).is_some_and(Value::is_float);
    if numeric(&total) && (total.is_float() || next_is_float) && at < list.len() {
        let mut sum = float_of(&total).unwrap_or(0.0);
        let mut compensation = 0.0;
        while let Some(x) = list.get(at).filter(|it| numeric(it)).and_then(float_of) {
            at += 1;
            if x.is_nan() || x.is_infinite() || sum.is_infinite() {
                sum += x;
                continue;
            }
            let next = sum + x;
            compensation += if sum.abs() >= x.abs() {
                (sum - next) + x
            } else {
                (x - next) + sum
            };
            sum = next;
        }
        total = Value::Float(if sum.is_finite() {
            sum + compensation
        } else {
            sum
        });
    }
    for it in &list[at..] {
        total = vm.binary(Op::Add, &total, it)?;
    }
    Ok(total)
}
