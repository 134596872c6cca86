//! Integer.

use super::numeric::{self, Half};
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::tree::Op;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, brief, error, type_error};
use crate::value::number::{self, arithmetic, big_of, integer, need_int, within_bits};
use crate::vm::Vm;
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_traits::{Signed, Zero};

pub(super) fn call(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    Ok(match method {
        M::ToS | M::Inspect => {
            let base = args.first().map_or(Ok(10), need_int)?;
            if !(2..=36).contains(&base) {
                return Err(argument_error(format!("invalid radix {base}")));
            }
            match receiver {
                Value::Int(it) if base == 10 => Value::str(it.to_string()),
                other => Value::str(big_of(other).unwrap_or_default().to_str_radix(base as u32)),
            }
        }
        M::EvenQ => Value::Bool(is_even(receiver)),
        M::OddQ => Value::Bool(!is_even(receiver)),
        M::Succ | M::Next => arithmetic(Op::Add, receiver, &Value::Int(1))?,
        M::Ord => receiver.clone(),
        M::Chr => {
            let code = need_int(receiver)?;
            if args.is_empty() && (128..256).contains(&code) {
                let what = format!(
                    "{code}.chr is not supported: it is not UTF-8 (expected chr(\"UTF-8\"))"
                );
                return Err(error(Class::NotImplementedError, what));
            }
            let c = u32::try_from(code).ok().and_then(char::from_u32);
            let c =
                c.ok_or_else(|| error(Class::RangeError, format!("{code} out of char range")))?;
            Value::str(c.to_string())
        }
        M::Size => match receiver {
            Value::Int(_) => Value::Int(8),
            other => Value::size(big_of(other).unwrap_or_default().to_bytes_le().1.len()),
        },
        M::OpBitAnd | M::OpBitOr | M::OpBitXor => bitwise(receiver, method, &args[0])?,
        M::OpBitNot => integer(-big_of(receiver).unwrap_or_default() - 1),
        M::OpShl | M::OpShr => {
            let places = need_int(&args[0])?;
            shift(receiver, if method == M::OpShl { places } else { -places })?
        }
        M::OpIndex => {
            let shifted = shift(receiver, -need_int(&args[0])?)?;
            Value::Int(i64::from(!is_even(&shifted)))
        }
        M::Times => {
            if let Some(block) = block {
                let count = match receiver {
                    Value::Int(count) => *count,
                    other if number::is_negative(other) => 0,
                    _ => i64::MAX,
                };
                for at in 0..count {
                    vm.call1(block, Value::Int(at))?;
                }
            }
            receiver.clone()
        }
        M::Upto | M::Downto => return upto_downto(vm, call),
        M::Round | M::Floor | M::Ceil | M::Truncate => {
            let (places, half) = numeric::rounding(method, args)?;
            rounded(receiver, method, places, half)?
        }
        _ => return Err(call.unknown()),
    })
}

fn upto_downto(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let Some(block) = block else {
        return Ok(receiver.clone());
    };
    if number::float_of(&args[0]).is_none() {
        return Err(crate::value::exception::not_comparable(receiver, &args[0]));
    }
    let by = Value::Int(if method == M::Upto { 1 } else { -1 });
    let limit = match &args[0] {
        Value::Float(it) if it.is_finite() => number::truncated(if method == M::Upto {
            it.floor()
        } else {
            it.ceil()
        })?,
        Value::Float(_) => Value::Nil,
        other => other.clone(),
    };
    numeric::walk(vm, receiver, &limit, &by, false, &mut |vm, value| {
        vm.call1(block, value).map(|_| ())
    })?;
    Ok(receiver.clone())
}

pub(crate) fn is_even(value: &Value) -> bool {
    match value {
        Value::Int(it) => it & 1 == 0,
        other => big_of(other).is_none_or(|it| it.is_even()),
    }
}

fn bitwise(a: &Value, method: M, b: &Value) -> Eval {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        return Ok(Value::Int(match method {
            M::OpBitAnd => a & b,
            M::OpBitOr => a | b,
            _ => a ^ b,
        }));
    }
    let (Some(a), Some(b)) = (big_of(a), big_of(b)) else {
        return Err(match b {
            Value::Float(_) => error(
                Class::NoMethodError,
                format!(
                    "undefined method '{}' for an instance of Float",
                    method.name()
                ),
            ),
            other => type_error(format!("{} can't be coerced into Integer", brief(other))),
        });
    };
    Ok(integer(match method {
        M::OpBitAnd => a & b,
        M::OpBitOr => a | b,
        _ => a ^ b,
    }))
}

fn shift(value: &Value, places: i64) -> Eval {
    let it = big_of(value).unwrap_or_default();
    Ok(if it.is_zero() {
        Value::Int(0)
    } else if places >= 0 {
        within_bits(it.bits().saturating_add(places.unsigned_abs()))?;
        integer(it << places as usize)
    } else {
        integer(it >> places.unsigned_abs().min(1 << 40) as usize)
    })
}

/// Rounds at a power of ten; only negative digits change an Integer.
pub(super) fn rounded(receiver: &Value, method: M, places: i64, half: Half) -> Eval {
    if places >= 0 {
        return Ok(receiver.clone());
    }
    let it = big_of(receiver).unwrap_or_default();
    let is_towards_zero = match method {
        M::Floor => !it.is_negative(),
        M::Ceil => !it.is_positive(),
        _ => true,
    };
    // A power of ten has more bits than three times its exponent.
    if is_towards_zero && places.unsigned_abs().saturating_mul(3) > it.bits() + 1 {
        return Ok(Value::Int(0));
    }
    let unit = number::power(&Value::Int(10), &Value::Int(places.saturating_neg()))?;
    let unit = big_of(&unit).unwrap_or_default();
    let below = it.div_floor(&unit) * &unit;
    let rest: BigInt = &it - &below;
    let above = &below + &unit;
    Ok(integer(match method {
        M::Floor => below,
        M::Ceil => {
            if rest.is_zero() {
                below
            } else {
                above
            }
        }
        M::Truncate => {
            if it.is_negative() && !rest.is_zero() {
                above
            } else {
                below
            }
        }
        _ => {
            let twice: BigInt = &rest * 2;
            let up = match twice.cmp(&unit) {
                std::cmp::Ordering::Less => false,
                std::cmp::Ordering::Greater => true,
                std::cmp::Ordering::Equal => match half {
                    Half::Up => !it.is_negative(),
                    Half::Down => it.is_negative(),
                    Half::Even => (&below / &unit).is_odd(),
                },
            };
            if up { above } else { below }
        }
    }))
}
