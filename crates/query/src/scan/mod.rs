//! Finds the fields that a query reads in lines of JSON, at the speed at which memory is read.
//!
//! | module | owns |
//! |---|---|
//! | `line` | a line at a time, with plans and without |
//! | `plan` | what rows look like, learned from rows: literal bytes and variable values |
//! | `grammar` | JSON without values: where things end |
//! | `index` | where all signs of a line stand: for lines that follow no plan |
//! | `reprint` | a row as it is printed, from its line |
//! | `wanted` | which keys are looked for |
//! | `kernel` | a block of bytes at once, with what the CPU has |
//! | `rows` | what was found, as values |
//!
//! Whatever is taken here is what the parser ([`crate::json::parse`]) takes, with the same values; whatever is not is
//! handed to it. It never decides what an error says.

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
mod rows;
mod wanted;

pub(crate) use line::Line;
pub(crate) use reprint::Reprinter;
pub(crate) use rows::Reader;

#[cfg(test)]
mod tests;
