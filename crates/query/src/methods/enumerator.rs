//! Enumerator: calls its method when elements are requested; `with_index` calls it with a block of two parameters.

use super::{Found, enumerable, numeric};
use crate::class::Class;
use crate::names::M;
use crate::value::Value;
use crate::value::enumerator::Enumerator;
use crate::value::exception::error;
use crate::value::number::need_int;
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

pub(super) fn call(
    vm: &mut Vm,
    receiver: &Value,
    it: &Rc<Enumerator>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    Ok(Some(match method {
        M::Each => match block {
            None => receiver.clone(),
            Some(block) => vm.send(&it.receiver, it.method, &it.args, Some(block))?,
        },
        M::WithIndex | M::EachWithIndex | M::WithObject if block.is_some() => {
            return with_second(vm, it, method, args, block);
        }
        M::Size => match (it.method, &it.receiver) {
            (M::Step, number) if super::super::value::number::float_of(number).is_some() => {
                match numeric::step_count(number, &it.args, false)? {
                    Some(count) => Value::Int(count),
                    None => Value::Float(f64::INFINITY),
                }
            }
            (
                M::EachChar
                | M::Times
                | M::Map
                | M::EachWithIndex
                | M::Each
                | M::Select
                | M::Upto
                | M::Downto
                | M::EachSlice
                | M::EachCons
                | M::Combination
                | M::Permutation
                | M::Step
                | M::OpMod,
                _,
            ) => return enumerable::call(vm, receiver, M::Count, &[], None),
            _ => Value::Nil,
        },
        M::Last if it.class() == Class::ArithmeticSequence => {
            let list = Value::array(enumerable::to_vec(vm, receiver)?);
            return vm.send(&list, M::Last, args, None).map(Some);
        }
        M::Next | M::Peek => {
            let at = it.position.get();
            let list = enumerable::first(vm, receiver, at + 1)?;
            let Some(value) = list.get(at) else {
                return Err(error(Class::StopIteration, "iteration reached an end"));
            };
            if method == M::Next {
                it.position.set(at + 1);
            }
            value.clone()
        }
        M::Rewind => {
            it.position.set(0);
            receiver.clone()
        }
        M::Eager if it.lazy => Value::array(enumerable::to_vec(vm, receiver)?),
        M::Map | M::Collect | M::Select | M::Filter | M::Reject | M::FilterMap | M::FlatMap
            if it.lazy =>
        {
            return Err(error(
                Class::NotImplementedError,
                format!("`lazy.{}` is not supported", method.name()),
            ));
        }
        M::OpEq => {
            let same = match &args[0] {
                Value::Enumerator(other) => {
                    it.method == other.method
                        && crate::value::compare::equal(&it.receiver, &other.receiver)
                        && crate::value::compare::equal(
                            &Value::array(it.args.clone()),
                            &Value::array(other.args.clone()),
                        )
                }
                _ => false,
            };
            Value::Bool(same)
        }
        M::ToS => Value::str(crate::value::inspect::inspect(receiver)),
        _ => return enumerable::call(vm, receiver, method, args, block),
    }))
}

/// Walks with an index or an object as the second argument of the block.
fn with_second(
    vm: &mut Vm,
    it: &Rc<Enumerator>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let mut at = match (method, args.first()) {
        (M::WithIndex, Some(offset)) if !offset.is_nil() => need_int(offset)?,
        _ => 0,
    };
    let object = args.first().cloned().unwrap_or_default();
    let Some(block) = block else {
        return Ok(None);
    };
    let mut native = |vm: &mut Vm, given: &[Value]| {
        let value = if given.len() == 1 {
            given[0].clone()
        } else {
            Value::array(given.to_vec())
        };
        let second = if method == M::WithObject {
            object.clone()
        } else {
            Value::Int(at)
        };
        at += 1;
        vm.call_block(block, &[value, second])
    };
    let value = vm.send(
        &it.receiver,
        it.method,
        &it.args,
        Some(&Block::native(&mut native)),
    )?;
    Ok(Some(if method == M::WithObject {
        object
    } else {
        value
    }))
}
