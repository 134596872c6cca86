//! Symbol: most methods are those of its name, a String.

use crate::methods::call::Call;
use crate::names::M;
use crate::symbol::Symbol;
use crate::value::Value;
use crate::value::exception::{Eval, no_method};
use crate::value::proc::{Kind, Proc};
use crate::vm::Vm;
use std::rc::Rc;

pub(super) fn call(vm: &mut Vm, it: Symbol, call: Call<'_, '_>) -> Eval {
    let (receiver, method, args, block) = call.parts();
    let text = || Value::str(&*it.name());
    Ok(match method {
        M::ToSym => receiver.clone(),
        M::Name => text(),
        M::ToProc => match M::find(&it.name()) {
            Some(method) => Value::Proc(Rc::new(Proc {
                kind: Kind::Symbol(method),
                lambda: true,
                tag: 0,
            })),
            None => {
                return Err(no_method(&it.name(), receiver));
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
            return vm.send(&text(), method, args, block);
        }
        M::Upcase | M::Downcase | M::Capitalize | M::Succ => {
            let changed = vm.send(&text(), method, args, block)?;
            Value::symbol(&crate::value::inspect::to_s(&changed))
        }
        _ => return Err(call.unknown()),
    })
}
