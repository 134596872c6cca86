//! The methods of values, one file per class. [`table`] says which there are, and how they are called.

mod array;
mod call;
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
mod range;
mod regexp;
mod strftime;
mod string;
mod symbol;
mod table;
mod time;

use self::call::Call;
use crate::names::M;
use crate::tree::Op;
use crate::value::Value;
use crate::value::compare;
use crate::value::exception::{Eval, frozen, no_method, not_comparable};
use crate::value::number;
use crate::vm::Vm;
use crate::vm::block::Block;

/// Calls a method.
pub(crate) fn call(
    vm: &mut Vm,
    receiver: &Value,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    let call = Call {
        receiver,
        method,
        args,
        block,
    };
    let Some(entry) = table::find(receiver, method) else {
        return Err(call.unknown());
    };
    if entry.is_plain && entry.fits(args) {
        let value = (entry.function)(vm, call)?;
        vm.made(receiver, &value)?;
        return Ok(value);
    }
    entry.check(args)?;
    if block.is_none() && entry.enumerates(args)? {
        return Ok(object::enumerator(receiver, method, args));
    }
    if entry.changes && object::is_frozen(receiver) {
        return Err(frozen(receiver));
    }
    if entry.spreads
        && let (Value::Enumerator(it), Some(block)) = (receiver, block)
        && it.yields_two()
    {
        let mut both = |vm: &mut Vm, given: &[Value]| match given {
            [Value::Array(pair)] => {
                let pair = pair.borrow().clone();
                vm.call_block(block, &pair)
            }
            _ => vm.call_block(block, given),
        };
        let block = Block::native(&mut both);
        return (entry.function)(
            vm,
            Call {
                block: Some(&block),
                ..call
            },
        );
    }
    let value = (entry.function)(vm, call)?;
    vm.made(receiver, &value)?;
    Ok(value)
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
        Value::Int(_) | Value::Float(_) | Value::Big(_) => match op {
            Op::Lt | Op::Le | Op::Gt | Op::Ge => match right {
                Value::Int(_) | Value::Float(_) | Value::Big(_) => {
                    let order = number::compare(left, right);
                    Ok(Value::Bool(
                        order.is_some_and(|order| comparable::holds(op, order)),
                    ))
                }
                _ => Err(not_comparable(left, right)),
            },
            _ => number::arithmetic(op, left, right),
        },
        _ => call(vm, left, op.method(), std::slice::from_ref(right), None),
    }
}
