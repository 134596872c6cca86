//! A QUIC transport as a pure state machine: bytes and time in, bytes and deadlines out. (Header to come.)

#![forbid(unsafe_code)]

pub mod ack;
pub mod cid;
pub mod close;
pub mod idle;
pub mod path;
pub mod receipt;
pub mod recovery;
