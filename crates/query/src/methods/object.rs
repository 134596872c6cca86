//! The methods of every object, and those of nil, true and false.

use super::Found;
use crate::class::Class;
use crate::names::M;
use crate::value::Value;
use crate::value::compare::{self, compare, eql, equal, hash_of};
use crate::value::enumerator::Enumerator;
use crate::value::exception::type_error;
use crate::value::inspect::{inspect, to_s};
use crate::value::text::Text;
use crate::vm::Vm;
use crate::vm::block::Block;
use crate::vm::call::sent;
use std::rc::Rc;

pub(super) fn call(
    vm: &mut Vm,
    receiver: &Value,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    if let Value::Token(_) = receiver
        && !matches!(
            method,
            M::Then | M::YieldSelf | M::Tap | M::Itself | M::OpNot | M::NilQ
        )
    {
        return Ok(None);
    }
    Ok(Some(match method {
        M::NilQ => Value::Bool(receiver.is_nil()),
        M::OpEq => Value::Bool(equal(receiver, &args[0])),
        M::OpNe => Value::Bool(!equal(receiver, &args[0])),
        M::OpNot => Value::Bool(!receiver.truthy()),
        M::OpCaseEq => Value::Bool(compare::case_equal(receiver, &args[0]).unwrap_or(false)),
        M::EqlQ => Value::Bool(eql(receiver, &args[0])),
        M::EqualQ => Value::Bool(receiver.same(&args[0])),
        M::OpCmp => {
            compare(receiver, &args[0]).map_or(Value::Nil, |order| Value::Int(order as i64))
        }
        M::OpMatch | M::InstanceVariableGet => Value::Nil,
        M::OpNotMatch => {
            let found = super::call(vm, receiver, M::OpMatch, args, None)?;
            Value::Bool(!found.truthy())
        }
        M::Hash => Value::Int((hash_of(receiver) >> 2).cast_signed()),
        M::ObjectId => match receiver {
            Value::Int(it) => Value::Int(it * 2 + 1),
            Value::Nil => Value::Int(8),
            other => Value::Int(other.address().map_or(0, |address| address as i64)),
        },
        M::Inspect => Value::str(inspect(receiver)),
        M::ToS => Value::str(to_s(receiver)),
        M::ToJson => {
            let mut out = String::new();
            crate::json::print::compact(&mut out, receiver)?;
            Value::str(out)
        }
        M::Class => Value::Class(Class::of(receiver)),
        M::IsAQ | M::KindOfQ | M::InstanceOfQ => {
            let Value::Class(class) = args[0] else {
                return Err(type_error("class or module required"));
            };
            let own = Class::of(receiver);
            Value::Bool(own == class || method != M::InstanceOfQ && own.is(class))
        }
        M::RespondToQ => Value::Bool(responds(vm, receiver, &to_s(&args[0]))),
        M::Then | M::YieldSelf => match block {
            Some(block) => vm.call1(block, receiver.clone())?,
            None => enumerator(receiver, method, args),
        },
        M::Tap => match block {
            Some(block) => {
                vm.call1(block, receiver.clone())?;
                receiver.clone()
            }
            None => {
                return Err(crate::value::exception::error(
                    Class::LocalJumpError,
                    "no block given (yield)",
                ));
            }
        },
        M::Itself => receiver.clone(),
        M::Freeze => {
            match receiver {
                Value::Str(text) => text.freeze(),
                Value::Hash(table) => table.freeze(),
                _ => {}
            }
            receiver.clone()
        }
        M::FrozenQ => Value::Bool(match receiver {
            Value::Str(text) => text.is_frozen(),
            Value::Hash(table) => table.is_frozen(),
            Value::Array(_) | Value::Exception(_) | Value::Enumerator(_) | Value::Main => false,
            _ => true,
        }),
        M::Dup | M::Clone => duplicate(receiver),
        M::Send | M::PublicSend => {
            let (method, args) = sent(receiver, args)?;
            super::call(vm, receiver, method, args, block)?
        }
        M::Method => vm.method_value(receiver, &args[0])?,
        M::Call if matches!(receiver, Value::Main) => Value::Nil,
        _ => return Ok(None),
    }))
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

/// Whether a method exists. There is no list of methods, so the method is called on a copy without arguments.
fn responds(vm: &mut Vm, receiver: &Value, name: &str) -> bool {
    let Some(method) = M::find(name) else {
        return false;
    };
    let copy = duplicate(receiver);
    match super::call(vm, &copy, method, &[], None) {
        Ok(_) => true,
        Err(flow) => {
            !matches!(&*flow, crate::value::exception::Flow::Raise(raised) if raised.class == Class::NoMethodError
            && to_s(&raised.message).starts_with(&format!("undefined method '{name}' ")))
        }
    }
}

pub(super) fn call_nil(receiver: &Value, method: M, args: &[Value]) -> Found {
    let argument = || args.first().is_some_and(Value::truthy);
    let truthy = receiver.truthy();
    Ok(Some(match method {
        M::OpBitAnd => Value::Bool(truthy && argument()),
        M::OpBitOr => Value::Bool(truthy || argument()),
        M::OpBitXor => Value::Bool(truthy != argument()),
        M::ToA if receiver.is_nil() => Value::array(Vec::new()),
        M::ToI if receiver.is_nil() => Value::Int(0),
        M::ToF if receiver.is_nil() => Value::Float(0.0),
        M::ToH if receiver.is_nil() => Value::hash(crate::value::table::Table::default()),
        _ => return Ok(None),
    }))
}
