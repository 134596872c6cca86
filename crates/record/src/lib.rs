//! Records of connections: the connection log, and qlog from the trace events of `lastbyte_quic`.
//!
//! | module | owns |
//! |---|---|
//! | [`json`] | writing JSON member by member |
//! | [`connection_log`] | one line per connection, with H2O's keys |
//! | [`packed`] | logs that are compressed as they are written |
//! | [`qlog`] | qlog, in the version that qvis loads and in that of the current drafts |
//!
//! ```
//! use lastbyte_record::{connection_log::schema, json::Object};
//!
//! let mut line = String::new();
//! let mut object = Object::new(&mut line);
//! object.text("arm", "rapid-start").integer("bytes", 400_000_u64);
//! drop(object);
//! assert_eq!(line, r#"{"arm":"rapid-start","bytes":400000}"#);
//!
//! // All keys of a line of the connection log, as a JSON schema.
//! assert!(schema::json_schema().contains("\"num-packets.sent\""));
//! ```
//!
//! This crate opens no files: the caller passes writers.

#![forbid(unsafe_code)]

pub mod connection_log;
pub mod json;
pub mod packed;
pub mod qlog;
