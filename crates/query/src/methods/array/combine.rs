//! Methods that combine or split Arrays: set operations, `zip`, `product`, `combination`, `flatten`, `join`.

use super::super::enumerable;
use super::{insert_pair, size_argument, strict_array, uniq};
use crate::class::Class;
use crate::names::M;
use crate::value::compare::eql;
use crate::value::exception::{Eval, argument_error, error, no_conversion, no_method, type_error};
use crate::value::inspect::write_to_s;
use crate::value::number::need_int;
use crate::value::table::Table;
use crate::value::{List, Value};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

/// Maximum number of elements that `product` and similar methods make.
const MADE_MAX: usize = 50_000_000;

pub(in crate::methods) fn call(
    vm: &mut Vm,
    receiver: &Value,
    list: &Rc<List>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    let elements = || list.borrow().clone();
    Ok(match method {
        M::OpAdd => {
            let more = strict_array(&args[0])?;
            Value::array([elements(), more].concat())
        }
        M::OpMul => {
            if let Value::Str(separator) = &args[0] {
                let mut out = String::new();
                join(&mut out, list, &separator.string(), 0)?;
                return Ok(Value::str(out));
            }
            let times = size_argument(&args[0], "argument must be non-negative")?;
            if times.saturating_mul(list.borrow().len()) > MADE_MAX {
                return Err(argument_error("argument too big"));
            }
            let one = elements();
            Value::array((0..times).flat_map(|_| one.iter().cloned()).collect())
        }
        M::OpSub | M::Difference => {
            let mut out = elements();
            for other in args {
                let gone =
                    Table::from_pairs(strict_array(other)?.into_iter().map(|it| (it, Value::Nil)));
                out.retain(|it| !gone.contains(it));
            }
            Value::array(out)
        }
        M::OpBitAnd | M::Intersection => {
            let mut out = uniq(vm, &elements(), None)?;
            for other in args {
                let other = strict_array(other)?;
                out.retain(|it| other.iter().any(|same| eql(it, same)));
            }
            Value::array(out)
        }
        M::OpBitOr | M::Union => {
            let mut all = elements();
            for other in args {
                all.extend(strict_array(other)?);
            }
            Value::array(uniq(vm, &all, None)?)
        }
        M::IntersectQ => {
            let other = strict_array(&args[0])?;
            Value::Bool(
                list.borrow()
                    .iter()
                    .any(|it| other.iter().any(|same| eql(it, same))),
            )
        }
        M::Zip => return zip(vm, list, args, block),
        _ => return Err(no_method(method.name(), receiver)),
    })
}

fn zip(vm: &mut Vm, list: &Rc<List>, args: &[Value], block: Option<&Block<'_>>) -> Eval {
    let mut others = Vec::new();
    for other in args {
        others.push(match other {
            Value::Array(_) | Value::Range(_) | Value::Enumerator(_) | Value::Hash(_) => {
                enumerable::first(vm, other, list.borrow().len())?
            }
            other => {
                return Err(type_error(format!(
                    "wrong argument type {} (must respond to :each)",
                    Class::of(other).name()
                )));
            }
        });
    }
    let mut rows = Vec::new();
    for (at, it) in list.borrow().clone().into_iter().enumerate() {
        let mut row = vec![it];
        row.extend(
            others
                .iter()
                .map(|other| other.get(at).cloned().unwrap_or_default()),
        );
        rows.push(Value::array(row));
    }
    Ok(match block {
        Some(block) => {
            for row in rows {
                vm.call1(block, row)?;
            }
            Value::Nil
        }
        None => Value::array(rows),
    })
}

/// `flatten`, `zip`, `transpose`, `product`, `combination` and similar methods.
pub(in crate::methods) fn reshape(
    vm: &mut Vm,
    receiver: &Value,
    list: &Rc<List>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    let elements = || list.borrow().clone();
    Ok(match method {
        M::Transpose => transpose(&elements())?,
        M::Flatten => {
            let depth = match args.first() {
                None | Some(Value::Nil) => -1,
                Some(depth) => need_int(depth)?,
            };
            let mut out = Vec::new();
            flatten(&mut out, &elements(), depth, 0)?;
            Value::array(out)
        }
        M::Join => {
            let separator = match args.first() {
                None | Some(Value::Nil) => String::new(),
                Some(Value::Str(text)) => text.string(),
                Some(other) => return Err(no_conversion(other, "String")),
            };
            let mut out = String::new();
            join(&mut out, list, &separator, 0)?;
            Value::str(out)
        }
        M::Product => {
            let rows = product(list, args)?;
            let Some(block) = block else {
                return Ok(Value::array(rows));
            };
            for row in rows {
                vm.call1(block, row)?;
            }
            receiver.clone()
        }
        M::Combination | M::Permutation => {
            let elements = elements();
            let size = match args.first() {
                Some(size) if method == M::Combination || !size.is_nil() => need_int(size)?,
                _ => elements.len().cast_signed() as i64,
            };
            if let (Ok(size), Some(block)) = (usize::try_from(size), block) {
                let ordered = method == M::Combination;
                choose(vm, &elements, size, ordered, &mut Vec::new(), block)?;
            }
            receiver.clone()
        }
        M::ToH => return to_h(vm, list, block),
        M::Cycle => {
            let mut turns = match args.first() {
                Some(turns) if !turns.is_nil() => Some(need_int(turns)?),
                _ => None,
            };
            while let Some(block) = block
                && turns.is_none_or(|turns| turns > 0)
                && !list.borrow().is_empty()
            {
                for it in elements() {
                    vm.call1(block, it)?;
                }
                turns = turns.map(|turns| turns - 1);
            }
            Value::Nil
        }
        _ => return Err(no_method(method.name(), receiver)),
    })
}

fn to_h(vm: &mut Vm, list: &Rc<List>, block: Option<&Block<'_>>) -> Eval {
    let table = Table::default();
    for it in list.borrow().clone() {
        let pair = match block {
            Some(block) => vm.call1(block, it)?,
            None => it,
        };
        insert_pair(&table, &pair, "wrong array length")?;
    }
    Ok(Value::hash(table))
}

fn product(list: &Rc<List>, args: &[Value]) -> Eval<Vec<Value>> {
    let mut rows = vec![Vec::new()];
    for list in std::iter::once(Ok(list.borrow().clone())).chain(args.iter().map(strict_array)) {
        let list = list?;
        if rows.len().saturating_mul(list.len()) > MADE_MAX {
            return Err(error(Class::RangeError, "too big to product"));
        }
        rows = rows
            .iter()
            .flat_map(|row: &Vec<Value>| {
                list.iter()
                    .map(|it| [row.as_slice(), std::slice::from_ref(it)].concat())
            })
            .collect();
    }
    Ok(rows.into_iter().map(Value::array).collect())
}

fn transpose(rows: &[Value]) -> Eval {
    let rows: Vec<Vec<Value>> = rows.iter().map(strict_array).collect::<Eval<_>>()?;
    let width = rows.first().map_or(0, Vec::len);
    if let Some(odd) = rows.iter().find(|row| row.len() != width) {
        return Err(error(
            Class::IndexError,
            format!("element size differs ({} should be {width})", odd.len()),
        ));
    }
    Ok(Value::array(
        (0..width)
            .map(|at| Value::array(rows.iter().map(|row| row[at].clone()).collect()))
            .collect(),
    ))
}

fn flatten(out: &mut Vec<Value>, list: &[Value], depth: i64, level: u32) -> Eval<()> {
    if level > 1000 {
        return Err(argument_error("tried to flatten recursive array"));
    }
    for it in list {
        match it {
            Value::Array(inner) if depth != 0 => {
                let inner = inner.borrow().clone();
                flatten(out, &inner, depth - 1, level + 1)?;
            }
            other => out.push(other.clone()),
        }
    }
    Ok(())
}

fn join(out: &mut String, list: &List, separator: &str, level: u32) -> Eval<()> {
    if level > 1000 {
        return Err(argument_error("recursive array join"));
    }
    for (at, it) in list.borrow().iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        match it {
            Value::Array(inner) => join(out, inner, separator, level + 1)?,
            other => write_to_s(out, other),
        }
    }
    Ok(())
}

/// Every choice of `size` elements, kept in their order or not.
fn choose(
    vm: &mut Vm,
    list: &[Value],
    size: usize,
    ordered: bool,
    chosen: &mut Vec<usize>,
    block: &Block<'_>,
) -> Eval<()> {
    if chosen.len() == size {
        let choice = chosen.iter().map(|at| list[*at].clone()).collect();
        vm.call1(block, Value::array(choice))?;
        return Ok(());
    }
    let from = match chosen.last() {
        Some(latest) if ordered => latest + 1,
        _ => 0,
    };
    for at in from..list.len() {
        if ordered || !chosen.contains(&at) {
            chosen.push(at);
            choose(vm, list, size, ordered, chosen, block)?;
            chosen.pop();
        }
    }
    Ok(())
}
