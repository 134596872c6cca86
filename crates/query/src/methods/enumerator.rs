//! Enumerator: calls its method when elements are requested; `with_index` calls it with a block of two parameters.

use super::{enumerable, numeric};
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::tree::Function;
use crate::value::Value;
use crate::value::enumerator::Enumerator;
use crate::value::exception::Eval;
use crate::value::number::need_int;
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

/// Calls the method that yields the elements.
pub(super) fn run(vm: &mut Vm, it: &Enumerator, block: &Block<'_>) -> Eval {
    match it.receiver {
        Value::Main => vm.kernel(Function::Loop, &[], false, Some(block)),
        _ => vm.send(&it.receiver, it.method, &it.args, Some(block)),
    }
}

/// What is yielded, as one value.
pub(super) fn packed(given: &[Value]) -> Value {
    match given {
        [one] => one.clone(),
        several => Value::array(several.to_vec()),
    }
}

pub(super) fn call(vm: &mut Vm, it: &Rc<Enumerator>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    Ok(match method {
        M::Each => match block {
            None => receiver.clone(),
            Some(block) => match (run(vm, it, block)?, it.class()) {
                (_, Class::ArithmeticSequence) => receiver.clone(),
                (value, _) => value,
            },
        },
        M::Size => match (it.method, &it.receiver) {
            (M::Step, number) if super::super::value::number::float_of(number).is_some() => {
                match numeric::step_count(number, &it.args, false)? {
                    Some(count) => Value::Int(count),
                    None => Value::Float(f64::INFINITY),
                }
            }
            (M::Times, Value::Int(count)) => Value::Int((*count).max(0)),
            (
                M::Detect
                | M::DropWhile
                | M::EachLine
                | M::Find
                | M::FindIndex
                | M::Index
                | M::Rindex
                | M::TakeWhile,
                _,
            ) => Value::Nil,
            (method, it @ (Value::Range(_) | Value::Enumerator(_)))
                if !matches!(method, M::EachSlice | M::EachCons | M::Step | M::OpMod) =>
            {
                vm.send(it, M::Size, &[], None)?
            }
            _ => {
                let method = M::Count;
                return enumerable::count(vm, Call { method, ..call });
            }
        },
        M::Last => {
            let list = Value::array(enumerable::to_vec(vm, receiver)?);
            return vm.send(&list, M::Last, args, None);
        }
        _ => return Err(call.unknown()),
    })
}

/// Walks with an index or an object as the second argument of the block.
pub(super) fn with_second(vm: &mut Vm, it: &Rc<Enumerator>, call: Call<'_, '_>) -> Eval {
    let (_, method, args, block) = call.parts();
    let mut at = match (method, args.first()) {
        (M::WithIndex, Some(offset)) if !offset.is_nil() => need_int(offset)?,
        _ => 0,
    };
    let object = args.first().cloned().unwrap_or_default();
    let Some(block) = block else {
        return Err(call.unknown());
    };
    let mut native = |vm: &mut Vm, given: &[Value]| {
        let value = packed(given);
        let second = if matches!(method, M::EachWithObject) {
            object.clone()
        } else {
            Value::Int(at)
        };
        at += 1;
        vm.call_block(block, &[value, second])
    };
    let value = run(vm, it, &Block::native(&mut native))?;
    Ok(if matches!(method, M::EachWithObject) {
        object
    } else {
        value
    })
}
