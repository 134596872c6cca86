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
    let (receiver, method, args, block) = call.parts();
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
    let (_, method, args, block) = call.parts();
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
    let (receiver, method, args, block) = call.parts();
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
    let (_, _, args, block) = call.parts();
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

/// Methods that call the block for each pair, and keep pairs, or nothing.
pub(super) fn walk(vm: &mut Vm, table: &Rc<Table>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, ..) = call.parts();
    let block = call.block()?;
    if method == M::EachPair {
        return enumerable::each_element(vm, call);
    }
    if matches!(method, M::EachKey | M::EachValue) {
        let list = if method == M::EachKey {
            table.keys()
        } else {
            table.values()
        };
        let mut list = list.into_iter();
        table.walk(|| list.try_for_each(|it| vm.call1(block, it).map(|_| ())))?;
        return Ok(receiver.clone());
    }
    // These walk a copy in Ruby, so that their block may add keys.
    let new = Table::default();
    for (key, value) in table.pairs() {
        if method == M::TransformValues {
            let value = vm.call1(block, value)?;
            new.insert(key, value);
            continue;
        }
        // The others yield two values, not a pair.
        let result = vm.call_block(block, &[key.clone(), value.clone()])?;
        if result.truthy() == (method != M::Reject) {
            new.insert(key, value);
        }
    }
    Ok(Value::hash(new))
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
