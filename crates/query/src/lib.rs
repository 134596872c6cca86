//! The log query language: stages of Ruby expressions over rows of JSON, with reducers. What a query gives is, byte for
//! byte, what jrf gives; what is not supported is refused by name and place.
//!
//! | module | owns |
//! |---|---|
//! | [`run`] | inputs, the stages at work, output: what a caller sees |
//! | `stages` | where a query is cut |
//! | `lower` | Ruby's grammar (`ruby-prism`) to `tree`, the typed tree; names are resolved here |
//! | `plan` | which fields of a row a query reads: the boundary to whoever finds them faster |
//! | `vm` | the evaluator |
//! | `value` | what it computes with |
//! | `methods` | one file a class |
//! | `reducers` | accumulators that can be cut into chunks and merged |
//! | `json` | rows in, values out |
//! | `regex`, `format` | what their names say |
//!
//! It never reads a clock, the environment or a random source, and opens no file: a caller hands in readers.

#![forbid(unsafe_code)]

mod error;
mod fast_hash;
mod format;
mod json;
mod lower;
mod methods;
mod names;
mod plan;
mod reducers;
mod regex;
pub mod run;
mod stages;
mod tree;
mod value;
mod vm;

pub use error::CompileError;
pub use run::{Format, Input, Options, Query};
