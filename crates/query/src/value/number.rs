//! Numbers: integers that grow beyond 64 bits by themselves, Ruby's floor division, and the text of a Float.

use super::Value;
use super::exception::{Eval, brief, divided_by_zero, error, no_conversion, type_error};
use crate::class::Class;
use crate::tree::Op;
use lastbyte_json::print::write_float;
use num_bigint::{BigInt, Sign};
use num_integer::Integer as _;
use num_traits::{FromPrimitive, One, Pow, Signed, ToPrimitive, Zero};
use std::rc::Rc;

/// An integer in its smaller form.
pub(crate) fn integer(it: BigInt) -> Value {
    match it.to_i64() {
        Some(small) => Value::Int(small),
        None => Value::Big(Rc::new(it)),
    }
}

pub(crate) fn wide(it: i128) -> Value {
    match i64::try_from(it) {
        Ok(small) => Value::Int(small),
        Err(_) => Value::Big(Rc::new(BigInt::from(it))),
    }
}

/// A number for arithmetic on any two.
pub(crate) enum Number {
    Int(BigInt),
    Float(f64),
}

impl Number {
    pub(crate) fn of(value: &Value) -> Option<Number> {
        Some(match value {
            Value::Int(it) => Number::Int(BigInt::from(*it)),
            Value::Big(it) => Number::Int((**it).clone()),
            Value::Float(it) => Number::Float(*it),
            _ => return None,
        })
    }

    fn float(&self) -> f64 {
        match self {
            Number::Int(it) => big_to_f64(it),
            Number::Float(it) => *it,
        }
    }
}

pub(crate) fn big_to_f64(it: &BigInt) -> f64 {
    // `to_f64` truncates beyond 64 bits in some versions; the decimal road rounds to nearest.
    it.to_string().parse().unwrap_or(f64::NAN)
}

/// The Float of a number; `None` for anything else.
pub(crate) fn float_of(value: &Value) -> Option<f64> {
    match value {
        Value::Float(it) => Some(*it),
        Value::Int(it) => Some(*it as f64),
        other => Number::of(other).map(|it| it.float()),
    }
}

pub(crate) fn need_float(value: &Value) -> Eval<f64> {
    float_of(value).ok_or_else(|| match value {
        Value::Nil | Value::Bool(_) => {
            type_error(format!("can't convert {} into Float", brief(value)))
        }
        _ => type_error(format!(
            "can't convert {} into Float",
            Class::of(value).name()
        )),
    })
}

/// An argument that must be an integer; a Float is truncated, as Ruby does for indices and counts.
pub(crate) fn need_int(value: &Value) -> Eval<i64> {
    match value {
        Value::Int(it) => Ok(*it),
        Value::Float(it) if it.is_nan() || it.is_infinite() => {
            Err(error(Class::FloatDomainError, float_to_s(*it)))
        }
        Value::Float(it) if it.abs() < 9.2e18 => Ok(*it as i64),
        Value::Float(it) => Err(error(
            Class::RangeError,
            format!("float {} out of range of integer", float_to_s(*it)),
        )),
        Value::Big(_) => Err(error(
            Class::RangeError,
            "bignum too big to convert into 'long'",
        )),
        other => Err(no_conversion(other, "Integer")),
    }
}

/// The integer nearest below, whole: NaN and infinities are errors.
pub(crate) fn truncated(it: f64) -> Eval {
    if !it.is_finite() {
        return Err(error(Class::FloatDomainError, float_to_s(it)));
    }
    if it.abs() < 9.2e18 {
        return Ok(Value::Int(it as i64));
    }
    Ok(BigInt::from_f64(it).map_or(Value::Nil, integer))
}

/// `a op b` on machine numbers; `None` when it is not as simple as that.
#[inline]
pub(crate) fn fast(op: Op, a: &Value, b: &Value) -> Option<Value> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => fast_int(op, *a, *b),
        (Value::Float(a), Value::Float(b)) => Some(fast_float(op, *a, *b)),
        (Value::Int(a), Value::Float(b)) if a.unsigned_abs() < 1 << 53 => {
            Some(fast_float(op, *a as f64, *b))
        }
        (Value::Float(a), Value::Int(b)) if b.unsigned_abs() < 1 << 53 => {
            Some(fast_float(op, *a, *b as f64))
        }
        _ => None,
    }
}

/// Whether a comparison holds; `None` for other operators.
#[inline]
pub(crate) fn holds(op: Op, a: i64, b: i64) -> Option<bool> {
    Some(match op {
        Op::Lt => a < b,
        Op::Le => a <= b,
        Op::Gt => a > b,
        Op::Ge => a >= b,
        Op::Eq => a == b,
        Op::Ne => a != b,
        _ => return None,
    })
}

/// Of two Integers; `None` if the result is not one of 64 bits.
#[inline]
pub(crate) fn fast_int(op: Op, a: i64, b: i64) -> Option<Value> {
    Some(match op {
        Op::Add => Value::Int(a.checked_add(b)?),
        Op::Sub => Value::Int(a.checked_sub(b)?),
        Op::Mul => Value::Int(a.checked_mul(b)?),
        Op::Div if b != 0 && b != -1 => Value::Int(num_integer::Integer::div_floor(&a, &b)),
        Op::Mod if b != 0 && b != -1 => Value::Int(num_integer::Integer::mod_floor(&a, &b)),
        Op::Div | Op::Mod => return None,
        _ => Value::Bool(holds(op, a, b)?),
    })
}

#[expect(clippy::float_cmp, reason = "Ruby's == on floats is exact")]
fn fast_float(op: Op, a: f64, b: f64) -> Value {
    match op {
        Op::Add => Value::Float(a + b),
        Op::Sub => Value::Float(a - b),
        Op::Mul => Value::Float(a * b),
        Op::Div => Value::Float(a / b),
        Op::Mod => Value::Float(float_mod(a, b)),
        Op::Lt => Value::Bool(a < b),
        Op::Le => Value::Bool(a <= b),
        Op::Gt => Value::Bool(a > b),
        Op::Ge => Value::Bool(a >= b),
        Op::Eq => Value::Bool(a == b),
        Op::Ne => Value::Bool(a != b),
    }
}

/// The remainder with the sign of the divisor.
pub(crate) fn float_mod(a: f64, b: f64) -> f64 {
    if b == 0.0 {
        return f64::NAN;
    }
    if b.is_infinite() && a.is_finite() {
        return if a == 0.0 || (a > 0.0) == (b > 0.0) {
            a
        } else {
            b
        };
    }
    let rest = a % b;
    if rest != 0.0 && (b < 0.0) != (rest < 0.0) {
        rest + b
    } else {
        rest
    }
}

/// `a op b` for the four operations and the remainder; `a` is a number.
pub(crate) fn arithmetic(op: Op, a: &Value, b: &Value) -> Eval {
    if let Some(value) = fast(op, a, b) {
        return Ok(value);
    }
    let (Some(left), Some(right)) = (Number::of(a), Number::of(b)) else {
        return Err(type_error(format!(
            "{} can't be coerced into {}",
            brief(b),
            Class::of(a).name()
        )));
    };
    match (left, right) {
        (Number::Int(a), Number::Int(b)) => big(op, &a, &b),
        (left @ Number::Float(_), right) | (left, right @ Number::Float(_)) => {
            Ok(fast_float(op, left.float(), right.float()))
        }
    }
}

/// Maximum length of an integer, in bits. The time of a multiplication, and that of making digits, grows faster than the length,
/// and neither is interrupted.
const BITS_MAX: u64 = 131_072;

/// Refuses a longer integer.
pub(crate) fn within_bits(bits: u64) -> Eval<()> {
    if bits <= BITS_MAX {
        return Ok(());
    }
    let what = format!("integer of {bits} bits (expected at most {BITS_MAX})");
    Err(error(Class::RangeError, what))
}

/// An integer that may be too long.
fn bounded(it: BigInt) -> Eval {
    within_bits(it.bits())?;
    Ok(integer(it))
}

fn big(op: Op, a: &BigInt, b: &BigInt) -> Eval {
    bounded(match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div | Op::Mod if b.is_zero() => return Err(divided_by_zero()),
        Op::Div => a.div_floor(b),
        Op::Mod => a.mod_floor(b),
        Op::Lt => return Ok(Value::Bool(a < b)),
        Op::Le => return Ok(Value::Bool(a <= b)),
        Op::Gt => return Ok(Value::Bool(a > b)),
        Op::Ge => return Ok(Value::Bool(a >= b)),
        Op::Eq => return Ok(Value::Bool(a == b)),
        Op::Ne => return Ok(Value::Bool(a != b)),
    })
}

/// `a <=> b` for numbers; `None` beside NaN or when `b` is no number.
pub(crate) fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => return Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => return a.partial_cmp(b),
        _ => {}
    }
    match (Number::of(a)?, Number::of(b)?) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Int(a), Number::Float(b)) => compare_big_float(&a, b),
        (Number::Float(a), Number::Int(b)) => {
            compare_big_float(&b, a).map(std::cmp::Ordering::reverse)
        }
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
    }
}

fn compare_big_float(a: &BigInt, b: f64) -> Option<std::cmp::Ordering> {
    use std::cmp::Ordering;
    if b.is_nan() {
        return None;
    }
    if b.is_infinite() {
        return Some(if b > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    }
    let whole = BigInt::from_f64(b.trunc())?;
    Some(
        a.cmp(&whole)
            .then_with(|| 0.0.partial_cmp(&b.fract()).unwrap_or(Ordering::Equal)),
    )
}

/// `a ** b`.
pub(crate) fn power(a: &Value, b: &Value) -> Eval {
    match (a, b) {
        (Value::Int(_) | Value::Big(_), Value::Int(exponent)) => {
            let Some(Number::Int(base)) = Number::of(a) else {
                return Ok(Value::Nil);
            };
            let size = exponent.unsigned_abs();
            if base.bits() > 1 {
                // The fewest bits that it can have.
                within_bits((base.bits() - 1).saturating_mul(size).saturating_add(1))?;
            }
            let raised: BigInt = Pow::pow(&base, size);
            // 1 and -1 stay integers.
            if *exponent >= 0 || raised.magnitude().is_one() {
                return bounded(raised);
            }
            if raised.is_zero() {
                return Err(divided_by_zero());
            }
            let what = "a whole number to a negative power is a Rational in Ruby, which is not supported (expected a Float, as in `2.0 ** -1`)";
            Err(error(Class::NotImplementedError, what))
        }
        (Value::Int(base @ -1..=1), Value::Big(exponent)) if exponent.is_positive() => {
            let is_even = !exponent.bit(0);
            Ok(Value::Int(if is_even { base * base } else { *base }))
        }
        _ => {
            let Some(exponent) = float_of(b) else {
                return Err(type_error(format!(
                    "{} can't be coerced into {}",
                    brief(b),
                    Class::of(a).name()
                )));
            };
            let base = float_of(a).unwrap_or(f64::NAN);
            if base < 0.0 && exponent.fract() != 0.0 && exponent.is_finite() {
                return Err(error(
                    Class::NotImplementedError,
                    "a negative number to a broken power is Complex in Ruby, which is not supported here",
                ));
            }
            Ok(Value::Float(base.powf(exponent)))
        }
    }
}

pub(crate) fn negate(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Int(it) => wide(-i128::from(*it)),
        Value::Float(it) => Value::Float(-it),
        Value::Big(it) => integer(-(**it).clone()),
        _ => return None,
    })
}

pub(crate) fn is_negative(value: &Value) -> bool {
    match value {
        Value::Int(it) => *it < 0,
        Value::Float(it) => *it < 0.0,
        Value::Big(it) => it.sign() == Sign::Minus,
        _ => false,
    }
}

pub(crate) fn big_of(value: &Value) -> Option<BigInt> {
    match value {
        Value::Int(it) => Some(BigInt::from(*it)),
        Value::Big(it) => Some((**it).clone()),
        _ => None,
    }
}

pub(crate) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(it) => *it == 0,
        Value::Float(it) => *it == 0.0,
        _ => false,
    }
}

pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    compare(a, b) == Some(std::cmp::Ordering::Equal)
}

pub(crate) fn float_to_s(it: f64) -> String {
    let mut out = String::new();
    write_float(&mut out, it);
    out
}
