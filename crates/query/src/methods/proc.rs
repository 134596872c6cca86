//! Proc.

use super::table::{self, Entry};
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, no_method, type_error};
use crate::value::proc::{Kind, Proc};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

pub(super) fn call(
    vm: &mut Vm,
    receiver: &Value,
    it: &Rc<Proc>,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Eval {
    Ok(match method {
        M::Call | M::Yield | M::OpIndex | M::OpCaseEq => {
            vm.call_proc_with(it, args, false, Vm::block_value(block))?
        }
        M::ToProc => Value::Proc(Rc::clone(it)),
        M::LambdaQ => Value::Bool(it.lambda),
        M::Arity => Value::Int(arity(vm, it)),
        M::OpShr | M::OpShl => {
            if !matches!(args[0], Value::Proc(_)) {
                return Err(type_error("callable object is expected"));
            }
            let (this, other) = (receiver.clone(), args[0].clone());
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
        _ => return Err(no_method(method.name(), receiver)),
    })
}

fn arity(vm: &Vm, it: &Proc) -> i64 {
    match &it.kind {
        Kind::Code(code, _) => {
            // Only a lambda requires its optional parameters.
            let parameters = &code.parameters;
            let is_bare = parameters.rest.is_none() && parameters.least() == 0;
            if !it.lambda && !parameters.optional.is_empty() && is_bare {
                return 0;
            }
            parameters.arity()
        }
        Kind::Helper(helper) => vm.program.definitions[*helper].code.parameters.arity(),
        Kind::Method(receiver, method) => table::find(receiver, *method).map_or(-1, Entry::arity),
        Kind::Symbol(_) => -2,
        Kind::Lookup(_) | Kind::Chain(..) => 1,
    }
}
