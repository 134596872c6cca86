//! Reducers turn many rows into one value. [`accumulator`] has the arithmetic, [`scope`] the reducers of a stage, a group or
//! a position of a map, [`groups`] those of many keys; [`packed`] and [`portable`] take both across threads and, with [`encoding`], across processes.

pub(crate) mod accumulator;
pub(crate) mod column;
pub(crate) mod correlation;
pub(crate) mod encoding;
pub(crate) mod groups;
pub(crate) mod histogram;
pub(crate) mod packed;
pub(crate) mod portable;
pub(crate) mod scope;
pub(crate) mod shares;
pub(crate) mod sort;
pub(crate) mod top;
mod weighted;

use crate::memory::Spill;
use crate::names::M;
use crate::tree::Op;
use crate::value::proc::Proc;
use crate::value::{Value, exception::Eval, number};
use std::rc::Rc;

/// What reducers need of the evaluator.
pub(crate) trait Evaluator {
    /// `left op right` for values that are not both machine numbers.
    fn operate(&mut self, op: Op, left: &Value, right: &Value) -> Eval;
    /// Calls a method with one argument.
    fn send_one(&mut self, receiver: &Value, method: M, argument: Value) -> Eval;
    /// Calls a block with two arguments.
    fn call_two(&mut self, block: &Rc<Proc>, first: &Value, second: &Value) -> Eval;
    /// Where rows beyond a limit go.
    fn spill(&self) -> Option<&Spill>;
}

#[inline]
fn binary(vm: &mut dyn Evaluator, op: Op, left: &Value, right: &Value) -> Eval {
    match number::fast(op, left, right) {
        Some(value) => Ok(value),
        None => vm.operate(op, left, right),
    }
}
