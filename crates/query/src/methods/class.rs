//! Classes and modules as receivers: `Time.at`, `Math.sqrt`, `Hash.new`, `Integer === x`.

use super::{Found, hash, integer, math, regexp, time};
use crate::class::Class;
use crate::json::build::{Keys, Parser};
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Exception, argument_error, arity, error};
use crate::value::number::need_int;
use crate::value::table::Table;
use crate::value::{compare, inspect};
use crate::vm::Vm;
use crate::vm::block::Block;
use lastbyte_json::parse::Projection;
use std::cell::RefCell;
use std::rc::Rc;

pub(super) fn call(
    vm: &mut Vm,
    class: Class,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let found = match (class, method) {
        (Class::Math, _) => math::call(method, args)?,
        (Class::Time, M::Iso8601 | M::Parse | M::Xmlschema) => Some(time::from_text(method, args)?),
        (Class::Time, _) => time::call_class(method, args)?,
        (Class::Regexp, _) => regexp::call_class(vm, method, args)?,
        (Class::Hash, M::New) => Some(hash::new(args, block)?),
        (Class::Hash, M::OpIndex) => Some(match args {
            [one] => vm.send(one, M::ToH, &[], None)?,
            many if many.len() % 2 == 0 => {
                let pairs = many
                    .chunks(2)
                    .map(|pair| (pair[0].clone(), pair[1].clone()));
                Value::hash(Table::from_pairs(pairs))
            }
            _ => return Err(argument_error("odd number of arguments for Hash")),
        }),
        (Class::Array, M::New) => Some(new_array(vm, args, block)?),
        (Class::Array, M::OpIndex) => Some(Value::array(args.to_vec())),
        (Class::Str, M::New) => Some(Value::str(
            args.first().map(inspect::to_s).unwrap_or_default(),
        )),
        (Class::Object | Class::BasicObject, M::New) => Some(Value::array(Vec::new())),
        (Class::Range, M::New) => {
            arity(args, 2, 3)?;
            Some(Value::range(
                args[0].clone(),
                args[1].clone(),
                args.get(2).is_some_and(Value::truthy),
            ))
        }
        (Class::Proc, M::New) => Vm::block_value(block).map(Value::Proc),
        (Class::Integer, M::Sqrt) => {
            arity(args, 1, 1)?;
            Some(integer::square_root(&args[0])?)
        }
        (Class::Random, M::New) => {
            let seed = args.first().map_or(Ok(0), need_int)?;
            Some(Value::Random(Rc::new(RefCell::new(
                crate::value::random::Random::seeded(seed),
            ))))
        }
        (Class::Random, M::Rand) => Some(crate::value::random::rand(&mut vm.random, args.first())?),
        (Class::Json, M::Generate) => {
            arity(args, 1, 2)?;
            let mut out = String::new();
            crate::json::print::compact(&mut out, &args[0])?;
            Some(Value::str(out))
        }
        (Class::Json, M::PrettyGenerate) => {
            arity(args, 1, 2)?;
            let mut out = String::new();
            crate::json::print::pretty(&mut out, &args[0])?;
            Some(Value::str(out))
        }
        (Class::Json, M::Parse) => Some(parse_json(args)?),
        (class, M::New | M::Exception) if class.is(Class::Exception) => {
            Some(Value::Exception(Rc::new(Exception {
                class,
                message: args
                    .first()
                    .cloned()
                    .unwrap_or_else(|| Value::str(class.name())),
                hint: None,
            })))
        }
        _ => None,
    };
    if let Some(value) = found {
        return Ok(Some(value));
    }
    of_any(class, method, args)
}

/// The methods of every class and module.
fn of_any(class: Class, method: M, args: &[Value]) -> Found {
    let value = Value::Class(class);
    Ok(Some(match method {
        M::Name | M::ToS | M::Inspect => Value::str(class.name()),
        M::OpCaseEq => {
            arity(args, 1, 1)?;
            Value::Bool(compare::case_equal(&value, &args[0]).unwrap_or(false))
        }
        M::OpLt | M::OpLe | M::OpGt | M::OpGe => {
            let Some(Value::Class(other)) = args.first() else {
                return Err(crate::value::exception::type_error(
                    "compared with non class/module",
                ));
            };
            let (below, above) = (class.is(*other), other.is(class));
            match (method, below, above) {
                (M::OpLe, true, _) | (M::OpGe, _, true) => Value::Bool(true),
                (M::OpLt, true, same) | (M::OpGt, same, true) => Value::Bool(!same),
                (_, false, false) => Value::Nil,
                _ => Value::Bool(false),
            }
        }
        M::Superclass if class.is_module() => return Ok(None),
        M::Superclass => class.superclass().map_or(Value::Nil, Value::Class),
        M::Ancestors => {
            let mut list = vec![value];
            let mut at = class;
            while let Some(parent) = at.superclass() {
                list.push(Value::Class(parent));
                at = parent;
            }
            Value::array(list)
        }
        _ => return Ok(None),
    }))
}

fn new_array(
    vm: &mut Vm,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> crate::value::exception::Eval {
    arity(args, 0, 2)?;
    if let Some(list @ Value::Array(_)) = args.first() {
        return vm.send(list, M::Dup, &[], None);
    }
    let count = match args.first() {
        Some(count) => super::array::size_argument(count, "negative array size")?,
        None => 0,
    };
    if count > 100_000_000 {
        return Err(argument_error("array size too big"));
    }
    let mut list = Vec::with_capacity(count);
    for at in 0..count {
        list.push(match block {
            Some(block) => vm.call1(block, Value::size(at))?,
            None => args.get(1).cloned().unwrap_or_default(),
        });
    }
    Ok(Value::array(list))
}

fn parse_json(args: &[Value]) -> crate::value::exception::Eval {
    arity(args, 1, 2)?;
    let text = super::string::need_str(&args[0])?;
    Parser::new(text.as_bytes(), &mut Keys::default())
        .only(&Projection::Whole)
        .map_err(|wrong| error(Class::JsonParserError, wrong.message))
}
