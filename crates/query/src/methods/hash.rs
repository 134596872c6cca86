//! Hash.

use super::{array, enumerable};
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::compare::equal;
use crate::value::exception::{Eval, error, no_conversion, wrong_arguments};
use crate::value::inspect::inspect;
use crate::value::table::{Fallback, Table};
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

pub(super) fn read(vm: &mut Vm, table: &Rc<Table>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        args,
        block,
    } = call;
    let key = || args.first().cloned().unwrap_or_default();
    Ok(match method {
        M::OpIndex => look_up(vm, receiver, table, &args[0])?,
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
        M::KeyQ | M::HasKeyQ | M::IncludeQ => Value::Bool(table.contains(&args[0])),
        M::ValueQ => Value::Bool(table.values().iter().any(|it| equal(it, &args[0]))),
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
        M::EmptyQ => Value::Bool(table.len() == 0),
        M::ToH => match block {
            Some(block) => to_h(vm, table, block)?,
            None => receiver.clone(),
        },
        _ => return Err(call.unknown()),
    })
}

/// Other Hashes and lists of the pairs.
pub(super) fn derive(vm: &mut Vm, table: &Rc<Table>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver: _,
        method,
        args,
        block,
    } = call;
    Ok(match method {
        M::Merge => {
            let out = Rc::new(table.copy());
            merge(vm, &out, args, block)?;
            Value::Hash(out)
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
        M::OpLe | M::OpLt | M::OpGe | M::OpGt => {
            let other = need_hash(&args[0])?;
            let (small, large) = match method {
                M::OpLe | M::OpLt => (table, &other),
                _ => (&other, table),
            };
            let within = small
                .pairs()
                .iter()
                .all(|(key, value)| large.get(key).is_some_and(|it| equal(&it, value)));
            let proper = small.len() < large.len();
            Value::Bool(within && (proper || matches!(method, M::OpLe | M::OpGe)))
        }
        _ => return Err(call.unknown()),
    })
}

/// Puts the pairs of other Hashes in; the block decides between two values of a key.
fn merge(vm: &mut Vm, out: &Table, args: &[Value], block: Option<&Block<'_>>) -> Eval<()> {
    for other in args {
        for (key, value) in need_hash(other)?.pairs() {
            let value = match (block, out.get(&key)) {
                (Some(block), Some(old)) => vm.call_block(block, &[key.clone(), old, value])?,
                _ => value,
            };
            store(out, key, value)?;
        }
    }
    Ok(())
}

/// Methods that change the Hash without walking it.
pub(super) fn change(vm: &mut Vm, table: &Rc<Table>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        args,
        block,
    } = call;
    Ok(match method {
        M::OpIndexSet => {
            store(table, args[0].clone(), args[1].clone())?;
            args[1].clone()
        }
        M::MergeBang => {
            merge(vm, table, args, block)?;
            receiver.clone()
        }
        M::Compact => {
            let pairs = table.pairs().into_iter();
            let out = Table::from_pairs(pairs.filter(|(_, value)| !value.is_nil()));
            Value::hash(out)
        }
        M::Delete => match (table.remove(&args[0]), block) {
            (Some(value), _) => value,
            (None, Some(block)) => vm.call1(block, args[0].clone())?,
            (None, None) => Value::Nil,
        },
        M::Shift => table
            .remove_first()
            .map_or(Value::Nil, |(key, value)| Value::pair(key, value)),
        _ => return Err(call.unknown()),
    })
}

/// `transform_keys`, with a Hash of names, a block for the other keys, or both.
pub(super) fn transform_keys(vm: &mut Vm, table: &Rc<Table>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver: _,
        method: _,
        args,
        block,
    } = call;
    let names = args.first().map(need_hash).transpose()?;
    let out = Table::default();
    table.walk(|| -> Eval<()> {
        for (key, value) in table.pairs() {
            let new = match (names.as_ref().and_then(|names| names.get(&key)), block) {
                (Some(new), _) => new,
                (None, Some(block)) => vm.call1(block, key)?,
                (None, None) => key,
            };
            out.insert(new, value);
        }
        Ok(())
    })?;
    Ok(Value::hash(out))
}

/// Methods whose block is asked for each pair.
pub(super) fn by_block(vm: &mut Vm, table: &Rc<Table>, call: Call<'_, '_>) -> Eval {
    let Call {
        method,
        args,
        block,
        ..
    } = call;
    let (Some(block), []) = (block, args) else {
        return match method {
            M::Count => enumerable::count(vm, call),
            _ => enumerable::search(vm, call),
        };
    };
    table.walk(|| {
        let (mut list, mut rest, mut hits) = (Vec::new(), Vec::new(), 0);
        for (key, value) in table.pairs() {
            let hit = vm.call_pair(block, key.clone(), value.clone())?.truthy();
            hits += usize::from(hit);
            match method {
                M::AnyQ | M::NoneQ if hit => return Ok(Value::Bool(method == M::AnyQ)),
                M::AllQ if !hit => return Ok(Value::Bool(false)),
                M::Find | M::Detect if hit => return Ok(Value::pair(key, value)),
                M::Partition => {
                    if hit { &mut list } else { &mut rest }.push(Value::pair(key, value));
                }
                _ => {}
            }
        }
        Ok(match method {
            M::Count => Value::size(hits),
            M::Find | M::Detect => Value::Nil,
            M::Partition => Value::pair(Value::array(list), Value::array(rest)),
            _ => Value::Bool(method != M::AnyQ),
        })
    })
}

fn to_h(vm: &mut Vm, table: &Table, block: &Block<'_>) -> Eval {
    let new = Table::default();
    table.walk(|| -> Eval<()> {
        for (key, value) in table.pairs() {
            let pair = vm.call_block(block, &[key, value])?;
            array::insert_pair(&new, &pair, "element has wrong array length")?;
        }
        Ok(())
    })?;
    Ok(Value::hash(new))
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

/// Methods that call the block for each pair, and collect a result.
pub(super) fn walk(vm: &mut Vm, table: &Rc<Table>, call: Call<'_, '_>) -> Eval {
    let Call {
        receiver,
        method,
        block,
        ..
    } = call;
    let Some(block) = block else {
        return Ok(receiver.clone());
    };
    // These walk a copy in Ruby, so that their block may add keys.
    match method {
        M::Select | M::Filter | M::Reject | M::TransformValues => {
            walk_pairs(vm, receiver, table, method, block)
        }
        _ => table.walk(|| walk_pairs(vm, receiver, table, method, block)),
    }
}

fn walk_pairs(
    vm: &mut Vm,
    receiver: &Value,
    table: &Rc<Table>,
    method: M,
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
        M::Select | M::Filter | M::Reject => {
            let wanted = method != M::Reject;
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
            Ok(Value::hash(new))
        }
        M::TransformValues => {
            for (key, value) in pairs {
                let value = vm.call1(block, value)?;
                new.insert(key, value);
            }
            Ok(Value::hash(new))
        }
        _ => {
            let mut list = Vec::new();
            for (key, value) in pairs {
                match (vm.call_pair(block, key, value)?, method) {
                    (Value::Array(more), M::FlatMap) => list.extend(more.borrow().iter().cloned()),
                    (value, M::FilterMap) if !value.truthy() => {}
                    (value, _) => list.push(value),
                }
            }
            Ok(Value::array(list))
        }
    }
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
