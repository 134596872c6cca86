//! Methods that combine or split Arrays: set operations, `zip`, `product`, `combination`, `flatten`, `join`.

use super::super::enumerable;
use super::{size_argument, strict_array, uniq};
use crate::class::Class;
use crate::memory::Growth;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::compare::eql;
use crate::value::exception::{Eval, argument_error, error, no_conversion, type_error};
use crate::value::inspect::write_to_s;
use crate::value::number::need_int;
use crate::value::table::Table;
use crate::value::{List, Value};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

/// Maximum number of elements that `product` and similar methods make.
const MADE_MAX: usize = 50_000_000;

pub(in crate::methods) fn call(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let (_, method, args, _) = call.parts();
    let elements = || list.borrow().clone();
    Ok(match method {
        M::OpAdd => {
            let more = strict_array(&args[0])?;
            Value::array([elements(), more].concat())
        }
        M::OpMul => {
            if let Value::Str(separator) = &args[0] {
                return joined(vm, list, &separator.string());
            }
            let times = size_argument(&args[0], "argument must be non-negative")?;
            let count = times.saturating_mul(list.borrow().len());
            if count > MADE_MAX {
                return Err(argument_error("argument too big"));
            }
            vm.will_make(count * size_of::<Value>())?;
            let one = elements();
            Value::array((0..times).flat_map(|_| one.iter().cloned()).collect())
        }
        M::OpSub => {
            let mut out = elements();
            for other in args {
                let gone =
                    Table::from_pairs(strict_array(other)?.into_iter().map(|it| (it, Value::Nil)));
                out.retain(|it| !gone.contains(it));
            }
            Value::array(out)
        }
        M::OpBitAnd => {
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
        _ => return Err(call.unknown()),
    })
}

/// `zip`; with a block, it is called with each row.
pub(in crate::methods) fn zip(
    vm: &mut Vm,
    list: Vec<Value>,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    let mut others = Vec::new();
    for other in args {
        others.push(match other {
            Value::Array(_) | Value::Range(_) | Value::Enumerator(_) | Value::Hash(_) => {
                enumerable::first(vm, other, list.len())?
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
    for (at, it) in list.into_iter().enumerate() {
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
pub(in crate::methods) fn reshape(vm: &mut Vm, list: &Rc<List>, call: Call<'_, '_>) -> Eval {
    let (_, method, args, _) = call.parts();
    let elements = || list.borrow().clone();
    Ok(match method {
        M::Transpose => transpose(&elements())?,
        M::Flatten => {
            let depth = match args.first() {
                None | Some(Value::Nil) => -1,
                Some(depth) => need_int(depth)?,
            };
            let mut out = Vec::new();
            let mut growth = Growth::of(&vm.bounds, 0);
            flatten(&mut out, list, (depth, 0), &mut growth)?;
            Value::array(out)
        }
        M::Join => {
            let separator = match args.first() {
                None | Some(Value::Nil) => String::new(),
                Some(Value::Str(text)) => text.string(),
                Some(other) => return Err(no_conversion(other, "String")),
            };
            joined(vm, list, &separator)?
        }
        _ => return Err(call.unknown()),
    })
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

fn flatten(
    out: &mut Vec<Value>,
    list: &List,
    (depth, level): (i64, u32),
    growth: &mut Growth<'_>,
) -> Eval<()> {
    if level > 1000 {
        return Err(argument_error("tried to flatten recursive array"));
    }
    for it in list.borrow().iter() {
        match it {
            Value::Array(inner) if depth != 0 => {
                flatten(out, inner, (depth - 1, level + 1), growth)?;
            }
            other => out.push(other.clone()),
        }
        growth.to(out.len() * size_of::<Value>())?;
    }
    Ok(())
}

fn joined(vm: &Vm, list: &List, separator: &str) -> Eval {
    let mut out = String::new();
    join(
        &mut out,
        list,
        (separator, 0),
        &mut Growth::of(&vm.bounds, 0),
    )?;
    Ok(Value::str(out))
}

fn join(
    out: &mut String,
    list: &List,
    (separator, level): (&str, u32),
    growth: &mut Growth<'_>,
) -> Eval<()> {
    if level > 1000 {
        return Err(argument_error("recursive array join"));
    }
    for (at, it) in list.borrow().iter().enumerate() {
        if at > 0 {
            out.push_str(separator);
        }
        match it {
            Value::Array(inner) => join(out, inner, (separator, level + 1), growth)?,
            other => write_to_s(out, other, &mut |len| growth.to(len))?,
        }
        growth.to(out.len())?;
    }
    Ok(())
}
