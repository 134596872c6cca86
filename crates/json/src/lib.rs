//! Rows of JSON: a strict parser, and a scanner that finds the fields that a query reads at memory speed.
//!
//! | module | owns |
//! |---|---|
//! | [`parse`] | the parser, into values of any type ([`Build`]) |
//! | [`scan`] | the fields of rows, found without parsing what is not read |
//! | [`mod@print`] | numbers and strings as JSON text |
//! | [`Value`] | plain data |
//! | [`fast_hash`] | a hasher with a fixed seed |
//!
//! ```
//! use lastbyte_json::Value;
//! use lastbyte_json::parse::{Keys, Parser, Projection};
//!
//! let mut keys = Keys::default();
//! let row: Value = Parser::new(br#"{"id": 1, "ttlb": 80.5}"#, &mut keys)
//!     .only(&Projection::Fields(vec![("ttlb".to_owned(), Projection::Whole)]))?;
//! assert_eq!(row.to_string(), r#"{"ttlb":80.5}"#);
//! # Ok::<(), lastbyte_json::parse::ParseError>(())
//! ```

#![deny(unsafe_code)]

mod build;
pub mod fast_hash;
pub mod parse;
pub mod print;
pub mod scan;
mod value;

pub use build::{Build, Members};
pub use value::Value;
