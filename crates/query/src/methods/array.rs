//! Array: methods that read, and methods that change in place. Those of Enumerable are in
//! [`super::enumerable`] and [`order`], those that combine Arrays in [`combine`].

pub(super) mod combine;
pub(crate) mod order;

use super::enumerable;
use super::string::{range_of, span_of};
use crate::class::Class;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::compare::{eql, equal, hash_of};
use crate::value::exception::{
    Eval, argument_error, error, no_conversion, type_error, wrong_arguments,
};
use crate::value::inspect::inspect;
use crate::value::number::need_int;
use crate::value::table::Table;
use crate::value::{List, Range, Value};
use crate::vm::Vm;
use crate::vm::block::Block;
use lastbyte_json::fast_hash::FastMap;
use std::rc::Rc;

fn strict_array(value: &Value) -> Eval<Vec<Value>> {
    match value {
        Value::Array(list) => Ok(list.borrow().clone()),
        other => Err(no_conversion(other, "Array")),
    }
}

/// Inserts a pair `[key, value]`, as `to_h` receives them. `wrong_length` is how the error for another length begins.
pub(crate) fn insert_pair(table: &Table, pair: &Value, wrong_length: &str) -> Eval<()> {
    let Value::Array(pair) = pair else {
        return Err(type_error(format!(
            "wrong element type {} (expected array)",
            Class::of(pair).name()
        )));
    };
    let pair = pair.borrow();
    let [key, value] = &pair[..] else {
        return Err(argument_error(format!(
            "{wrong_length} (expected 2, was {})",
            pair.len()
        )));
    };
    table.insert(key.clone(), value.clone());
    Ok(())
}

pub(super) fn read(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let count = list.borrow().len();
    let at = |at: usize| list.borrow().get(at).cloned().unwrap_or_default();
    Ok(match method {
        M::Length | M::Size => Value::size(count),
        M::EmptyQ => Value::Bool(count == 0),
        M::OpIndex | M::Slice => slice(list, args)?,
        M::At => slice(list, &[Value::Int(need_int(&args[0])?)])?,
        M::First | M::Last => match args {
            [] if method == M::First => at(0),
            [] => list.borrow().last().cloned().unwrap_or_default(),
            [wanted] => {
                let wanted = size_argument(wanted, "negative array size")?.min(count);
                let from = if method == M::First {
                    0
                } else {
                    count - wanted
                };
                Value::array(list.borrow()[from..from + wanted].to_vec())
            }
            _ => Value::Nil,
        },
        M::Dig => dig(vm, receiver, args)?,
        M::Fetch => fetch(vm, list, args, block)?,
        M::ValuesAt => {
            let mut out = Vec::new();
            for arg in args {
                match arg {
                    Value::Range(range) => {
                        let (from, end) = bounds(range, count, arg)?;
                        out.extend((from..end).map(at));
                    }
                    one => out.push(slice(list, std::slice::from_ref(one))?),
                }
            }
            Value::array(out)
        }
        M::ToA => receiver.clone(),
        M::Reverse => Value::array(list.borrow().iter().rev().cloned().collect()),
        M::IncludeQ => Value::Bool(list.borrow().iter().any(|it| equal(it, &args[0]))),
        _ => return Err(call.unknown()),
    })
}

/// Methods that add, remove and replace elements.
pub(super) fn change(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let count = list.borrow().len();
    Ok(match method {
        M::Push => {
            list.borrow_mut().extend_from_slice(args);
            receiver.clone()
        }
        M::OpShl => {
            list.borrow_mut().push(args[0].clone());
            receiver.clone()
        }
        M::Pop | M::Shift => {
            let wanted = match args.first() {
                None => None,
                Some(wanted) => Some(size_argument(wanted, "negative array size")?.min(count)),
            };
            let mut list = list.borrow_mut();
            match (method, wanted) {
                (M::Pop, None) => list.pop().unwrap_or_default(),
                (M::Pop, Some(wanted)) => Value::array(list.split_off(count - wanted)),
                (_, None) => {
                    if count == 0 {
                        Value::Nil
                    } else {
                        list.remove(0)
                    }
                }
                (_, Some(wanted)) => Value::array(list.drain(..wanted).collect()),
            }
        }
        M::Unshift => {
            list.borrow_mut().splice(0..0, args.iter().cloned());
            receiver.clone()
        }
        M::Concat => {
            for more in args {
                let more = strict_array(more)?;
                list.borrow_mut().extend(more);
            }
            receiver.clone()
        }
        M::OpIndexSet => store(list, args)?,
        M::Delete => {
            let mut found = None;
            list.borrow_mut().retain(|it| {
                let hit = equal(it, &args[0]);
                if hit {
                    found = Some(it.clone());
                }
                !hit
            });
            match (found, block) {
                (Some(found), _) => found,
                (None, Some(block)) => vm.call1(block, args[0].clone())?,
                (None, None) => Value::Nil,
            }
        }
        _ => return Err(call.unknown()),
    })
}

/// The first or last place of a value, or of an element for which the block is true.
pub(super) fn index(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    if call.method == M::Index {
        return enumerable::search(vm, call);
    }
    let elements = list.borrow().clone();
    for (at, it) in elements.into_iter().enumerate().rev() {
        let hit = match call.args.first() {
            Some(wanted) => equal(&it, wanted),
            None => vm.call1(call.block()?, it)?.truthy(),
        };
        if hit {
            return Ok(Value::size(at));
        }
    }
    Ok(Value::Nil)
}

/// Start and end of a range over something of a length, which they may exceed.
fn bounds(range: &Range, count: usize, shown: &Value) -> Eval<(usize, usize)> {
    let bound = |bound: &Value, otherwise: i64| match bound {
        Value::Nil => Ok(otherwise),
        bound => need_int(bound),
    };
    let Some(from) = place(bound(&range.from, 0)?, count) else {
        let message = format!("{} out of range", inspect(shown));
        return Err(error(Class::RangeError, message));
    };
    let exclusive = range.exclusive && !range.to.is_nil();
    let last = place(bound(&range.to, -1)?, count);
    let end = last.map_or(0, |last| last.saturating_add(usize::from(!exclusive)));
    if end > FILLED_MAX {
        return Err(argument_error("argument too big"));
    }
    Ok((from, end))
}

pub(crate) fn size_argument(value: &Value, negative: &str) -> Eval<usize> {
    usize::try_from(need_int(value)?).map_err(|_| argument_error(negative))
}

/// Maximum length of an Array that `fill` and `[]=` make.
const FILLED_MAX: usize = 1 << 28;

/// A position counted from either end; `None` is before the beginning.
fn place(at: i64, count: usize) -> Option<usize> {
    usize::try_from(if at < 0 {
        at + count.cast_signed() as i64
    } else {
        at
    })
    .ok()
}

fn slice(list: &List, args: &[Value]) -> Eval {
    let list = list.borrow();
    let span = match (&args[0], args.get(1)) {
        (start, Some(count)) => span_of(need_int(start)?, need_int(count)?, list.len()),
        (Value::Range(range), None) => range_of(range, list.len())?,
        (Value::Enumerator(_), None) => {
            let what = "an index with steps is not supported (expected an Integer or a Range)";
            return Err(error(Class::NotImplementedError, what));
        }
        (at, None) => {
            return Ok(place(need_int(at)?, list.len())
                .and_then(|at| list.get(at).cloned())
                .unwrap_or_default());
        }
    };
    Ok(span.map_or(Value::Nil, |(from, count)| {
        Value::array(list[from..from + count].to_vec())
    }))
}

/// `dig`, through Arrays and Hashes.
pub(crate) fn dig(vm: &mut Vm, receiver: &Value, args: &[Value]) -> Eval {
    let Some((first, rest)) = args.split_first() else {
        return Err(wrong_arguments(0, 1, None));
    };
    let inner = vm.send(receiver, M::OpIndex, std::slice::from_ref(first), None)?;
    if rest.is_empty() || inner.is_nil() {
        return Ok(inner);
    }
    match inner {
        Value::Array(_) | Value::Hash(_) => dig(vm, &inner, rest),
        other => Err(type_error(format!(
            "{} does not have #dig method",
            Class::of(&other).name()
        ))),
    }
}

fn fetch(vm: &mut Vm, list: &List, args: &[Value], block: Option<&Block<'_>>) -> Eval {
    let at = need_int(&args[0])?;
    let count = list.borrow().len();
    if let Some(value) = place(at, count).and_then(|at| list.borrow().get(at).cloned()) {
        return Ok(value);
    }
    match (block, args.get(1)) {
        (Some(block), _) => vm.call1(block, args[0].clone()),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(error(
            Class::IndexError,
            format!(
                "index {at} outside of array bounds: {}...{count}",
                -(count.cast_signed() as i64)
            ),
        )),
    }
}

/// `a[i] = v`, `a[i, n] = v`, `a[range] = v`.
fn store(list: &List, args: &[Value]) -> Eval {
    let Some((value, place)) = args.split_last() else {
        return Ok(Value::Nil);
    };
    let count = list.borrow().len();
    let (from, size) = match place {
        [Value::Range(range)] => {
            let from = if range.from.is_nil() {
                0
            } else {
                need_int(&range.from)?
            };
            let from = if from < 0 {
                from + count.cast_signed() as i64
            } else {
                from
            };
            let Ok(from) = usize::try_from(from) else {
                return Err(error(
                    Class::RangeError,
                    format!("{} out of range", inspect(&place[0])),
                ));
            };
            let size = match range_of(range, count.max(from))? {
                Some((_, size)) => size,
                None => 0,
            };
            (from, size.min(count.saturating_sub(from)))
        }
        [start, size] => {
            let start = need_int(start)?;
            let size = need_int(size)?;
            let from = if start < 0 {
                start + count.cast_signed() as i64
            } else {
                start
            };
            match (usize::try_from(from), usize::try_from(size)) {
                (Ok(from), Ok(size)) => (from, size.min(count.saturating_sub(from))),
                (_, Err(_)) => {
                    return Err(error(
                        Class::IndexError,
                        format!("negative length ({size})"),
                    ));
                }
                _ => return Err(too_small(start, count)),
            }
        }
        [at] => {
            let given = need_int(at)?;
            let Some(at) = self::place(given, count) else {
                return Err(too_small(given, count));
            };
            if at >= FILLED_MAX {
                return Err(error(Class::IndexError, format!("index {at} too big")));
            }
            let mut list = list.borrow_mut();
            if at >= list.len() {
                list.resize(at + 1, Value::Nil);
            }
            list[at] = value.clone();
            return Ok(value.clone());
        }
        _ => return Ok(Value::Nil),
    };
    let new = match value {
        Value::Array(new) => new.borrow().clone(),
        other => vec![other.clone()],
    };
    let mut list = list.borrow_mut();
    if from > list.len() {
        list.resize(from, Value::Nil);
    }
    let end = (from + size).min(list.len());
    list.splice(from..end, new);
    Ok(value.clone())
}

fn too_small(at: i64, count: usize) -> Box<crate::value::exception::Flow> {
    error(
        Class::IndexError,
        format!("index {at} too small for array; minimum: -{count}"),
    )
}

/// The first of each `eql?` value, or of each value of the block.
pub(crate) fn uniq(vm: &mut Vm, list: &[Value], block: Option<&Block<'_>>) -> Eval<Vec<Value>> {
    let mut seen: FastMap<u64, Vec<Value>> = FastMap::default();
    let mut out = Vec::new();
    for it in list {
        let key = match block {
            Some(block) => vm.call1(block, it.clone())?,
            None => it.clone(),
        };
        let same = seen.entry(hash_of(&key)).or_default();
        if !same.iter().any(|known| eql(known, &key)) {
            same.push(key);
            out.push(it.clone());
        }
    }
    Ok(out)
}
