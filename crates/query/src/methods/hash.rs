//! Hash.

use super::object::enumerator;
use super::{Found, array, enumerable};
use crate::class::Class;
use crate::names::M;
use crate::value::compare::equal;
use crate::value::exception::{Eval, error, frozen, no_conversion, wrong_arguments};
use crate::value::inspect::inspect;
use crate::value::table::{Fallback, Table};
use crate::value::{Value, proc::Kind};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

fn need_hash(value: &Value) -> Eval<Rc<Table>> {
    match value {
        Value::Hash(table) => Ok(Rc::clone(table)),
        other => Err(no_conversion(other, "Hash")),
    }
}

/// `hash[key]`, with the default.
fn look_up(vm: &mut Vm, receiver: &Value, table: &Table, key: &Value) -> Eval {
    if let Some(value) = table.get(key) {
        return Ok(value);
    }
    match table.fallback() {
        Fallback::Nil => Ok(Value::Nil),
        Fallback::Value(value) => Ok(value),
        Fallback::Proc(proc) => vm.call_proc(&proc, &[receiver.clone(), key.clone()]),
    }
}

pub(super) fn call(
    vm: &mut Vm,
    receiver: &Value,
    table: &Rc<Table>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    if table.is_frozen() && CHANGES.contains(&method) {
        return Err(frozen(receiver));
    }
    let key = || args.first().cloned().unwrap_or_default();
    Ok(Some(match method {
        M::OpIndex => look_up(vm, receiver, table, &args[0])?,
        M::OpIndexSet | M::Store => {
            store(table, args[0].clone(), args[1].clone())?;
            args[1].clone()
        }
        M::Fetch => match (table.get(&args[0]), block, args.get(1)) {
            (Some(value), ..) => value,
            (None, Some(block), _) => vm.call1(block, key())?,
            (None, None, Some(default)) => default.clone(),
            (None, None, None) => {
                return Err(error(
                    Class::KeyError,
                    format!("key not found: {}", inspect(&args[0])),
                ));
            }
        },
        M::Dig => array::dig(vm, receiver, args)?,
        M::KeyQ | M::HasKeyQ | M::IncludeQ | M::MemberQ => Value::Bool(table.contains(&args[0])),
        M::ValueQ | M::HasValueQ => {
            Value::Bool(table.values().iter().any(|it| equal(it, &args[0])))
        }
        M::Key => table
            .pairs()
            .into_iter()
            .find(|(_, value)| equal(value, &args[0]))
            .map(|(key, _)| key)
            .unwrap_or_default(),
        M::Keys => Value::array(table.keys()),
        M::Values => Value::array(table.values()),
        M::ValuesAt => {
            let mut out = Vec::new();
            for key in args {
                out.push(look_up(vm, receiver, table, key)?);
            }
            Value::array(out)
        }
        M::FetchValues => {
            let mut out = Vec::new();
            for key in args {
                out.push(vm.send(receiver, M::Fetch, std::slice::from_ref(key), block)?);
            }
            Value::array(out)
        }
        M::Length | M::Size => Value::size(table.len()),
        M::Count if args.is_empty() && block.is_none() => Value::size(table.len()),
        M::EmptyQ => Value::Bool(table.len() == 0),
        M::AnyQ if args.is_empty() && block.is_none() => Value::Bool(table.len() > 0),
        M::ToA | M::Entries => Value::array(
            table
                .pairs()
                .into_iter()
                .map(|(key, value)| Value::pair(key, value))
                .collect(),
        ),
        M::Inspect | M::ToS => Value::str(inspect(receiver)),
        M::ToH if block.is_none() => receiver.clone(),
        M::ToProc => Value::Proc(Rc::new(crate::value::proc::Proc {
            kind: Kind::Lookup(receiver.clone()),
            lambda: true,
            tag: 0,
        })),
        _ => {
            if let Some(block) = block
                && matches!(method, M::Each | M::Map | M::Select | M::TransformValues)
            {
                return walk(vm, receiver, table, method, args, block).map(Some);
            }
            return combined(vm, receiver, table, method, args, block);
        }
    }))
}

/// Comparisons with other Hashes, and combinations of several.
fn combined(
    vm: &mut Vm,
    receiver: &Value,
    table: &Rc<Table>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    Ok(Some(match method {
        M::OpLe | M::OpLt | M::OpGe | M::OpGt => {
            let other = need_hash(&args[0])?;
            let (small, large) = if matches!(method, M::OpLe | M::OpLt) {
                (table, &other)
            } else {
                (&other, table)
            };
            let within = small
                .pairs()
                .iter()
                .all(|(key, value)| large.get(key).is_some_and(|it| equal(&it, value)));
            let proper = small.len() < large.len();
            Value::Bool(within && (proper || matches!(method, M::OpLe | M::OpGe)))
        }
        M::Merge | M::Update | M::MergeBang => {
            let out = if method == M::Merge {
                Rc::new(table.copy())
            } else {
                Rc::clone(table)
            };
            for other in args {
                for (key, value) in need_hash(other)?.pairs() {
                    let value = match (block, out.get(&key)) {
                        (Some(block), Some(old)) => {
                            vm.call_block(block, &[key.clone(), old, value])?
                        }
                        _ => value,
                    };
                    store(&out, key, value)?;
                }
            }
            Value::Hash(out)
        }
        M::Replace => {
            table.replace(need_hash(&args[0])?.copy());
            receiver.clone()
        }
        M::Invert => Value::hash(Table::from_pairs(
            table.pairs().into_iter().map(|(key, value)| (value, key)),
        )),
        M::Slice => {
            let out = Table::default();
            for key in args {
                if let Some(value) = table.get(key) {
                    out.insert(key.clone(), value);
                }
            }
            Value::hash(out)
        }
        M::Except => {
            let out = Table::default();
            for (key, value) in table.pairs() {
                if !args
                    .iter()
                    .any(|gone| crate::value::compare::eql(gone, &key))
                {
                    out.insert(key, value);
                }
            }
            Value::hash(out)
        }
        _ => return changed(vm, receiver, table, method, args, block),
    }))
}

/// Removals, defaults, and the methods of arrays of pairs.
fn changed(
    vm: &mut Vm,
    receiver: &Value,
    table: &Rc<Table>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let key = || args.first().cloned().unwrap_or_default();
    Ok(Some(match method {
        M::Compact | M::CompactBang => {
            let out = Table::from_pairs(
                table
                    .pairs()
                    .into_iter()
                    .filter(|(_, value)| !value.is_nil()),
            );
            return Ok(Some(settle(
                receiver,
                table,
                out,
                method == M::CompactBang,
                false,
            )));
        }
        M::Delete => match (table.remove(&args[0]), block) {
            (Some(value), _) => value,
            (None, Some(block)) => vm.call1(block, key())?,
            (None, None) => Value::Nil,
        },
        M::Shift => table
            .remove_first()
            .map_or(Value::Nil, |(key, value)| Value::pair(key, value)),
        M::Clear => {
            table.clear();
            receiver.clone()
        }
        M::Default => match table.fallback() {
            Fallback::Value(value) => value,
            _ => Value::Nil,
        },
        M::DefaultSet => {
            table.set_fallback(Fallback::Value(key()));
            key()
        }
        M::DefaultProc => match table.fallback() {
            Fallback::Proc(proc) => Value::Proc(proc),
            _ => Value::Nil,
        },
        M::Sort if block.is_none() => {
            let mut list = enumerable::to_vec(vm, receiver)?;
            crate::value::compare::sort(&mut list)?;
            Value::array(list)
        }
        M::Flatten => {
            let depth = args.first().map_or(Ok(1), crate::value::number::need_int)?;
            let list = Value::array(enumerable::to_vec(vm, receiver)?);
            vm.send(&list, M::Flatten, &[Value::Int(depth)], None)?
        }
        M::Assoc => table
            .get(&args[0])
            .map_or(Value::Nil, |value| Value::pair(key(), value)),
        M::Rehash => receiver.clone(),
        M::TransformKeys | M::TransformKeysBang if !args.is_empty() => {
            let names = need_hash(&args[0])?;
            let out = Table::default();
            for (key, value) in table.pairs() {
                let new = match (names.get(&key), block) {
                    (Some(new), _) => new,
                    (None, Some(block)) => vm.call1(block, key)?,
                    (None, None) => key,
                };
                out.insert(new, value);
            }
            let in_place = method == M::TransformKeysBang;
            settle(receiver, table, out, in_place, true)
        }
        M::AllQ | M::NoneQ | M::Count | M::Sum if block.is_none() => {
            return enumerable::call(vm, receiver, method, args, block);
        }
        _ if WITH_BLOCK.contains(&method) => match block {
            Some(block) => walk(vm, receiver, table, method, args, block)?,
            None if !args.is_empty()
                && matches!(method, M::Partition | M::Select | M::Map | M::GroupBy) =>
            {
                return Err(wrong_arguments(args.len(), 0, Some(0)));
            }
            None => enumerator(receiver, method, args),
        },
        _ => return enumerable::call(vm, receiver, method, args, block),
    }))
}

const CHANGES: &[M] = &[
    M::OpIndexSet,
    M::Store,
    M::Delete,
    M::Shift,
    M::Clear,
    M::Update,
    M::MergeBang,
    M::Replace,
    M::SelectBang,
    M::FilterBang,
    M::KeepIf,
    M::RejectBang,
    M::DeleteIf,
    M::CompactBang,
    M::TransformValuesBang,
    M::TransformKeysBang,
    M::DefaultSet,
];

const WITH_BLOCK: &[M] = &[
    M::Each,
    M::EachPair,
    M::EachKey,
    M::EachValue,
    M::Select,
    M::Filter,
    M::Reject,
    M::FilterMap,
    M::Map,
    M::Collect,
    M::FlatMap,
    M::TransformValues,
    M::TransformKeys,
    M::TransformValuesBang,
    M::TransformKeysBang,
    M::SelectBang,
    M::FilterBang,
    M::KeepIf,
    M::RejectBang,
    M::DeleteIf,
    M::AnyQ,
    M::AllQ,
    M::NoneQ,
    M::Count,
    M::ToH,
    M::Find,
    M::Detect,
    M::Sum,
    M::MinBy,
    M::MaxBy,
    M::GroupBy,
    M::Partition,
    M::SortBy,
];

/// A new Hash, or the changed receiver; nil if it did not change.
fn settle(
    receiver: &Value,
    table: &Rc<Table>,
    new: Table,
    in_place: bool,
    always_self: bool,
) -> Value {
    if !in_place {
        return Value::hash(new);
    }
    let changed = new.len() != table.len();
    table.replace(new);
    if changed || always_self {
        receiver.clone()
    } else {
        Value::Nil
    }
}

/// Inserts a pair, unless the key is new and a block is walking the Hash.
fn store(table: &Table, key: Value, value: Value) -> Eval<()> {
    if table.is_walked() && !table.contains(&key) {
        return Err(error(
            Class::RuntimeError,
            "can't add a new key into hash during iteration",
        ));
    }
    table.insert(key, value);
    Ok(())
}

/// Calls the block for each pair. These methods walk a copy in Ruby, so that their block may add keys.
fn walk(
    vm: &mut Vm,
    receiver: &Value,
    table: &Rc<Table>,
    method: M,
    args: &[Value],
    block: &Block<'_>,
) -> Eval {
    let walks_copy = matches!(
        method,
        M::Select | M::Filter | M::Reject | M::TransformValues
    );
    if walks_copy {
        return walk_pairs(vm, receiver, table, method, args, block);
    }
    table.walk(|| walk_pairs(vm, receiver, table, method, args, block))
}

fn walk_pairs(
    vm: &mut Vm,
    receiver: &Value,
    table: &Rc<Table>,
    method: M,
    args: &[Value],
    block: &Block<'_>,
) -> Eval {
    let pairs = table.pairs();
    let new = Table::default();
    match method {
        M::Each | M::EachPair => {
            for (key, value) in pairs {
                vm.call_pair(block, key, value)?;
            }
            Ok(receiver.clone())
        }
        M::EachKey | M::EachValue => {
            for (key, value) in pairs {
                vm.call1(block, if method == M::EachKey { key } else { value })?;
            }
            Ok(receiver.clone())
        }
        M::Select
        | M::Filter
        | M::Reject
        | M::SelectBang
        | M::FilterBang
        | M::KeepIf
        | M::RejectBang
        | M::DeleteIf => {
            let wanted = !matches!(method, M::Reject | M::RejectBang | M::DeleteIf);
            for (key, value) in pairs {
                // These yield two values, not a pair.
                if vm
                    .call_block(block, &[key.clone(), value.clone()])?
                    .truthy()
                    == wanted
                {
                    new.insert(key, value);
                }
            }
            let in_place = !matches!(method, M::Select | M::Filter | M::Reject);
            Ok(settle(
                receiver,
                table,
                new,
                in_place,
                matches!(method, M::KeepIf | M::DeleteIf),
            ))
        }
        M::TransformValues | M::TransformValuesBang => {
            for (key, value) in pairs {
                let value = vm.call1(block, value)?;
                new.insert(key, value);
            }
            Ok(settle(
                receiver,
                table,
                new,
                method == M::TransformValuesBang,
                true,
            ))
        }
        M::TransformKeys | M::TransformKeysBang => {
            for (key, value) in pairs {
                let key = vm.call1(block, key)?;
                new.insert(key, value);
            }
            Ok(settle(
                receiver,
                table,
                new,
                method == M::TransformKeysBang,
                true,
            ))
        }
        _ => gather(vm, pairs, method, args, block),
    }
}

/// Methods that collect a result while they walk the pairs.
fn gather(
    vm: &mut Vm,
    pairs: Vec<(Value, Value)>,
    method: M,
    args: &[Value],
    block: &Block<'_>,
) -> Eval {
    let new = Table::default();
    let mut list = Vec::new();
    match method {
        M::Map | M::Collect | M::FilterMap | M::FlatMap => {
            for (key, value) in pairs {
                match (vm.call_pair(block, key, value)?, method) {
                    (Value::Array(more), M::FlatMap) => list.extend(more.borrow().iter().cloned()),
                    (value, M::FilterMap) if !value.truthy() => {}
                    (value, _) => list.push(value),
                }
            }
            return Ok(Value::array(list));
        }
        M::ToH => {
            for (key, value) in pairs {
                let pair = vm.call_block(block, &[key, value])?;
                array::insert_pair(&new, &pair, "element has wrong array length")?;
            }
            return Ok(Value::hash(new));
        }
        M::AnyQ | M::AllQ | M::NoneQ | M::Count | M::Find | M::Detect | M::Partition
            if args.is_empty() =>
        {
            let mut hits = 0;
            let count = pairs.len();
            let mut rest = Vec::new();
            for (key, value) in pairs {
                let hit = vm.call_pair(block, key.clone(), value.clone())?.truthy();
                hits += usize::from(hit);
                match method {
                    M::AnyQ if hit => return Ok(Value::Bool(true)),
                    M::AllQ if !hit => return Ok(Value::Bool(false)),
                    M::NoneQ if hit => return Ok(Value::Bool(false)),
                    M::Find | M::Detect if hit => return Ok(Value::pair(key, value)),
                    M::Partition => {
                        if hit { &mut list } else { &mut rest }.push(Value::pair(key, value));
                    }
                    _ => {}
                }
            }
            return Ok(match method {
                M::Count => Value::size(hits),
                M::Find | M::Detect => Value::Nil,
                M::Partition => Value::pair(Value::array(list), Value::array(rest)),
                M::AnyQ => Value::Bool(hits > 0),
                M::AllQ => Value::Bool(hits == count),
                _ => Value::Bool(hits == 0),
            });
        }
        _ => {}
    }
    // The other methods take pairs as elements.
    let list = Value::array(
        pairs
            .into_iter()
            .map(|(key, value)| Value::pair(key, value))
            .collect(),
    );
    vm.send(&list, method, args, Some(block))
}

/// `Hash.new`, with a default or a block.
pub(super) fn new(args: &[Value], block: Option<&Block<'_>>) -> Eval {
    let table = Table::default();
    match (args, Vm::block_value(block)) {
        ([], Some(proc)) => table.set_fallback(Fallback::Proc(proc)),
        ([], None) => {}
        ([default], None) => table.set_fallback(Fallback::Value(default.clone())),
        _ => return Err(wrong_arguments(args.len(), 0, Some(1))),
    }
    Ok(Value::hash(table))
}
