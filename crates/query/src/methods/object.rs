//! The methods of every object, and those of nil, true and false.

use super::table;
use crate::class::Class;
use crate::memory::Growth;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::compare::{self, compare, equal};
use crate::value::enumerator::Enumerator;
use crate::value::exception::{Eval, error, type_error};
use crate::value::inspect::{inspect_within, to_s_within};
use crate::value::table::Table;
use crate::value::text::Text;
use crate::vm::Vm;
use crate::vm::call::{name_of, sent};
use std::rc::Rc;

/// Comparisons and questions about the class: small, since queries ask them for each value.
pub(super) fn predicate(_: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, _) = call.parts();
    Ok(Value::Bool(match method {
        M::NilQ => receiver.is_nil(),
        M::OpEq => equal(receiver, &args[0]),
        M::OpNe => !equal(receiver, &args[0]),
        M::OpNot => !receiver.truthy(),
        M::OpCaseEq => compare::case_equal(receiver, &args[0]).unwrap_or(false),
        M::IsAQ => {
            let Value::Class(class) = args[0] else {
                return Err(type_error("class or module required"));
            };
            let own = Class::of(receiver);
            own == class || own.is(class)
        }
        _ => return Err(call.unknown()),
    }))
}

pub(super) fn call(vm: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    Ok(match method {
        M::OpCmp => {
            compare(receiver, &args[0]).map_or(Value::Nil, |order| Value::Int(order as i64))
        }
        M::OpMatch => Value::Nil,
        M::OpNotMatch => {
            let found = super::call(vm, receiver, M::OpMatch, args, None)?;
            Value::Bool(!found.truthy())
        }
        M::Inspect => Value::str(inspect_within(receiver, Growth::of(&vm.bounds, 0).limit())?),
        M::ToS => Value::str(to_s_within(receiver, Growth::of(&vm.bounds, 0).limit())?),
        M::ToJson => {
            let mut out = String::new();
            crate::json::print::compact(&mut out, receiver, &vm.bounds)?;
            Value::str(out)
        }
        M::Class => Value::Class(Class::of(receiver)),
        M::RespondToQ => {
            let method = M::find(&name_of(&args[0])?);
            Value::Bool(method.is_some_and(|method| table::find(receiver, method).is_some()))
        }
        M::Then | M::Tap => {
            let Some(block) = block else {
                return Err(error(Class::LocalJumpError, "no block given (yield)"));
            };
            let value = vm.call1(block, receiver.clone())?;
            if method == M::Tap {
                receiver.clone()
            } else {
                value
            }
        }
        M::Itself => receiver.clone(),
        M::Freeze => {
            freeze(receiver);
            receiver.clone()
        }
        M::FrozenQ => Value::Bool(is_frozen(receiver)),
        M::Dup => duplicate(receiver),
        M::Clone => clone(receiver, args),
        M::Send | M::PublicSend => {
            let (method, args) = sent(receiver, args)?;
            super::call(vm, receiver, method, args, block)?
        }
        M::Method => vm.method_value(receiver, &args[0])?,
        _ => return Err(call.unknown()),
    })
}

pub(super) fn is_frozen(value: &Value) -> bool {
    match value {
        Value::Str(text) => text.is_frozen(),
        Value::Hash(table) => table.is_frozen(),
        Value::Array(list) => list.is_frozen(),
        Value::Class(_)
        | Value::Time(_)
        | Value::Exception(_)
        | Value::Enumerator(_)
        | Value::Match(_)
        | Value::Proc(_)
        | Value::Main => false,
        _ => true,
    }
}

fn freeze(value: &Value) {
    match value {
        Value::Str(text) => text.freeze(),
        Value::Hash(table) => table.freeze(),
        Value::Array(list) => list.freeze(),
        _ => {}
    }
}

/// A copy that is frozen like its original, unless `freeze:` says otherwise.
fn clone(receiver: &Value, args: &[Value]) -> Value {
    let copy = duplicate(receiver);
    let wanted = match args {
        [Value::Hash(options)] => options.get(&Value::symbol("freeze")),
        _ => None,
    };
    if wanted.map_or_else(|| is_frozen(receiver), |wanted| wanted.truthy()) {
        freeze(&copy);
    }
    copy
}

fn duplicate(receiver: &Value) -> Value {
    match receiver {
        Value::Str(text) => Value::Str(Rc::new(Text::new(text.string()))),
        Value::Array(list) => Value::array(list.borrow().clone()),
        Value::Hash(table) => Value::hash(table.copy()),
        other => other.clone(),
    }
}

/// An Enumerator for a method that was called without a block.
pub(crate) fn enumerator(receiver: &Value, method: M, args: &[Value]) -> Value {
    Value::Enumerator(Rc::new(Enumerator::new(
        receiver.clone(),
        method,
        args.to_vec(),
    )))
}

/// The methods of nil, true and false.
pub(super) fn nil(_: &mut Vm, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, _) = call.parts();
    let argument = || args.first().is_some_and(Value::truthy);
    let truthy = receiver.truthy();
    Ok(match method {
        M::OpBitAnd => Value::Bool(truthy && argument()),
        M::OpBitOr => Value::Bool(truthy || argument()),
        M::OpBitXor => Value::Bool(truthy != argument()),
        M::ToA => Value::array(Vec::new()),
        M::ToI => Value::Int(0),
        M::ToF => Value::Float(0.0),
        M::ToH => Value::hash(Table::default()),
        _ => return Err(call.unknown()),
    })
}
