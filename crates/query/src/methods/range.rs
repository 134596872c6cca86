//! Range.

use super::array::order;
use super::string::successors;
use super::{enumerable, numeric};
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::tree::Op;
use crate::value::compare::{covers, equal};
use crate::value::exception::{Eval, Flow, error, no_conversion, type_error};
use crate::value::number::{self, arithmetic, big_of, float_of, need_int};
use crate::value::{Range, Value};
use crate::vm::Vm;
use crate::vm::block::Block;
use num_bigint::BigInt;
use std::rc::Rc;

/// Walks the elements.
pub(crate) fn each(
    vm: &mut Vm,
    range: &Range,
    step: &mut dyn FnMut(&mut Vm, Value) -> Eval<()>,
) -> Eval<()> {
    match (&range.from, &range.to) {
        (Value::Int(_) | Value::Big(_), to) => {
            let (limit, exclusive) = match to {
                Value::Float(it) if it.is_infinite() => (Value::Nil, false),
                Value::Float(it) => {
                    let below = it.floor();
                    #[expect(clippy::float_cmp, reason = "a whole number is meant")]
                    let whole = below == *it;
                    (number::truncated(below)?, range.exclusive && whole)
                }
                other => (other.clone(), range.exclusive),
            };
            numeric::walk(vm, &range.from, &limit, &Value::Int(1), exclusive, step)
        }
        (Value::Str(from), Value::Str(to)) => {
            successors(&from.string(), &to.string(), range.exclusive, &mut |text| {
                step(vm, Value::str(text))
            })
        }
        (Value::Str(from), Value::Nil) => {
            let mut text = Value::Str(Rc::clone(from));
            loop {
                step(vm, text.clone())?;
                text = vm.send(&text, M::Succ, &[], None)?;
            }
        }
        (Value::Symbol(from), Value::Symbol(to)) => {
            successors(&from.name(), &to.name(), range.exclusive, &mut |text| {
                step(vm, Value::symbol(&text))
            })
        }
        (from, _) => Err(not_iterable(from)),
    }
}

fn not_iterable(from: &Value) -> Box<Flow> {
    type_error(format!("can't iterate from {}", Class::of(from).name()))
}

pub(super) fn read(vm: &mut Vm, range: &Rc<Range>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    Ok(match method {
        M::Begin => range.from.clone(),
        M::End => range.to.clone(),
        M::First if range.from.is_nil() => {
            return Err(error(
                Class::RangeError,
                "cannot get the first element of beginless range",
            ));
        }
        M::First if args.is_empty() => range.from.clone(),
        M::First if range.from.is_float() => return Err(not_iterable(&range.from)),
        M::Last if args.is_empty() => {
            if range.to.is_nil() {
                return Err(error(
                    Class::RangeError,
                    "cannot get the last element of endless range",
                ));
            }
            range.to.clone()
        }
        M::Last => {
            let list = Value::array(enumerable::to_vec(vm, receiver)?);
            return vm.send(&list, M::Last, args, None);
        }
        M::IncludeQ if matches!((&range.from, &range.to), (Value::Str(_), Value::Str(_))) => {
            return enumerable::search(vm, call);
        }
        M::IncludeQ if range.from.is_nil() && range.to.is_nil() => {
            let what = "cannot determine inclusion in beginless/endless ranges";
            return Err(type_error(what));
        }
        M::IncludeQ | M::OpCaseEq | M::CoverQ => Value::Bool(match &args[0] {
            Value::Range(inner) if method == M::CoverQ => contains(range, inner),
            value => covers(range, value),
        }),
        M::Step | M::OpMod => return step(vm, receiver, range, args, block),
        M::Size => return size(vm, receiver, range, method),
        M::Count if args.is_empty() && block.is_none() => {
            if range.from.is_nil() || range.to.is_nil() {
                return Ok(Value::Float(f64::INFINITY));
            }
            return size(vm, receiver, range, method);
        }
        M::Sum
            if args.is_empty()
                && block.is_none()
                && matches!((&range.from, &range.to), (Value::Int(_), Value::Int(_))) =>
        {
            let (first, last) = (big_of(&range.from), big_of(&range.to));
            let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
            let last = last - i64::from(range.exclusive);
            let count: BigInt = &last - &first + 1;
            number::integer(if count > BigInt::ZERO {
                (first + last) * count / 2
            } else {
                BigInt::ZERO
            })
        }
        // Without the end, the last element has to be found.
        M::Max | M::Minmax if range.exclusive && matches!(range.to, Value::Str(_)) => {
            return order::call(vm, call);
        }
        M::Min | M::Max | M::Minmax if args.is_empty() && block.is_none() => {
            return extremes(range, method);
        }
        M::Min
            if matches!(
                (&range.from, block, args),
                (Value::Int(_), None, [Value::Int(_)])
            ) =>
        {
            return enumerable::begin(
                vm,
                Call {
                    method: M::First,
                    ..call
                },
            );
        }
        M::Count => return enumerable::count(vm, call),
        M::First => return enumerable::begin(vm, call),
        _ => return order::call(vm, call),
    })
}

/// Whether all of another range is covered.
fn contains(range: &Range, inner: &Range) -> bool {
    let ends_within = match (&range.to, &inner.to) {
        (Value::Nil, Value::Nil) => true,
        (_, Value::Nil) => false,
        _ => {
            covers(range, &inner.to)
                || range.exclusive && inner.exclusive && equal(&range.to, &inner.to)
        }
    };
    covers(range, &inner.from) && ends_within
}

fn size(vm: &mut Vm, receiver: &Value, range: &Rc<Range>, method: M) -> Eval {
    Ok(match (&range.from, &range.to) {
        (Value::Int(_), Value::Nil) => Value::Float(f64::INFINITY),
        (Value::Int(_), Value::Float(it)) if it.is_infinite() => Value::Float(f64::INFINITY),
        (Value::Int(_), Value::Int(_)) => {
            numeric::count(&range.from, &range.to, &Value::Int(1), range.exclusive)?
                .map_or(Value::Nil, Value::Int)
        }
        (Value::Int(_), Value::Float(_)) => Value::size(enumerable::to_vec(vm, receiver)?.len()),
        (Value::Str(_) | Value::Symbol(_), _) if method == M::Size => Value::Nil,
        (from, _) if method == M::Size => return Err(not_iterable(from)),
        _ => Value::size(enumerable::to_vec(vm, receiver)?.len()),
    })
}

fn step(
    vm: &mut Vm,
    receiver: &Value,
    range: &Rc<Range>,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    let numbers = float_of(&range.from).is_some() || float_of(&range.to).is_some();
    let Some(block) = block else {
        return Ok(receiver.clone());
    };
    let by = args.first().cloned().unwrap_or(Value::Int(1));
    if float_of(&by).is_none() || by.is_float() && !numbers {
        return Err(no_conversion(&by, "Integer"));
    }
    if number::is_zero(&by) {
        return Err(crate::value::exception::argument_error("step can't be 0"));
    }
    if number::is_negative(&by) && !numbers {
        return Err(crate::value::exception::argument_error(
            "step can't be negative",
        ));
    }
    if numbers {
        numeric::walk(
            vm,
            &range.from,
            &range.to,
            &by,
            range.exclusive,
            &mut |vm, it| vm.call1(block, it).map(|_| ()),
        )?;
    } else {
        let by = need_int(&by)?.max(1) as usize;
        let mut at = 0;
        each(vm, range, &mut |vm, it| {
            at += 1;
            if (at - 1) % by == 0 {
                vm.call1(block, it).map(|_| ())
            } else {
                Ok(())
            }
        })?;
    }
    Ok(receiver.clone())
}

/// `min`, `max` and `minmax` without arguments.
fn extremes(range: &Rc<Range>, method: M) -> Eval {
    if range.to.is_nil() && method != M::Min || range.from.is_nil() && method != M::Max {
        let end = if method == M::Max {
            "maximum of endless"
        } else {
            "minimum of beginless"
        };
        return Err(error(
            Class::RangeError,
            format!("cannot get the {end} range"),
        ));
    }
    let whole = matches!((&range.from, &range.to), (Value::Int(_), Value::Int(_)));
    if range.exclusive && !whole && method != M::Min {
        return Err(type_error("cannot exclude non Integer end value"));
    }
    let last = if range.exclusive && whole {
        arithmetic(Op::Sub, &range.to, &Value::Int(1))?
    } else {
        range.to.clone()
    };
    let empty = !range.to.is_nil()
        && crate::value::compare::compare(&range.from, &last)
            .is_none_or(|order| order == std::cmp::Ordering::Greater);
    Ok(match (method, empty) {
        (M::Minmax, true) => Value::pair(Value::Nil, Value::Nil),
        (_, true) => Value::Nil,
        (M::Min, _) => range.from.clone(),
        (M::Max, _) => last,
        _ => Value::pair(range.from.clone(), last),
    })
}
