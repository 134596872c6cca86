//! Reducers: what turns many rows into one value. [`accumulator`] holds the arithmetic, [`scope`] where reducers stand
//! (a stage, a group, a position of a map), [`builtins`] what a query calls.

pub(crate) mod accumulator;
pub(crate) mod builtins;
pub(crate) mod column;
pub(crate) mod packed;
pub(crate) mod portable;
pub(crate) mod scope;
