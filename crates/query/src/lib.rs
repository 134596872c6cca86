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
//! A module uses those above it in this table only:
//!
//! | module | owns |
//! |---|---|
//! | `error`, `names`, `symbol`, `class`, `regex` | errors; names of methods, symbols and classes; patterns |
//! | `tree`, `forms`, `lower`, `plan` | the typed tree; how the builtins are called; Ruby's grammar (`ruby-prism`) to the tree; which fields a query reads and what threads may do |
//! | `value` | the values that expressions compute with; they know the tree as the code of procs, and no evaluator |
//! | `json` | rows as values; values as JSON, tab- and comma-separated text and plain data |
//! | `reducers` | accumulators that can be cut into chunks and merged |
//! | `vm` | the evaluator: it calls methods and functions by the entries of a `Library` |
//! | `methods`, `builtins` | one file per class; the builtins of a stage |
//! | `library`, [`run`] | the entries; inputs, stages at work, output |
//!
//! The crate reads no clock, environment variable or random source, and opens no files: the caller passes readers.
//!
//! # Decisions
//!
//! - Rows are read by plans: the literal bytes of a row with variable values between them. A line that follows no plan
//!   is parsed; plans change the speed, never the result (`json`).
//! - Results do not depend on threads: accumulators of chunks merge in input order, and rounding operations keep their
//!   inputs until then.
//! - The state of a part of the input, for `--merge`, is the scope of reducers that a thread hands over, as bytes. Floats
//!   are kept as a list, since only additions in the order of the rows give the result of one process.
//! - A helper file may define a method with the name of a builtin that jrf does not have: it replaces the builtin, so
//!   that a query of jrf keeps its result.
//! - The thread that has the turn reads or decompresses a block and then processes it, so that the bytes are in its
//!   cache. Mapped files were no faster, and a log truncated while mapped kills the process.

#![forbid(unsafe_code)]
#![expect(
    clippy::unnecessary_box_returns,
    reason = "`Eval` takes its error boxed"
)]

mod builtins;
mod class;
mod error;
mod forms;
mod json;
mod library;
mod lookup;
mod lower;
mod memory;
mod methods;
mod names;
mod plan;
mod reducers;
mod regex;
pub mod run;
mod symbol;
mod tree;
mod value;
mod vm;

pub use error::{AbsentKey, CompileError, RunError, SkippedLines};
pub use lastbyte_json::Value;
pub use memory::{Memory, Spill, TemporaryFile};
pub use run::{ByteSource, Follow, Format, Input, Measure, Options, Outcome, Query, Scale};
