//! The functions of Math.

use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, error};
use crate::value::number::need_float;
use crate::vm::Vm;

pub(super) fn call(_: &mut Vm, _: Class, call: Call<'_, '_>) -> Eval {
    let Call { method, args, .. } = call;
    let two = method == M::Atan2 || method == M::Log && args.len() == 2;
    let function: fn(f64) -> f64 = match method {
        M::Sqrt => f64::sqrt,
        M::Log => f64::ln,
        M::Log2 => f64::log2,
        M::Log10 => f64::log10,
        M::Exp => f64::exp,
        M::Sin => f64::sin,
        M::Cos => f64::cos,
        M::Asin => f64::asin,
        M::Atan2 => f64::abs,
        _ => return Err(call.unknown()),
    };
    let x = need_float(&args[0])?;
    let outside = match method {
        M::Sqrt | M::Log | M::Log2 | M::Log10 => x < 0.0,
        M::Asin => x.abs() > 1.0,
        _ => false,
    };
    if outside {
        return Err(error(
            Class::MathDomainError,
            format!(
                "Numerical argument is out of domain - \"{}\"",
                method.name()
            ),
        ));
    }
    if two {
        let y = need_float(&args[1])?;
        return Ok(Value::Float(if method == M::Atan2 {
            x.atan2(y)
        } else {
            x.ln() / y.ln()
        }));
    }
    Ok(Value::Float(function(x)))
}
