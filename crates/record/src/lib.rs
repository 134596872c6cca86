//! What a connection leaves behind, written while it lives from the events of `lastbyte_quic`'s trace.
//!
//! | module | owns |
//! |---|---|
//! | [`json`] | JSON as it is written, member by member |
//! | [`connection_log`] | one line a connection, with H2O's keys |
//! | [`packed`] | logs that are packed as they are written |
//! | [`qlog`] | qlog, in the dialect that qvis loads and in that of the current drafts |
//!
//! Nothing here opens a file: writers are handed in.

#![forbid(unsafe_code)]

pub mod connection_log;
pub mod json;
pub mod packed;
pub mod qlog;
