//! Exceptions.

use crate::methods::call::Call;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, Exception};
use crate::value::inspect::to_s;
use crate::vm::Vm;

pub(super) fn call(_: &mut Vm, it: &Exception, call: Call<'_, '_>) -> Eval {
    let Call { method, .. } = call;
    let message = to_s(&it.message);
    Ok(Value::str(match method {
        M::Message => message,
        _ => return Err(call.unknown()),
    }))
}
