//! Numeric: the methods that Integers and Floats share.

use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::tree::Op;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, brief, divided_by_zero, type_error};
use crate::value::number::{self, arithmetic, float_of, need_float, need_int, truncated};
use crate::vm::Vm;
use num_integer::Integer as _;
use num_traits::ToPrimitive;

/// How a half is rounded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// Away from zero.
    Up,
    Down,
    Even,
}

pub(super) fn operate(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, _) = call.parts();
    let op = Op::of(method).ok_or_else(|| call.unknown())?;
    vm.binary(op, receiver, &args[0])
}

pub(super) fn call(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let float = || float_of(receiver).unwrap_or(f64::NAN);
    Ok(match method {
        M::OpMinus => number::negate(receiver).unwrap_or_default(),
        M::OpPlus => receiver.clone(),
        M::OpPow => number::power(receiver, &args[0])?,
        M::Abs => {
            if number::is_negative(receiver)
                || matches!(receiver, Value::Float(it) if it.is_sign_negative())
            {
                number::negate(receiver).unwrap_or_default()
            } else {
                receiver.clone()
            }
        }
        M::ZeroQ => Value::Bool(number::is_zero(receiver)),
        M::PositiveQ => Value::Bool(
            !number::is_negative(receiver) && !number::is_zero(receiver) && !float().is_nan(),
        ),
        M::NegativeQ => Value::Bool(number::is_negative(receiver)),
        M::FiniteQ => Value::Bool(float().is_finite() || !receiver.is_float()),
        M::InfiniteQ => match receiver {
            Value::Float(it) if it.is_infinite() => Value::Int(if *it > 0.0 { 1 } else { -1 }),
            _ => Value::Nil,
        },
        M::ToF => Value::Float(float()),
        M::ToI => match receiver {
            Value::Float(it) => truncated(*it)?,
            _ => receiver.clone(),
        },
        M::Divmod => return divmod(receiver, args),
        M::Fdiv => match (receiver, &args[0]) {
            (Value::Int(a), Value::Int(b)) => {
                // In lowest terms, so that fewer of the terms are rounded.
                let (a, b) = (i128::from(*a), i128::from(*b));
                let common = a.gcd(&b).max(1);
                Value::Float((a / common) as f64 / (b / common) as f64)
            }
            (_, other) => Value::Float(float() / need_float(other)?),
        },
        M::Step => {
            if let Some(block) = block {
                step(vm, receiver, args, &mut |vm, value| {
                    vm.call1(block, value).map(|_| ())
                })?;
            }
            receiver.clone()
        }
        _ => return Err(call.unknown()),
    })
}

fn divmod(receiver: &Value, args: &[Value]) -> Eval {
    let float = || float_of(receiver).unwrap_or(f64::NAN);
    let floats = receiver.is_float() || args[0].is_float();
    if number::is_zero(&args[0]) && (floats || matches!(args[0], Value::Int(_))) {
        return Err(divided_by_zero());
    }
    let rest = arithmetic(Op::Mod, receiver, &args[0])?;
    let quotient = if floats {
        let (a, b) = (float(), need_float(&args[0])?);
        let rest = if b.is_infinite() && a.is_finite() {
            a
        } else {
            a % b
        };
        let quotient = ((a - rest) / b).round();
        truncated(if b * rest < 0.0 {
            quotient - 1.0
        } else {
            quotient
        })?
    } else {
        floor_value(&arithmetic(Op::Div, receiver, &args[0])?)?
    };
    Ok(Value::pair(quotient, rest))
}

fn floor_value(value: &Value) -> Eval {
    match value {
        Value::Float(it) => truncated(it.floor()),
        other => Ok(other.clone()),
    }
}

/// The digits, and `half:` of `round`.
pub(crate) fn rounding(method: M, args: &[Value]) -> Eval<(i64, Half)> {
    let mut half = Half::Up;
    let mut plain = args;
    if method == M::Round
        && let Some((Value::Hash(options), before)) = args.split_last()
        && let Some(given) = options.get(&Value::symbol("half"))
    {
        plain = before;
        half = match crate::value::inspect::to_s(&given).as_str() {
            "" | "up" => Half::Up,
            "even" => Half::Even,
            "down" => Half::Down,
            other => return Err(argument_error(format!("invalid rounding mode: {other}"))),
        };
    }
    let places = match plain.first() {
        None => 0,
        Some(places) => need_int(places)?,
    };
    Ok((places, half))
}

/// `by:` and `to:`, or limit and step.
fn limits(args: &[Value]) -> (Value, Value) {
    let (mut limit, mut step) = (Value::Nil, Value::Int(1));
    let mut plain = args;
    if let Some((Value::Hash(options), before)) = args.split_last() {
        plain = before;
        limit = options.get(&Value::symbol("to")).unwrap_or_default();
        step = options.get(&Value::symbol("by")).unwrap_or(Value::Int(1));
    }
    if let Some(given) = plain.first() {
        limit = given.clone();
    }
    if let Some(given) = plain.get(1) {
        step = given.clone();
    }
    (limit, step)
}

/// How many steps of a float range there are, as Ruby counts them.
pub(crate) fn float_steps(from: f64, to: f64, step: f64, exclusive: bool) -> f64 {
    let n = (to - from) / step;
    let error = (from.abs() + to.abs() + (to - from).abs()) / step.abs() * f64::EPSILON;
    if step == 0.0 {
        return f64::INFINITY;
    }
    if step.is_infinite() {
        return if step > 0.0 {
            f64::from(u8::from(from <= to))
        } else {
            f64::from(u8::from(from >= to))
        };
    }
    let error = error.min(0.5);
    if exclusive {
        if n <= 0.0 {
            return 0.0;
        }
        let d = if n < 1.0 { 0.0 } else { (n - error).floor() };
        // The last one may stand just before the end.
        return if d * step + from < to { d + 1.0 } else { d };
    }
    if n < 0.0 {
        return 0.0;
    }
    (n + error).floor() + 1.0
}

/// Walks `from.step(limit, step)`.
pub(crate) fn step(
    vm: &mut Vm,
    from: &Value,
    args: &[Value],
    each: &mut dyn FnMut(&mut Vm, Value) -> Eval<()>,
) -> Eval<()> {
    let (limit, step) = limits(args);
    if step.is_nil() || !matches!(step, Value::Int(_) | Value::Float(_) | Value::Big(_)) {
        return Err(type_error(format!(
            "no implicit conversion of {} into Integer",
            brief(&step)
        )));
    }
    if number::is_zero(&step) {
        return Err(argument_error("step can't be 0"));
    }
    if !limit.is_nil() && float_of(&limit).is_none() {
        return Err(argument_error(format!(
            "comparison of {} with {} failed",
            Class::of(from).name(),
            brief(&limit)
        )));
    }
    walk(vm, from, &limit, &step, false, each)
}

/// Walks from a number by a step to a limit (nil: endless).
pub(crate) fn walk(
    vm: &mut Vm,
    from: &Value,
    limit: &Value,
    step: &Value,
    exclusive: bool,
    each: &mut dyn FnMut(&mut Vm, Value) -> Eval<()>,
) -> Eval<()> {
    if from.is_float() || limit.is_float() || step.is_float() {
        let (from, by) = (need_float(from)?, need_float(step)?);
        let limit = if limit.is_nil() {
            if by < 0.0 {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        } else {
            need_float(limit)?
        };
        let count = float_steps(from, limit, by, exclusive);
        let mut at = 0.0;
        while at < count {
            let value = at * by + from;
            let past = !exclusive
                && (if by >= 0.0 {
                    limit < value
                } else {
                    limit > value
                });
            each(vm, Value::Float(if past { limit } else { value }))?;
            at += 1.0;
        }
        return Ok(());
    }
    let down = number::is_negative(step);
    let mut value = from.clone();
    loop {
        if !limit.is_nil() {
            let order = number::compare(&value, limit);
            let past = if down {
                std::cmp::Ordering::Less
            } else {
                std::cmp::Ordering::Greater
            };
            if order == Some(past) || exclusive && order == Some(std::cmp::Ordering::Equal) {
                return Ok(());
            }
        }
        each(vm, value.clone())?;
        value = arithmetic(Op::Add, &value, step)?;
    }
}

/// The number of steps; `None` is endless.
pub(crate) fn step_count(from: &Value, args: &[Value], exclusive: bool) -> Eval<Option<i64>> {
    let (limit, by) = limits(args);
    count(from, &limit, &by, exclusive)
}

pub(crate) fn count(from: &Value, limit: &Value, by: &Value, exclusive: bool) -> Eval<Option<i64>> {
    if limit.is_nil() {
        return Ok(None);
    }
    if from.is_float() || limit.is_float() || by.is_float() {
        return Ok(float_steps(
            need_float(from)?,
            need_float(limit)?,
            need_float(by)?,
            exclusive,
        )
        .to_i64());
    }
    let span = arithmetic(Op::Sub, limit, from)?;
    let steps = arithmetic(Op::Div, &span, by)?;
    let Value::Int(steps) = steps else {
        return Ok(None);
    };
    let exact = number::is_zero(&arithmetic(Op::Mod, &span, by)?);
    Ok(Some((steps + 1 - i64::from(exclusive && exact)).max(0)))
}
