//! Records of connections: the connection log, and qlog from the trace events of `lastbyte_quic`.
//!
//! | module | owns |
//! |---|---|
//! | [`json`] | writing JSON member by member |
//! | [`connection_log`] | one line per connection, with H2O's keys |
//! | [`packed`] | logs that are compressed as they are written |
//! | [`qlog`] | qlog, in the version that qvis loads and in that of the current drafts |
//!
//! This crate opens no files: the caller passes writers.

#![forbid(unsafe_code)]

pub mod connection_log;
pub mod json;
pub mod packed;
pub mod qlog;
