//! Methods that call a block with the elements of an Array. All of Enumerable uses them once its elements are known.

use super::super::enumerable::{self, each};
use super::super::object::enumerator;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::compare::equal;
use crate::value::exception::{Eval, argument_error, wrong_arguments};
use crate::value::inspect::to_s;
use crate::value::number::need_int;
use crate::value::table::Table;
use crate::value::{List, Value};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

/// The argument of `each_slice` and `each_cons`.
pub(in crate::methods) fn part_size(method: M, size: &Value) -> Eval<usize> {
    let size = usize::try_from(need_int(size)?).unwrap_or(0);
    match size {
        0 if method == M::EachSlice => Err(argument_error("invalid slice size")),
        0 => Err(argument_error("invalid size")),
        size => Ok(size),
    }
}

/// Methods that make one value of all elements, or part them by a pattern.
pub(in crate::methods) fn fold(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        args,
        block,
    } = call;
    Ok(match method {
        M::Reduce | M::Inject => inject(vm, receiver, args, block)?,
        M::Tally => {
            let table = Table::default();
            for it in list.borrow().iter() {
                let count = match table.get(it) {
                    Some(Value::Int(count)) => count,
                    _ => 0,
                };
                table.insert(it.clone(), Value::Int(count + 1));
            }
            Value::hash(table)
        }
        M::Grep | M::GrepV => {
            let mut out = Vec::new();
            each(vm, receiver, &mut |vm, it| {
                if vm.case_equal(&args[0], &it)? == (method == M::Grep) {
                    out.push(match block {
                        Some(block) => vm.call1(block, it)?,
                        None => it,
                    });
                }
                Ok(())
            })?;
            Value::array(out)
        }
        _ => return Err(call.unknown()),
    })
}

/// Calls the block for its effects.
pub(in crate::methods) fn go(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        args,
        block,
    } = call;
    if matches!(method, M::EachSlice | M::EachCons) {
        part_size(method, &args[0])?;
    }
    let Some(block) = block else {
        return Ok(match method {
            M::EachSlice | M::EachCons => enumerator(receiver, method, args),
            _ => receiver.clone(),
        });
    };
    match method {
        M::Each => {
            each(vm, receiver, &mut |vm, it| vm.call1(block, it).map(|_| ()))?;
        }
        M::ReverseEach => {
            let elements = list.borrow().clone();
            for it in elements.into_iter().rev() {
                vm.call1(block, it)?;
            }
        }
        M::EachSlice | M::EachCons => {
            let size = part_size(method, &args[0])?;
            let elements = list.borrow().clone();
            let parts: Vec<&[Value]> = if method == M::EachSlice {
                elements.chunks(size).collect()
            } else {
                elements.windows(size).collect()
            };
            for part in parts {
                vm.call1(block, Value::array(part.to_vec()))?;
            }
        }
        _ => return Err(call.unknown()),
    }
    Ok(receiver.clone())
}

/// Finds the last, groups and divides elements.
pub(in crate::methods) fn divide(vm: &mut Vm, _: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        block,
        ..
    } = call;
    let Some(block) = block else {
        return Ok(receiver.clone());
    };
    Ok(match method {
        M::Partition => {
            let (mut out, mut rest) = (Vec::new(), Vec::new());
            each(vm, receiver, &mut |vm, it| {
                if vm.call1(block, it.clone())?.truthy() {
                    &mut out
                } else {
                    &mut rest
                }
                .push(it);
                Ok(())
            })?;
            Value::pair(Value::array(out), Value::array(rest))
        }
        M::GroupBy => {
            let table = Table::default();
            each(vm, receiver, &mut |vm, it| {
                let key = vm.call1(block, it.clone())?;
                match table.get(&key) {
                    Some(Value::Array(group)) => group.borrow_mut().push(it),
                    _ => table.insert(key, Value::array(vec![it])),
                }
                Ok(())
            })?;
            Value::hash(table)
        }
        _ => return Err(call.unknown()),
    })
}

/// The elements, or the values of the block, that a method keeps.
pub(in crate::methods) fn collect(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        block,
        ..
    } = call;
    let Some(block) = block else {
        return Ok(receiver.clone());
    };
    let mut out = Vec::new();
    match method {
        M::Map | M::Collect => {
            out.reserve(list.borrow().len());
            each(vm, receiver, &mut |vm, it| {
                out.push(vm.call1(block, it)?);
                Ok(())
            })?;
        }
        M::FlatMap => each(vm, receiver, &mut |vm, it| {
            match vm.call1(block, it)? {
                Value::Array(more) => out.extend(more.borrow().iter().cloned()),
                other => out.push(other),
            }
            Ok(())
        })?,
        M::Select | M::Filter | M::Reject => each(vm, receiver, &mut |vm, it| {
            if vm.call1(block, it.clone())?.truthy() == (method != M::Reject) {
                out.push(it);
            }
            Ok(())
        })?,
        M::FilterMap => each(vm, receiver, &mut |vm, it| {
            let value = vm.call1(block, it)?;
            if value.truthy() {
                out.push(value);
            }
            Ok(())
        })?,
        M::DropWhile => {
            let mut dropping = true;
            each(vm, receiver, &mut |vm, it| {
                dropping = dropping && vm.call1(block, it.clone())?.truthy();
                if !dropping {
                    out.push(it);
                }
                Ok(())
            })?;
        }
        _ => return Err(call.unknown()),
    }
    Ok(Value::array(out))
}

/// Methods that return runs of adjacent elements.
pub(in crate::methods) fn part(vm: &mut Vm, _: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        block,
        ..
    } = call;
    let Some(block) = block else {
        return Ok(receiver.clone());
    };
    let mut out = Vec::new();
    match method {
        M::ChunkWhile | M::SliceWhen => {
            let mut part: Vec<Value> = Vec::new();
            each(vm, receiver, &mut |vm, it| {
                if let Some(last) = part.last() {
                    let hit = vm.call_block(block, &[last.clone(), it.clone()])?.truthy();
                    if hit == (method == M::SliceWhen) {
                        out.push(Value::array(std::mem::take(&mut part)));
                    }
                }
                part.push(it);
                Ok(())
            })?;
            if !part.is_empty() {
                out.push(Value::array(part));
            }
        }
        _ => return Err(call.unknown()),
    }
    Ok(Value::array(out))
}

/// The first or last place of a value, or of an element for which the block is true.
pub(in crate::methods) fn index(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let Call {
        method,
        args,
        block,
        ..
    } = call;
    if method == M::Index {
        return enumerable::search(vm, call);
    }
    let elements = list.borrow().clone();
    for (at, it) in elements.into_iter().enumerate().rev() {
        let hit = match (args.first(), block) {
            (Some(wanted), _) => equal(&it, wanted),
            (None, Some(block)) => vm.call1(block, it)?.truthy(),
            (None, None) => false,
        };
        if hit {
            return Ok(Value::size(at));
        }
    }
    Ok(Value::Nil)
}

fn inject(vm: &mut Vm, receiver: &Value, args: &[Value], block: Option<&Block<'_>>) -> Eval {
    let (mut total, operator) = match (args, block) {
        ([], Some(_)) => (None, None),
        ([initial], Some(_)) => (Some(initial.clone()), None),
        ([operator], None) => (None, Some(operator)),
        ([initial, operator], _) => (Some(initial.clone()), Some(operator)),
        ([], None) => {
            return Err(crate::value::exception::error(
                crate::class::Class::LocalJumpError,
                "no block given",
            ));
        }
        _ => return Err(wrong_arguments(args.len(), 0, Some(2))),
    };
    let operator = match operator {
        Some(name) => {
            let name = to_s(name);
            Some(
                M::find(&name)
                    .ok_or_else(|| argument_error(format!("undefined method '{name}'")))?,
            )
        }
        None => None,
    };
    each(vm, receiver, &mut |vm, it| {
        total = Some(match (total.take(), operator, block) {
            (None, ..) => it,
            (Some(total), Some(operator), _) => vm.send(&total, operator, &[it], None)?,
            (Some(total), None, Some(block)) => vm.call_block(block, &[total, it])?,
            (Some(total), None, None) => total,
        });
        Ok(())
    })?;
    Ok(total.unwrap_or_default())
}
