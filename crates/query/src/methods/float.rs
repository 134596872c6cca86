//! Float, including rounding with the same steps as in Ruby.

use super::numeric::{Half, rounding};
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::Eval;
use crate::value::number::{float_to_s, truncated};
use crate::vm::Vm;

pub(super) fn call(_: &mut Vm, it: f64, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    Ok(match method {
        M::ToS | M::Inspect => Value::str(float_to_s(it)),
        M::NanQ => Value::Bool(it.is_nan()),
        M::Round | M::Floor | M::Ceil | M::Truncate => {
            let (places, half) = rounding(method, args)?;
            let method = match method {
                M::Truncate if it < 0.0 => M::Ceil,
                M::Truncate => M::Floor,
                other => other,
            };
            rounded(it, method, places, half)?
        }
        _ => return Err(call.unknown()),
    })
}

fn rounded(it: f64, method: M, places: i64, half: Half) -> Eval {
    if places > 0 {
        return Ok(Value::Float(to_places(it, method, places, half)));
    }
    let whole = match method {
        M::Floor => it.floor(),
        M::Ceil => it.ceil(),
        _ => round_half(it, 1.0, half),
    };
    if places == 0 {
        return truncated(whole);
    }
    // Left of the point, as for an Integer.
    let whole = truncated(match method {
        M::Floor | M::Ceil => whole,
        _ => it.trunc(),
    })?;
    super::integer::rounded(&whole, method, places, half)
}

/// The binary exponent, as C's `frexp` gives it.
fn exponent(it: f64) -> i64 {
    if it == 0.0 || !it.is_finite() {
        return 0;
    }
    let bits = (it.to_bits() >> 52 & 0x7ff).cast_signed();
    if bits == 0 {
        return exponent(it * 2f64.powi(64)) - 64;
    }
    bits - 1022
}

fn to_places(it: f64, method: M, places: i64, half: Half) -> f64 {
    if !it.is_finite() || it == 0.0 {
        return it;
    }
    let exponent = exponent(it);
    let third = |by: i64| exponent / by;
    // More digits than a Float has change nothing; fewer than it begins with leave nothing.
    if places >= 17 - (if exponent > 0 { third(4) } else { third(3) - 1 }) {
        return it;
    }
    let to_zero = match method {
        M::Floor => it > 0.0,
        M::Ceil => it < 0.0,
        _ => true,
    };
    if to_zero && places < -(if exponent > 0 { third(3) + 1 } else { third(4) }) {
        return 0.0;
    }
    if places > 14 {
        // Beyond exact powers of ten: through the decimal form.
        return decimal(it, method, places as usize);
    }
    let scale = 10f64.powi(places as i32);
    match method {
        M::Floor => {
            let scaled = (it * scale).floor();
            let next = (scaled + 1.0) / scale;
            if next > it { scaled / scale } else { next }
        }
        M::Ceil => {
            let scaled = (it * scale).ceil();
            let before = (scaled - 1.0) / scale;
            if before < it { scaled / scale } else { before }
        }
        _ => round_half(it, scale, half) / scale,
    }
}

fn decimal(it: f64, method: M, places: usize) -> f64 {
    let rounded: f64 = format!("{it:.places$}").parse().unwrap_or(it);
    let unit = 10f64.powi(-(places.cast_signed() as i32));
    match method {
        M::Floor if rounded > it => rounded - unit,
        M::Ceil if rounded < it => rounded + unit,
        _ => rounded,
    }
}

/// Rounds `it * scale`, correcting what the multiplication made of it.
#[expect(clippy::float_cmp, reason = "a scale of one and a half are exact")]
fn round_half(it: f64, scale: f64, half: Half) -> f64 {
    let scaled = it * scale;
    match half {
        Half::Up => {
            let mut rounded = scaled.round();
            if scale == 1.0 {
                return rounded;
            }
            if it > 0.0 {
                if (rounded + 0.5) / scale <= it {
                    rounded += 1.0;
                }
                return rounded;
            }
            if (rounded - 0.5) / scale >= it {
                rounded -= 1.0;
            }
            rounded
        }
        Half::Down => {
            let mut rounded = scaled.round();
            if it > 0.0 {
                if (rounded - 0.5) / scale >= it {
                    rounded -= 1.0;
                }
                return rounded;
            }
            if (rounded + 0.5) / scale <= it {
                rounded += 1.0;
            }
            rounded
        }
        Half::Even => {
            let rounded = scaled.round();
            if (scaled - scaled.trunc()).abs() == 0.5 {
                (scaled / 2.0).round() * 2.0
            } else {
                rounded
            }
        }
    }
}
