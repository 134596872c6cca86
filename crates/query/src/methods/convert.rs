//! `Integer()` and `Float()`.

use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, argument_error, arity, brief, type_error};
use crate::value::inspect::inspect;
use crate::value::number::{need_int, truncated};
use crate::value::numeral::{parse_radix, strict_float, strict_integer};
use crate::vm::Vm;

pub(super) fn to_integer(vm: &mut Vm, args: &[Value]) -> Eval {
    arity(args, 1, 2)?;
    match (&args[0], args.get(1)) {
        (Value::Str(text), Some(base)) if !matches!(base, Value::Nil | Value::Int(0)) => {
            let text = text.string();
            parse_radix(&text, need_int(base)?)?.ok_or_else(|| {
                argument_error(format!(
                    "invalid value for Integer(): {}",
                    inspect(&args[0])
                ))
            })
        }
        (Value::Str(text), _) => strict_integer(&text.get())?.ok_or_else(|| {
            argument_error(format!(
                "invalid value for Integer(): {}",
                inspect(&args[0])
            ))
        }),
        (Value::Int(_) | Value::Big(_), _) => Ok(args[0].clone()),
        (Value::Float(it), _) => truncated(*it),
        (Value::Time(_), _) => vm.send(&args[0], M::ToI, &[], None),
        (Value::Nil, _) => Err(type_error("can't convert nil into Integer")),
        (other, _) => Err(type_error(format!(
            "can't convert {} into Integer",
            brief(other)
        ))),
    }
}

pub(super) fn to_float(args: &[Value]) -> Eval {
    arity(args, 1, 1)?;
    match &args[0] {
        Value::Str(text) => strict_float(&text.get()).map(Value::Float).ok_or_else(|| {
            argument_error(format!("invalid value for Float(): {}", inspect(&args[0])))
        }),
        Value::Time(time) => Ok(Value::Float(time.to_f())),
        other => crate::value::number::need_float(other).map(Value::Float),
    }
}
