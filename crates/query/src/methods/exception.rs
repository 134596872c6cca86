//! Exceptions.

use crate::memory::Growth;
use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, Exception};
use crate::value::inspect::to_s_within;
use crate::vm::Vm;

pub(super) fn call(vm: &mut Vm, it: &Exception, call: Call<'_, '_>) -> Eval {
    let Call { method, .. } = call;
    let message = to_s_within(&it.message, Growth::of(&vm.bounds, 0).limit())?;
    Ok(Value::str(match method {
        M::Message => message,
        _ => return Err(call.unknown()),
    }))
}
