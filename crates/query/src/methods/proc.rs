//! Proc.

use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::Eval;
use crate::value::proc::Proc;
use crate::vm::Vm;
use std::rc::Rc;

pub(super) fn call(vm: &mut Vm, it: &Rc<Proc>, call: Call<'_, '_>) -> Eval {
    let (_, method, args, block) = call.parts();
    Ok(match method {
        M::Call | M::OpIndex | M::OpCaseEq => {
            vm.call_proc_with(it, args, false, Vm::block_value(block))?
        }
        M::ToProc => Value::Proc(Rc::clone(it)),
        _ => return Err(call.unknown()),
    })
}
