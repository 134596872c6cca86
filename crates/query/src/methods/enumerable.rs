//! Enumerable: [`each`] calls a function for each element; methods that do not need all elements stop early.

use super::object::enumerator;
use super::{Found, array};
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, Flow, argument_error, arity, no_method};
use crate::value::number::need_int;
use crate::vm::block::Block;
use crate::vm::{Step, Vm};
use std::rc::Rc;

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
            let block = Block::native(&mut native);
            if matches!(it.receiver, Value::Main) {
                // `loop` without a block: endless.
                loop {
                    if let Err(flow) = vm.call_block(&block, &[Value::Nil]) {
                        break Err(flow);
                    }
                }
            } else {
                vm.send(&it.receiver, it.method, &it.args, Some(&block))
                    .map(|_| ())
            }
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

/// Enumerable's methods for what is not an Array.
pub(crate) fn call(
    vm: &mut Vm,
    receiver: &Value,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let is_lazy = matches!(receiver, Value::Enumerator(it) if it.lazy);
    match method {
        M::Force | M::Eager if !is_lazy => return Ok(None),
        M::First => {
            return Ok(Some(match args.first() {
                None => first(vm, receiver, 1)?.pop().unwrap_or_default(),
                Some(count) => Value::array(first(
                    vm,
                    receiver,
                    array::size_argument(count, "attempt to take negative size")?,
                )?),
            }));
        }
        M::Take => {
            let count = array::size_argument(&args[0], "attempt to take negative size")?;
            return Ok(Some(Value::array(first(vm, receiver, count)?)));
        }
        M::ToA | M::Entries | M::Force => {
            return to_vec(vm, receiver).map(|list| Some(Value::array(list)));
        }
        _ => {}
    }
    if let Some(value) = walk(vm, receiver, method, args, block)? {
        return Ok(Some(value));
    }
    if !SHARED.contains(&method) {
        return Ok(None);
    }
    if block.is_none() && KEEPS_RECEIVER.contains(&method) && args.is_empty() {
        return Ok(Some(enumerator(receiver, method, args)));
    }
    if block.is_none() && matches!(method, M::EachSlice | M::EachCons | M::Cycle) {
        return Ok(Some(enumerator(receiver, method, args)));
    }
    if block.is_none() && KEEPS_RECEIVER.contains(&method) && !matches!(method, M::MinBy | M::MaxBy)
    {
        arity(args, 0, 0)?;
    }
    // The other methods need all elements, as an Array.
    let list = Value::array(to_vec(vm, receiver)?);
    let value = vm.send(&list, method, args, block)?;
    Ok(Some(match (&value, method) {
        (value, M::EachSlice | M::EachCons | M::ReverseEach) if value.same(&list) => {
            receiver.clone()
        }
        _ => value,
    }))
}

/// Methods that take one element after the other, of an Array as well.
pub(super) fn walk(
    vm: &mut Vm,
    receiver: &Value,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    match (method, receiver) {
        (
            M::TakeWhile
            | M::Find
            | M::Detect
            | M::FindIndex
            | M::IncludeQ
            | M::MemberQ
            | M::AnyQ
            | M::AllQ
            | M::NoneQ
            | M::OneQ,
            _,
        )
        | (M::Index, Value::Array(_)) => search(vm, receiver, method, args, block),
        (M::EachWithIndex | M::EachWithObject | M::EachEntry, _)
        | (M::WithIndex | M::WithObject, Value::Enumerator(_)) => {
            each_with(vm, receiver, method, args, block)
        }
        (M::Count, _) => count(vm, receiver, args, block),
        (M::Lazy, _) => {
            let mut it =
                crate::value::enumerator::Enumerator::new(receiver.clone(), M::Each, Vec::new());
            it.lazy = true;
            Ok(Some(Value::Enumerator(Rc::new(it))))
        }
        _ => Ok(None),
    }
}

/// Methods that stop at the first element that decides the result.
fn search(
    vm: &mut Vm,
    receiver: &Value,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let enough = || Err(Box::new(Flow::Enough));
    let mut list = Vec::new();
    let (mut found, mut at, mut several) = (None, 0_usize, false);
    let needs_block = match method {
        M::TakeWhile | M::Find | M::Detect => true,
        M::FindIndex | M::Index => args.is_empty(),
        _ => false,
    };
    if needs_block && block.is_none() {
        return Ok(Some(enumerator(receiver, method, args)));
    }
    // What `find` is given is called when nothing is found.
    let (args, otherwise) = match (method, args) {
        (M::Find | M::Detect, [otherwise]) => (&[][..], otherwise.clone()),
        _ => (args, Value::Nil),
    };
    each(vm, receiver, &mut |vm, it| {
        let hit = match (method, args.first(), block) {
            (M::IncludeQ | M::MemberQ | M::FindIndex | M::Index, Some(wanted), _) => {
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
    Ok(Some(match method {
        M::TakeWhile => Value::array(list),
        M::Find | M::Detect => match found {
            Some((_, it)) => it,
            None if otherwise.is_nil() => Value::Nil,
            None => vm.send(&otherwise, M::Call, &[], None)?,
        },
        M::FindIndex | M::Index => Value::option(found.map(|(at, _)| at)),
        M::IncludeQ | M::MemberQ | M::AnyQ => Value::Bool(found.is_some()),
        M::OneQ => Value::Bool(found.is_some() && !several),
        _ => Value::Bool(found.is_none()),
    }))
}

/// Walks with an index or an object as the second argument of the block.
fn each_with(
    vm: &mut Vm,
    receiver: &Value,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let Some(block) = block else {
        return Ok(Some(enumerator(receiver, method, args)));
    };
    let mut at = match (method, args.first()) {
        (M::WithIndex, Some(offset)) if !offset.is_nil() => need_int(offset)?,
        _ => 0,
    };
    let object = args.first().cloned().unwrap_or_default();
    each(vm, receiver, &mut |vm, it| {
        let second = match method {
            M::EachEntry => return vm.call1(block, it).map(|_| ()),
            M::EachWithObject | M::WithObject => object.clone(),
            _ => Value::Int(at),
        };
        at += 1;
        vm.call_block(block, &[it, second]).map(|_| ())
    })?;
    Ok(Some(
        if matches!(method, M::EachWithObject | M::WithObject) {
            object
        } else {
            receiver.clone()
        },
    ))
}

/// Counts elements without keeping them.
fn count(vm: &mut Vm, receiver: &Value, args: &[Value], block: Option<&Block<'_>>) -> Found {
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
    Ok(Some(Value::size(count)))
}

/// Methods that return an Enumerator over the receiver if there is no block.
const KEEPS_RECEIVER: &[M] = &[
    M::Map,
    M::Collect,
    M::FlatMap,
    M::CollectConcat,
    M::Select,
    M::Filter,
    M::FindAll,
    M::Reject,
    M::FilterMap,
    M::Partition,
    M::GroupBy,
    M::SortBy,
    M::MinBy,
    M::MaxBy,
    M::DropWhile,
    M::ReverseEach,
    M::Chunk,
    M::ChunkWhile,
    M::SliceWhen,
];

/// Methods of Enumerable that an Array has too.
const SHARED: &[M] = &[
    M::Map,
    M::Collect,
    M::FlatMap,
    M::CollectConcat,
    M::Select,
    M::Filter,
    M::FindAll,
    M::Reject,
    M::FilterMap,
    M::Partition,
    M::GroupBy,
    M::SortBy,
    M::MinBy,
    M::MaxBy,
    M::MinmaxBy,
    M::DropWhile,
    M::ReverseEach,
    M::Chunk,
    M::ChunkWhile,
    M::SliceWhen,
    M::SliceBefore,
    M::SliceAfter,
    M::EachSlice,
    M::EachCons,
    M::Cycle,
    M::Reduce,
    M::Inject,
    M::Sum,
    M::Min,
    M::Max,
    M::Minmax,
    M::Sort,
    M::Tally,
    M::Uniq,
    M::Zip,
    M::ToH,
    M::Drop,
    M::Compact,
    M::Grep,
    M::GrepV,
    M::ToSet,
];
