//! Procs and lambdas: code with the variables it sees, or a method by its name.

use super::Value;
use crate::names::M;
use crate::tree::Code;
use crate::value::env::Env;
use std::rc::Rc;

pub(crate) struct Proc {
    pub(crate) kind: Kind,
    pub(crate) lambda: bool,
    /// The target of a `break` in it.
    pub(crate) tag: u64,
}

pub(crate) enum Kind {
    Code(Rc<Code>, Rc<Env>),
    /// `&:name`.
    Symbol(M),
    /// `method(:name)` of a receiver.
    Method(Value, M),
    /// `method(:name)` of a helper.
    Helper(usize),
    /// A Hash as a proc: looks its argument up.
    Lookup(Value),
}
