//! An Enumerator: a receiver, the method that walks it, and that method's arguments, called when elements are requested.

use super::Value;
use crate::class::Class;
use crate::names::M;
use std::cell::Cell;

pub(crate) struct Enumerator {
    pub(crate) receiver: Value,
    pub(crate) method: M,
    pub(crate) args: Vec<Value>,
    pub(crate) lazy: bool,
    /// Number of values that `next` has returned.
    pub(crate) position: Cell<usize>,
}

impl Enumerator {
    pub(crate) fn new(receiver: Value, method: M, args: Vec<Value>) -> Enumerator {
        Enumerator {
            receiver,
            method,
            args,
            lazy: false,
            position: Cell::new(0),
        }
    }

    pub(crate) fn class(&self) -> Class {
        let numeric = match &self.receiver {
            Value::Int(_) | Value::Float(_) | Value::Big(_) => true,
            Value::Range(range) => matches!(range.from, Value::Int(_) | Value::Float(_)),
            _ => false,
        };
        match self.method {
            _ if self.lazy => Class::Lazy,
            M::Step | M::OpMod if numeric => Class::ArithmeticSequence,
            _ => Class::Enumerator,
        }
    }
}
