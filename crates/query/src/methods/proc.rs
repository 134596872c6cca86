//! Proc.

use super::Found;
use crate::names::M;
use crate::value::Value;
use crate::value::number::need_int;
use crate::value::proc::{Kind, Proc};
use crate::vm::Vm;
use std::rc::Rc;

pub(super) fn call(vm: &mut Vm, it: &Rc<Proc>, method: M, args: &[Value]) -> Found {
    let arity = || match &it.kind {
        Kind::Code(code, _) => {
            let arity = code.parameters.arity();
            // A proc that is no lambda does not insist on its optional ones.
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
        M::Call | M::Yield | M::OpIndex | M::OpCaseEq => vm.call_proc(it, args)?,
        M::ToProc => Value::Proc(Rc::clone(it)),
        M::LambdaQ => Value::Bool(it.lambda),
        M::Arity => Value::Int(arity()),
        M::OpShr | M::OpShl => {
            crate::value::exception::arity(args, 1, 1)?;
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
                None => arity().abs() - i64::from(arity() < 0),
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
