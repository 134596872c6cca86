//! What a function of the table of methods is given.

use crate::names::M;
use crate::value::Value;
use crate::value::exception::{Eval, Flow, no_method};
use crate::vm::block::Block;

/// A call of a method.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a, 'b> {
    pub(crate) receiver: &'a Value,
    pub(crate) method: M,
    pub(crate) args: &'a [Value],
    pub(crate) block: Option<&'a Block<'b>>,
}

impl<'a, 'b> Call<'a, 'b> {
    /// Receiver, method, arguments and block.
    pub(super) fn parts(&self) -> (&'a Value, M, &'a [Value], Option<&'a Block<'b>>) {
        (self.receiver, self.method, self.args, self.block)
    }

    /// The block of a method that the table does not call without one.
    pub(super) fn block(&self) -> Eval<&'a Block<'b>> {
        self.block.ok_or_else(|| self.unknown())
    }

    /// The error of a method that the receiver does not have.
    pub(super) fn unknown(&self) -> Box<Flow> {
        no_method(self.method.name(), self.receiver)
    }
}
