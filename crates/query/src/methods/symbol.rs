//! Symbol: most methods are those of its name, a String.

use super::Found;
use crate::names::M;
use crate::symbol::Symbol;
use crate::value::Value;
use crate::value::proc::{Kind, Proc};
use crate::vm::Vm;
use crate::vm::block::Block;
use std::rc::Rc;

pub(super) fn call(
    vm: &mut Vm,
    it: Symbol,
    method: M,
    args: &[Value],
    block: Option<&Block<'_>>,
) -> Found {
    let text = || Value::str(&*it.name());
    Ok(Some(match method {
        M::ToSym => Value::Symbol(it),
        M::ToS | M::Name => text(),
        M::ToProc => match M::find(&it.name()) {
            Some(method) => Value::Proc(Rc::new(Proc {
                kind: Kind::Symbol(method),
                lambda: true,
                tag: 0,
            })),
            None => {
                return Err(crate::value::exception::no_method(
                    &it.name(),
                    &Value::Symbol(it),
                ));
            }
        },
        M::Length
        | M::Size
        | M::EmptyQ
        | M::OpIndex
        | M::Slice
        | M::StartWithQ
        | M::EndWithQ
        | M::OpMatch
        | M::Match
        | M::MatchQ => {
            return vm.send(&text(), method, args, block).map(Some);
        }
        M::Upcase | M::Downcase | M::Capitalize | M::Swapcase | M::Succ => {
            let changed = vm.send(&text(), method, args, block)?;
            Value::symbol(&crate::value::inspect::to_s(&changed))
        }
        _ => return super::comparable::call(&Value::Symbol(it), method, args),
    }))
}
