//! Exceptions.

use super::Found;
use crate::names::M;
use crate::value::Value;
use crate::value::exception::Exception;
use crate::value::inspect::to_s;

pub(super) fn call(it: &Exception, method: M, args: &[Value]) -> Found {
    let _ = args;
    Ok(Some(match method {
        M::Message | M::ToS => Value::str(to_s(&it.message)),
        M::FullMessage | M::DetailedMessage => {
            Value::str(format!("{} ({})", to_s(&it.message), it.class.name()))
        }
        M::Backtrace => Value::array(Vec::new()),
        M::Cause => Value::Nil,
        _ => return Ok(None),
    }))
}
