//! An Enumerator: a receiver, the method that walks it, and that method's arguments, called when elements are requested.

use super::Value;
use crate::class::Class;
use crate::names::M;

pub(crate) struct Enumerator {
    pub(crate) receiver: Value,
    pub(crate) method: M,
    pub(crate) args: Vec<Value>,
}

impl Enumerator {
    pub(crate) fn new(receiver: Value, method: M, args: Vec<Value>) -> Enumerator {
        Enumerator {
            receiver,
            method,
            args,
        }
    }

    pub(crate) fn class(&self) -> Class {
        let numeric = match &self.receiver {
            Value::Int(_) | Value::Float(_) | Value::Big(_) => true,
            Value::Range(range) => matches!(range.from, Value::Int(_) | Value::Float(_)),
            _ => false,
        };
        match self.method {
            M::Step | M::OpMod if numeric => Class::ArithmeticSequence,
            _ => Class::Enumerator,
        }
    }

    /// Whether the block receives an element with its index or an object.
    pub(crate) fn yields_two(&self) -> bool {
        match (self.method, &self.receiver) {
            (M::EachWithIndex | M::WithIndex | M::EachWithObject, _) => true,
            // They pass on what they receive.
            (M::Collect | M::FilterMap | M::FlatMap | M::Map, Value::Enumerator(it)) => {
                it.yields_two()
            }
            _ => false,
        }
    }
}
