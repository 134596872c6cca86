//! The methods of values, one file per class. If a class does not have a method, the modules that it includes
//! (Comparable, Enumerable) are searched, and then the methods of every object.

mod arity;
mod array;
mod class;
mod comparable;
mod convert;
pub(crate) mod enumerable;
mod enumerator;
mod exception;
mod float;
mod format;
mod hash;
mod integer;
mod kernel;
mod math;
mod numeric;
mod object;
mod proc;
mod random;
mod range;
mod regexp;
mod strftime;
mod string;
mod symbol;
mod time;

use crate::names::M;
use crate::tree::Op;
use crate::value::Value;
use crate::value::compare;
use crate::value::exception::{Eval, no_method, not_comparable};
use crate::value::number;
use crate::vm::Vm;
use crate::vm::block::Block;

/// The result of a method; `None` if the class does not have it.
pub(crate) type Found = Eval<Option<Value>>;

/// Calls a method.
pub(crate) fn call(
    vm: &mut Vm,
    receiver: &Value,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    arity::check(receiver, method, args)?;
    let found = match receiver {
        // No class overrides these.
        _ if matches!(method, M::IsAQ | M::KindOfQ | M::NilQ) => None,
        Value::Str(text) => string::call(vm, receiver, text, method, args, block)?,
        Value::Array(list) => array::call(vm, receiver, list, method, args, block)?,
        Value::Hash(table) => hash::call(vm, receiver, table, method, args, block)?,
        Value::Int(_) | Value::Big(_) => integer::call(vm, receiver, method, args, block)?,
        Value::Float(it) => float::call(vm, *it, method, args, block)?,
        Value::Rational(_) => numeric::call(vm, receiver, method, args, block)?,
        Value::Symbol(it) => symbol::call(vm, *it, method, args, block)?,
        Value::Range(range) => range::call(vm, receiver, range, method, args, block)?,
        Value::Regexp(pattern) => regexp::call(vm, pattern, method, args)?,
        Value::Match(found) => regexp::call_match(vm, found, method, args)?,
        Value::Time(time) => time::call(time, method, args)?,
        Value::Proc(it) => proc::call(vm, it, method, args, block)?,
        Value::Enumerator(it) => enumerator::call(vm, receiver, it, method, args, block)?,
        Value::Exception(it) => exception::call(it, method, args)?,
        Value::Class(it) => class::call(vm, *it, method, args, block)?,
        Value::Random(it) => random::call(&mut it.borrow_mut(), method, args)?,
        Value::Nil | Value::Bool(_) => object::call_nil(receiver, method, args)?,
        Value::Main | Value::Token(_) | Value::Dropped | Value::Flat(_) => None,
    };
    match found {
        Some(value) => {
            vm.made(receiver, &value)?;
            Ok(value)
        }
        None => match object::call(vm, receiver, method, args, block)? {
            Some(value) => Ok(value),
            None => Err(no_method(method.name(), receiver)),
        },
    }
}

/// `a op b` for values that are not both machine numbers.
pub(crate) fn binary(vm: &mut Vm, op: Op, left: &Value, right: &Value) -> Eval {
    match op {
        Op::Eq => {
            if let Value::Token(_) = left {
                return Err(no_method(op.name(), left));
            }
            return Ok(Value::Bool(compare::equal(left, right)));
        }
        Op::Ne => return Ok(Value::Bool(!compare::equal(left, right))),
        _ => {}
    }
    match left {
        Value::Int(_) | Value::Float(_) | Value::Big(_) | Value::Rational(_) => match op {
            Op::Lt | Op::Le | Op::Gt | Op::Ge => match right {
                Value::Int(_) | Value::Float(_) | Value::Big(_) | Value::Rational(_) => {
                    let order = number::compare(left, right);
                    Ok(Value::Bool(
                        order.is_some_and(|order| comparable::holds(op, order)),
                    ))
                }
                _ => Err(not_comparable(left, right)),
            },
            _ => number::arithmetic(op, left, right),
        },
        _ => {
            let method = match op {
                Op::Add => M::OpAdd,
                Op::Sub => M::OpSub,
                Op::Mul => M::OpMul,
                Op::Div => M::OpDiv,
                Op::Mod => M::OpMod,
                Op::Lt => M::OpLt,
                Op::Le => M::OpLe,
                Op::Gt => M::OpGt,
                _ => M::OpGe,
            };
            call(vm, left, method, std::slice::from_ref(right), None)
        }
    }
}
