//! The methods and functions that an evaluator calls. It knows them by these entries only.

use super::Vm;
use super::block::Block;
use crate::names::M;
use crate::tree::{Builtin, Function, Op};
use crate::value::Value;
use crate::value::exception::Eval;

/// Called for each element of a value.
pub(crate) type Step<'a> = &'a mut dyn FnMut(&mut Vm, Value) -> Eval<()>;

pub(crate) struct Library {
    /// Calls a method of a value.
    pub(crate) call: fn(&mut Vm, &Value, M, &[Value], Option<&Block<'_>>) -> Eval,
    /// `left op right` for values that are not both machine numbers.
    pub(crate) operate: fn(&mut Vm, Op, &Value, &Value) -> Eval,
    /// Walks the elements of a value.
    pub(crate) each: fn(&mut Vm, &Value, Step<'_>) -> Eval<()>,
    /// The elements of a value.
    pub(crate) to_vec: fn(&mut Vm, &Value) -> Eval<Vec<Value>>,
    /// Calls a function that every object has; the flag says whether the last argument has the keywords.
    pub(crate) function: fn(&mut Vm, Function, &[Value], bool, Option<&Block<'_>>) -> Eval,
    /// Calls a builtin of a stage; the flag says whether its block calls reducers.
    pub(crate) builtin: fn(&mut Vm, Builtin, &[Value], Option<&Block<'_>>, bool) -> Eval,
}
