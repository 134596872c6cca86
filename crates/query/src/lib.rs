//! The log query language: stages of Ruby expressions over rows of JSON, with reducers. Results are byte for byte those of
//! jrf; unsupported syntax and methods are rejected when the query is compiled, with their place in the text.
//!
//! [`Query::run`] prints results; [`Query::for_each`] hands them over as values:
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use lastbyte_query::{Input, Options, Query};
//!
//! let query = Query::compile(r#"select(_["ttlb"] > 100) >> [_["id"], _["ttlb"]]"#, &[], Options::default())?;
//! let log = b"{\"id\": 1, \"ttlb\": 80}\n{\"id\": 2, \"ttlb\": 250}\n".to_vec();
//! let outcome = query.for_each(vec![Input::from_bytes("log", log)], |row| {
//!     assert_eq!(row[0].as_i64(), Some(2));
//!     assert_eq!(row[1].as_f64(), Some(250.0));
//!     ControlFlow::Continue(())
//! });
//! outcome.into_result()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//! | `json` | rows as values; values as JSON, tab-separated text and plain data |
//! | `regex`, `format` | what their names say |
//!
//! The crate reads no clock, environment variable or random source, and opens no files: the caller passes readers.

#![forbid(unsafe_code)]
#![expect(
    clippy::too_many_lines,
    reason = "a class's methods are one flat table, an arm each; so are the evaluator and the walks over the tree"
)]
#![expect(
    clippy::match_same_arms,
    reason = "arms stand by topic, and methods that happen to do the same stay apart"
)]
#![expect(
    clippy::unnecessary_box_returns,
    reason = "the errors are boxed where they arise, so that a value's `Result` stays as small as the value"
)]
#![expect(
    clippy::cast_possible_wrap,
    reason = "counts, sizes and hashes become Integers of the language; none reaches 2^63"
)]
#![expect(
    clippy::similar_names,
    reason = "`list` and `it`, `digit` and `digits` are what they are"
)]
#![expect(
    clippy::single_match_else,
    reason = "found or not found reads best as two arms"
)]
#![expect(
    clippy::option_option,
    reason = "an optional thing whose name is optional"
)]

mod error;
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

pub use error::{CompileError, RunError, SkippedLines};
pub use lastbyte_json::Value;
pub use run::{ByteSource, Format, Input, Memory, Options, Outcome, Query};
