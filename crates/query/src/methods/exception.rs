//! Exceptions.

use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, Exception, no_method};
use crate::value::inspect::to_s;
use crate::vm::Vm;
use crate::vm::block::Block;

pub(super) fn call(
    _: &mut Vm,
    receiver: &Value,
    it: &Exception,
    method: M,
    _: &[Value],
    _: Option<&Block<'_>>,
) -> Eval {
    let message = to_s(&it.message);
    Ok(Value::str(match method {
        M::Message => message,
        M::FullMessage => format!("{message} ({})", it.class.name()),
        _ => return Err(no_method(method.name(), receiver)),
    }))
}
