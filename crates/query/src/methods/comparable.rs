//! Comparable: the comparisons of Strings, Times and numbers, `between?` and `clamp`.

use crate::methods::call::Call;
use crate::names::M;
use crate::tree::Op;
use crate::value::Value;
use crate::value::compare::{compare, order};
use crate::value::exception::{Eval, argument_error, type_error};
use crate::vm::Vm;
use std::cmp::Ordering;

pub(crate) fn holds(op: Op, order: Ordering) -> bool {
    match op {
        Op::Lt => order == Ordering::Less,
        Op::Le => order != Ordering::Greater,
        Op::Gt => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

pub(super) fn call(_: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, _) = call.parts();
    match method {
        M::BetweenQ => {
            let inside = order(receiver, &args[0])? != Ordering::Less
                && order(receiver, &args[1])? != Ordering::Greater;
            Ok(Value::Bool(inside))
        }
        M::Clamp => clamp(receiver, args),
        _ => {
            let op = Op::of(method).ok_or_else(|| call.unknown())?;
            Ok(Value::Bool(holds(op, order(receiver, &args[0])?)))
        }
    }
}

fn clamp(receiver: &Value, args: &[Value]) -> Eval {
    let (low, high) = match args {
        [Value::Range(range)] => {
            if range.exclusive && !range.to.is_nil() {
                return Err(argument_error("cannot clamp with an exclusive range"));
            }
            (range.from.clone(), range.to.clone())
        }
        [low, high] => (low.clone(), high.clone()),
        [other, ..] => {
            let class = crate::class::Class::of(other).name();
            return Err(type_error(format!(
                "wrong argument type {class} (expected Range)"
            )));
        }
        [] => return Ok(Value::Nil),
    };
    if !low.is_nil() && !high.is_nil() && compare(&low, &high) == Some(Ordering::Greater) {
        return Err(argument_error(
            "min argument must be less than or equal to max argument",
        ));
    }
    if !low.is_nil() && order(receiver, &low)? == Ordering::Less {
        return Ok(low);
    }
    if !high.is_nil() && order(receiver, &high)? == Ordering::Greater {
        return Ok(high);
    }
    Ok(receiver.clone())
}
