//! Enumerable: [`each`] calls a function for each element; methods that do not need all elements stop early.

use super::array::{combine, insert_pair, size_argument, uniq};
use super::object::enumerator;
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::compare::equal;
use crate::value::exception::{Eval, Flow, argument_error, error, no_method, wrong_arguments};
use crate::value::inspect::to_s;
use crate::value::number::need_int;
use crate::value::table::Table;
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
        Value::Range(range) => super::range::each(vm, range, &mut |vm, it| {
            vm.tick()?;
            step(vm, it)
        }),
        Value::Enumerator(it) => {
            let mut native = |vm: &mut Vm, args: &[Value]| {
                vm.tick()?;
                step(vm, super::enumerator::packed(args)).map(|()| Value::Nil)
            };
            super::enumerator::run(vm, it, &Block::native(&mut native)).map(|_| ())
        }
        other => return Err(no_method("each", other)),
    };
    ended(result)
}

/// The end of a walk, which may be early.
fn ended(result: Eval<()>) -> Eval<()> {
    match result {
        Err(flow) if matches!(*flow, Flow::Enough) => Ok(()),
        other => other,
    }
}

/// An element that a block was called with: of a Hash, the key and its value.
enum Element {
    One(Value),
    Pair(Value, Value),
}

impl Element {
    fn value(self) -> Value {
        match self {
            Element::One(value) => value,
            Element::Pair(key, value) => Value::pair(key, value),
        }
    }
}

/// Calls the block for each element. The step is given the element and the block's value.
fn each_result(
    vm: &mut Vm,
    receiver: &Value,
    block: &Block<'_>,
    step: &mut dyn FnMut(Element, Value) -> Eval<()>,
) -> Eval<()> {
    let Value::Hash(table) = receiver else {
        return each(vm, receiver, &mut |vm, it| {
            let value = vm.call1(block, it.clone())?;
            step(Element::One(it), value)
        });
    };
    ended(table.walk(|| {
        table.pairs().into_iter().try_for_each(|(key, value)| {
            let result = vm.call_pair(block, key.clone(), value.clone())?;
            step(Element::Pair(key, value), result)
        })
    }))
}

/// Calls the step with each element, and whether it is the argument, matches it, or makes the block true.
fn each_hit(
    vm: &mut Vm,
    call: Call<'_, '_>,
    step: &mut dyn FnMut(Element, bool) -> Eval<()>,
) -> Eval<()> {
    let (receiver, method, args, block) = call.parts();
    match (args.first(), block) {
        (None, Some(block)) => each_result(vm, receiver, block, &mut |it, value| {
            step(it, value.truthy())
        }),
        (wanted, _) => each(vm, receiver, &mut |vm, it| {
            let hit = match wanted {
                Some(wanted)
                    if matches!(method, M::IncludeQ | M::FindIndex | M::Index | M::Count) =>
                {
                    equal(&it, wanted)
                }
                Some(pattern) => vm.case_equal(pattern, &it)?,
                None => it.truthy() || method == M::Count,
            };
            step(Element::One(it), hit)
        }),
    }
}

/// Maximum number of elements to which a sequence is collected.
const COLLECTED_MAX: usize = 100_000_000;

/// Refuses what has no end, for methods that need all elements.
fn need_end(value: &Value) -> Eval<()> {
    match value {
        Value::Range(range) if range.to.is_nil() && !range.from.is_nil() => Err(error(
            Class::RangeError,
            "cannot convert endless range to an array",
        )),
        _ => Ok(()),
    }
}

pub(crate) fn to_vec(vm: &mut Vm, value: &Value) -> Eval<Vec<Value>> {
    if let Value::Array(list) = value {
        return Ok(list.borrow().clone());
    }
    need_end(value)?;
    let mut list = Vec::new();
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

/// Methods that need the first elements only.
pub(super) fn begin(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, _, args, _) = call.parts();
    Ok(match args.first() {
        None => first(vm, receiver, 1)?.pop().unwrap_or_default(),
        Some(count) => {
            let count = size_argument(count, "attempt to take negative size")?;
            Value::array(first(vm, receiver, count)?)
        }
    })
}

/// Methods that work on a list of all elements.
pub(super) fn whole(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let mut list = to_vec(vm, receiver)?;
    Ok(match method {
        M::ToA => Value::array(list),
        M::Compact => {
            list.retain(|it| !it.is_nil());
            Value::array(list)
        }
        M::Drop => {
            let count = size_argument(&args[0], "attempt to drop negative size")?;
            Value::array(list.split_off(count.min(list.len())))
        }
        M::Uniq => Value::array(uniq(vm, &list, block)?),
        M::Zip => combine::zip(vm, list, args, block)?,
        M::ToH => {
            let table = Table::default();
            for it in list {
                let pair = match block {
                    Some(block) => vm.call1(block, it)?,
                    None => it,
                };
                insert_pair(&table, &pair, "wrong array length")?;
            }
            Value::hash(table)
        }
        M::ReverseEach => {
            let block = call.block()?;
            for it in list.into_iter().rev() {
                vm.call1(block, it)?;
            }
            receiver.clone()
        }
        _ => return Err(call.unknown()),
    })
}

/// Calls the block with runs of elements.
pub(super) fn each_part(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let size = usize::try_from(need_int(&args[0])?).unwrap_or(0);
    if size == 0 {
        return Err(argument_error(match method {
            M::EachSlice => "invalid slice size",
            _ => "invalid size",
        }));
    }
    let Some(block) = block else {
        return Ok(enumerator(receiver, method, args));
    };
    let list = to_vec(vm, receiver)?;
    let mut part = |part: &[Value]| vm.call1(block, Value::array(part.to_vec())).map(|_| ());
    if method == M::EachSlice {
        list.chunks(size).try_for_each(&mut part)?;
    } else {
        list.windows(size).try_for_each(&mut part)?;
    }
    Ok(receiver.clone())
}

/// Calls the block for its effects.
pub(super) fn each_element(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    each_result(vm, call.receiver, call.block()?, &mut |_, _| Ok(()))?;
    Ok(call.receiver.clone())
}

/// The elements, or the values of the block, that a method keeps.
pub(super) fn collect(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, ..) = call.parts();
    need_end(receiver)?;
    let (block, mut out) = (call.block()?, Vec::new());
    if method == M::DropWhile {
        each(vm, receiver, &mut |vm, it| {
            if !out.is_empty() || !vm.call1(block, it.clone())?.truthy() {
                out.push(it);
            }
            Ok(())
        })?;
        return Ok(Value::array(out));
    }
    each_result(vm, receiver, block, &mut |it, value| {
        match (method, value) {
            (M::FlatMap, Value::Array(more)) => out.extend(more.borrow().iter().cloned()),
            (M::Map | M::Collect | M::FlatMap, value) => out.push(value),
            (M::FilterMap, value) => out.extend(Some(value).filter(Value::truthy)),
            (_, value) if value.truthy() == (method != M::Reject) => out.push(it.value()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(Value::array(out))
}

/// The values of the block with their elements.
pub(super) fn with_results(vm: &mut Vm, call: Call<'_, '_>) -> Eval<Vec<(Value, Value)>> {
    need_end(call.receiver)?;
    let mut pairs = Vec::new();
    each_result(vm, call.receiver, call.block()?, &mut |it, value| {
        pairs.push((value, it.value()));
        Ok(())
    })?;
    Ok(pairs)
}

/// Divides the elements by the values of the block.
pub(super) fn divide(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, ..) = call.parts();
    need_end(receiver)?;
    let (groups, mut out, mut rest) = (Table::default(), Vec::new(), Vec::new());
    each_result(vm, receiver, call.block()?, &mut |it, value| {
        match (method, groups.get(&value)) {
            (M::GroupBy, Some(Value::Array(group))) => group.borrow_mut().push(it.value()),
            (M::GroupBy, _) => groups.insert(value, Value::array(vec![it.value()])),
            _ if value.truthy() => out.push(it.value()),
            _ => rest.push(it.value()),
        }
        Ok(())
    })?;
    Ok(match method {
        M::GroupBy => Value::hash(groups),
        _ => Value::pair(Value::array(out), Value::array(rest)),
    })
}

/// Runs of adjacent elements, between which the block is true or false.
pub(super) fn part(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, ..) = call.parts();
    need_end(receiver)?;
    let block = call.block()?;
    let mut out: Vec<Vec<Value>> = Vec::new();
    each(vm, receiver, &mut |vm, it| {
        let last = out
            .last_mut()
            .and_then(|part| Some((part.last()?.clone(), part)));
        if let Some((last, part)) = last
            && vm.call_block(block, &[last, it.clone()])?.truthy() == (method == M::ChunkWhile)
        {
            part.push(it);
        } else {
            out.push(vec![it]);
        }
        Ok(())
    })?;
    Ok(Value::array(out.into_iter().map(Value::array).collect()))
}

/// Methods that make one value of all elements.
pub(super) fn fold(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    need_end(receiver)?;
    Ok(match method {
        M::Reduce | M::Inject => inject(vm, receiver, args, block)?,
        M::Tally => {
            let table = Table::default();
            each(vm, receiver, &mut |_, it| {
                table.count(it, 1);
                Ok(())
            })?;
            Value::hash(table)
        }
        _ => {
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
    })
}

/// Methods that stop at the first element that decides the result.
pub(super) fn search(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (_, method, args, _) = call.parts();
    let enough = || Err(Box::new(Flow::Enough));
    let mut list = Vec::new();
    let (mut found, mut at, mut several) = (None, 0_usize, false);
    // What `find` is given is called when nothing is found.
    let (args, otherwise) = match (method, args) {
        (M::Find | M::Detect, [otherwise]) => (&[][..], otherwise.clone()),
        _ => (args, Value::Nil),
    };
    each_hit(vm, Call { args, ..call }, &mut |it, hit| {
        if matches!(method, M::TakeWhile | M::AllQ) {
            if !hit {
                found = Some((at, it.value()));
                return enough();
            }
            if method == M::TakeWhile {
                list.push(it.value());
            }
        } else if hit {
            several = found.is_some();
            found = Some((at, it.value()));
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
    let (receiver, _, args, _) = call.parts();
    let block = call.block()?;
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
    let mut count = 0_usize;
    each_hit(vm, call, &mut |_, hit| {
        count += usize::from(hit);
        Ok(())
    })?;
    Ok(Value::size(count))
}

fn inject(vm: &mut Vm, receiver: &Value, args: &[Value], block: Option<&Block<'_>>) -> Eval {
    let (mut total, operator) = match (args, block) {
        ([], Some(_)) => (None, None),
        ([initial], Some(_)) => (Some(initial.clone()), None),
        ([operator], None) => (None, Some(operator)),
        ([initial, operator], _) => (Some(initial.clone()), Some(operator)),
        ([], None) => {
            return Err(error(Class::LocalJumpError, "no block given"));
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
