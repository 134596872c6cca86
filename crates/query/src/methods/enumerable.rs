//! Enumerable: [`each`] calls a function for each element; methods that do not need all elements stop early.

use super::array;
use super::object::enumerator;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, Flow, argument_error, no_method};
use crate::vm::block::Block;
use crate::vm::{Step, Vm};

/// Calls for each element. The step may end the walk with [`Flow::Enough`].
pub(crate) fn each(vm: &mut Vm, value: &Value, step: Step<'_>) -> Eval<()> {
    let result = match value {
        Value::Array(list) => {
            let mut at = 0;
            loop {
                let Some(it) = list.borrow().get(at).cloned() else {
                    break Ok(());
                };
                if let Err(flow) = step(vm, it) {
                    break Err(flow);
                }
                at += 1;
            }
        }
        Value::Hash(table) => table.walk(|| {
            table
                .pairs()
                .into_iter()
                .try_for_each(|(key, value)| step(vm, Value::pair(key, value)))
        }),
        Value::Range(range) => super::range::each(vm, range, step),
        Value::Enumerator(it) => {
            let mut native = |vm: &mut Vm, args: &[Value]| {
                let value = if args.len() == 1 {
                    args[0].clone()
                } else {
                    Value::array(args.to_vec())
                };
                step(vm, value).map(|()| Value::Nil)
            };
            super::enumerator::run(vm, it, &Block::native(&mut native)).map(|_| ())
        }
        other => return Err(no_method("each", other)),
    };
    match result {
        Err(flow) if matches!(*flow, Flow::Enough) => Ok(()),
        other => other,
    }
}

/// Maximum number of elements to which a sequence is collected.
const COLLECTED_MAX: usize = 100_000_000;

pub(crate) fn to_vec(vm: &mut Vm, value: &Value) -> Eval<Vec<Value>> {
    let mut list = Vec::new();
    if let Value::Range(range) = value
        && range.to.is_nil()
    {
        return Err(crate::value::exception::error(
            crate::class::Class::RangeError,
            "cannot convert endless range to an array",
        ));
    }
    each(vm, value, &mut |vm, it| {
        vm.tick()?;
        list.push(it);
        if list.len() > COLLECTED_MAX {
            return Err(argument_error("too many elements"));
        }
        Ok(())
    })?;
    Ok(list)
}

/// The first elements, at most `count`.
pub(crate) fn first(vm: &mut Vm, value: &Value, count: usize) -> Eval<Vec<Value>> {
    let mut list = Vec::new();
    if count == 0 {
        return Ok(list);
    }
    each(vm, value, &mut |_, it| {
        list.push(it);
        if list.len() == count {
            Err(Box::new(Flow::Enough))
        } else {
            Ok(())
        }
    })?;
    Ok(list)
}

/// Methods that need the first elements only, or a list of all.
pub(super) fn begin(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        args,
        ..
    } = call;
    Ok(match (method, args.first()) {
        (M::First, None) => first(vm, receiver, 1)?.pop().unwrap_or_default(),
        (M::First | M::Take, Some(count)) => {
            let count = array::size_argument(count, "attempt to take negative size")?;
            Value::array(first(vm, receiver, count)?)
        }
        _ => Value::array(to_vec(vm, receiver)?),
    })
}

/// Methods that need all elements, as an Array.
pub(super) fn as_array(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        args,
        block,
    } = call;
    if block.is_none() && matches!(method, M::EachSlice | M::EachCons) {
        array::walk::part_size(method, &args[0])?;
        return Ok(enumerator(receiver, method, args));
    }
    let list = Value::array(to_vec(vm, receiver)?);
    let value = vm.send(&list, method, args, block)?;
    Ok(if value.same(&list) {
        receiver.clone()
    } else {
        value
    })
}

/// Methods that stop at the first element that decides the result.
pub(super) fn search(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        args,
        block,
    } = call;
    let enough = || Err(Box::new(Flow::Enough));
    let mut list = Vec::new();
    let (mut found, mut at, mut several) = (None, 0_usize, false);
    // What `find` is given is called when nothing is found.
    let (args, otherwise) = match (method, args) {
        (M::Find | M::Detect, [otherwise]) => (&[][..], otherwise.clone()),
        _ => (args, Value::Nil),
    };
    each(vm, receiver, &mut |vm, it| {
        let hit = match (method, args.first(), block) {
            (M::IncludeQ | M::FindIndex | M::Index, Some(wanted), _) => {
                crate::value::compare::equal(&it, wanted)
            }
            (_, Some(pattern), _) => vm.case_equal(pattern, &it)?,
            (_, None, Some(block)) => vm.call1(block, it.clone())?.truthy(),
            (_, None, None) => it.truthy(),
        };
        if matches!(method, M::TakeWhile | M::AllQ) {
            if !hit {
                found = Some((at, it));
                return enough();
            }
            if method == M::TakeWhile {
                list.push(it);
            }
        } else if hit {
            several = found.is_some();
            found = Some((at, it));
            if method != M::OneQ || several {
                return enough();
            }
        }
        at += 1;
        Ok(())
    })?;
    Ok(match method {
        M::TakeWhile => Value::array(list),
        M::Find | M::Detect => match found {
            Some((_, it)) => it,
            None if otherwise.is_nil() => Value::Nil,
            None => vm.send(&otherwise, M::Call, &[], None)?,
        },
        M::FindIndex | M::Index => Value::option(found.map(|(at, _)| at)),
        M::IncludeQ | M::AnyQ => Value::Bool(found.is_some()),
        M::OneQ => Value::Bool(found.is_some() && !several),
        _ => Value::Bool(found.is_none()),
    })
}

/// Walks with an index or an object as the second argument of the block.
pub(super) fn each_with(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        args,
        block,
        ..
    } = call;
    let Some(block) = block else {
        return Ok(receiver.clone());
    };
    let (mut at, object) = (0, args.first());
    each(vm, receiver, &mut |vm, it| {
        let second = object.cloned().unwrap_or(Value::Int(at));
        at += 1;
        vm.call_block(block, &[it, second]).map(|_| ())
    })?;
    Ok(object.unwrap_or(receiver).clone())
}

/// Counts elements without keeping them.
pub(super) fn count(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        args,
        block,
        ..
    } = call;
    let mut count = 0_usize;
    each(vm, receiver, &mut |vm, it| {
        let counts = match (args.first(), block) {
            (Some(wanted), _) => crate::value::compare::equal(&it, wanted),
            (None, Some(block)) => vm.call1(block, it)?.truthy(),
            (None, None) => true,
        };
        count += usize::from(counts);
        Ok(())
    })?;
    Ok(Value::size(count))
}
