//! Proc.

use super::Found;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{arity, type_error};
use crate::value::number::need_int;
use crate::value::proc::{Kind, Proc};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

pub(super) fn call(
    vm: &mut Vm,
    it: &Rc<Proc>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let own_arity = || match &it.kind {
        Kind::Code(code, _) => {
            let arity = code.parameters.arity();
            // Only a lambda requires its optional parameters.
            if !it.lambda
                && !code.parameters.optional.is_empty()
                && code.parameters.rest.is_none()
                && code.parameters.least() == 0
            {
                0
            } else {
                arity
            }
        }
        Kind::Symbol(_) => -2,
        _ => 1,
    };
    Ok(Some(match method {
        M::Call | M::Yield | M::OpIndex | M::OpCaseEq => {
            vm.call_proc_with(it, args, false, Vm::block_value(block))?
        }
        M::ToProc => Value::Proc(Rc::clone(it)),
        M::LambdaQ => Value::Bool(it.lambda),
        M::Arity => Value::Int(own_arity()),
        M::OpShr | M::OpShl => {
            arity(args, 1, 1)?;
            if !matches!(args[0], Value::Proc(_)) {
                return Err(type_error("callable object is expected"));
            }
            let (this, other) = (Value::Proc(Rc::clone(it)), args[0].clone());
            let kind = if method == M::OpShr {
                Kind::Chain(this, other)
            } else {
                Kind::Chain(other, this)
            };
            Value::Proc(Rc::new(Proc {
                kind,
                lambda: true,
                tag: 0,
            }))
        }
        M::Curry => {
            let wanted = match args.first() {
                Some(wanted) => need_int(wanted)?,
                None => own_arity().abs() - i64::from(own_arity() < 0),
            };
            let kind = Kind::Curry(Rc::clone(it), Vec::new(), wanted.max(0) as usize);
            Value::Proc(Rc::new(Proc {
                kind,
                lambda: it.lambda,
                tag: 0,
            }))
        }
        _ => return Ok(None),
    }))
}
