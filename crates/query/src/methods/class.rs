//! Classes and modules as receivers: `Time.at`, `Math.sqrt`, `Hash.new`, `Integer === x`.

use super::hash;
use super::string::need_str;
use crate::class::Class;
use crate::json::build::{Keys, Parser};
use crate::json::print;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::compare;
use crate::value::exception::{Eval, Exception, argument_error, error};
use crate::value::table::Table;
use crate::vm::Vm;
use crate::vm::block::Block;
use lastbyte_json::parse::Projection;
use std::rc::Rc;

pub(super) fn call(vm: &mut Vm, class: Class, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    Ok(match (class, method) {
        (_, M::Name) => Value::str(class.name()),
        (_, M::OpCaseEq) => Value::Bool(compare::case_equal(receiver, &args[0]).unwrap_or(false)),
        (Class::Hash, M::New) => hash::new(args, block)?,
        (Class::Hash, M::OpIndex) => match args {
            [one @ (Value::Hash(_) | Value::Array(_))] => vm.send(one, M::ToH, &[], None)?,
            many if many.len() % 2 == 0 => {
                let pairs = many
                    .chunks(2)
                    .map(|pair| (pair[0].clone(), pair[1].clone()));
                Value::hash(Table::from_pairs(pairs))
            }
            _ => return Err(argument_error("odd number of arguments for Hash")),
        },
        (Class::Array, M::New) => new_array(vm, args, block)?,
        (Class::Array, M::OpIndex) => Value::array(args.to_vec()),
        (Class::Str, M::New) => {
            Value::str(args.first().map_or_else(|| Ok(String::new()), need_str)?)
        }
        (Class::Range, M::New) => Value::range(
            args[0].clone(),
            args[1].clone(),
            args.get(2).is_some_and(Value::truthy),
        ),
        (Class::Json, M::Generate) => {
            let mut out = String::new();
            print::compact(&mut out, &args[0], &vm.bounds)?;
            Value::str(out)
        }
        (Class::Json, M::Parse) => parse_json(args)?,
        (class, M::New) if class.is(Class::Exception) => Value::Exception(Rc::new(Exception {
            class,
            message: args
                .first()
                .cloned()
                .unwrap_or_else(|| Value::str(class.name())),
            hint: None,
        })),
        _ => return Err(call.unknown()),
    })
}

fn new_array(vm: &mut Vm, args: &[Value], block: Option<&Block<'_>>) -> Eval {
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
    vm.will_make(count * size_of::<Value>())?;
    let mut list = Vec::with_capacity(count);
    for at in 0..count {
        list.push(match block {
            Some(block) => vm.call1(block, Value::size(at))?,
            None => args.get(1).cloned().unwrap_or_default(),
        });
    }
    Ok(Value::array(list))
}

fn parse_json(args: &[Value]) -> Eval {
    let text = need_str(&args[0])?;
    Parser::new(text.as_bytes(), &mut Keys::default())
        .only(&Projection::Whole)
        .map_err(|wrong| error(Class::JsonParserError, wrong.message))
}
