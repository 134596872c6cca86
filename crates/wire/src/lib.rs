//! (Header below, once all modules stand.)

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod connection_id;
mod error;
pub mod frame;
pub mod packet;
mod reader;
mod reset_token;
mod side;
mod stream_id;
mod transport_error;
pub mod transport_parameters;
mod varint;
mod writer;

pub use connection_id::ConnectionId;
pub use reader::{Reader, UnexpectedEnd};
pub use reset_token::StatelessResetToken;
pub use side::Side;
pub use stream_id::{Direction, StreamCount, StreamId};
pub use transport_error::TransportError;
pub use varint::{VarInt, VarIntOutOfRange};
pub use writer::{BufferFull, Encode, Writer};
