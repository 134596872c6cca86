//! Finds the fields that a query reads in lines of JSON, at the speed at which memory is read.
//!
//! | module | owns |
//! |---|---|
//! | `line` | a line at a time, with plans and without |
//! | `plan` | the shape of rows, learned from rows: literal bytes and variable values |
//! | `grammar` | JSON without values: where things end |
//! | `stretches` | 64 bytes at once, for lines that follow no plan |
//! | `members` | keys and values one by one |
//! | `reprint` | prints a row from its line |
//! | `selection` | which keys are looked for |
//! | `kernel` | operations on a block of bytes, with the CPU's vector instructions |
//!
//! The scanner accepts only lines that the parser ([`crate::parse`]) accepts, and finds the same values. It leaves all other
//! lines to the parser, which reports the errors.

#![expect(
    clippy::inline_always,
    reason = "what a kernel calls must become part of the function that is compiled for its CPU"
)]

mod grammar;
mod kernel;
mod line;
mod members;
mod plan;
mod reprint;
mod selection;
mod stretches;

pub use grammar::{Kind, Span};
pub use line::{Line, Scanner};
pub use plan::Plan;
pub use reprint::Reprinter;

#[cfg(test)]
mod tests;
