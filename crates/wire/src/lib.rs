//! Sans-IO codec for QUIC versions 1 and 2.
//!
//! # Modules
//!
//! | module | contents |
//! |---|---|
//! | [`packet`] | version-independent headers, removing and applying header protection, coalesced packets, Retry, Version Negotiation, stateless resets, packet numbers, version-specific constants |
//! | [`frame`] | one file per frame, the table of which frame is permitted where, and [`Frames`](frame::Frames), the iterator over a payload |
//! | [`transport_parameters`] | the transport parameters, and the subset remembered for 0-RTT |
//! | crate root | [`VarInt`]; [`Reader`] and [`Writer`], the cursors all codecs use; connection IDs, stream IDs, reset tokens, error codes; [`AckDecimation`] |
//!
//! Decoded values borrow from the datagram. Encoding writes into a caller-owned buffer, either completely or not at
//! all; [`Encode::encoded_len`] returns the exact size beforehand. Bulk data is not copied: STREAM frames
//! can be encoded around a slice of the packet that the caller fills.
//!
//! Only valid input decodes. ACK ranges below zero, offsets beyond 2^62 − 1, frames in a packet type that does not
//! permit them, and the like are errors that name the frame, the offset and the code with which to close the
//! connection.
//!
//! # Invariants
//!
//! This crate never
//!
//! - panics, whatever the input (tests `any_*`);
//! - allocates, except for the version list of transport parameters and in [`to_vec`];
//! - encrypts, decrypts or handles keys: it returns the header protection sample and applies the mask that it is given;
//! - tracks connection state: whether a stream exists, a limit is respected or an extension was negotiated is checked
//!   by the caller;
//! - reads a clock or generates random numbers.
//!
//! [`to_vec`]: transport_parameters::TransportParameters::to_vec
//!
//! # Sources
//!
//! RFC 8999 (complete), RFC 9000 §2.1, §4.6, §7.3, §7.4, §10.3, §12, §15 to §20, RFC 9001 §5.1, §5.2, §5.4, §5.8
//! (constants and offsets only, no cryptography), RFC 9287 §3, RFC 9368 §3, §4 and §10, RFC 9369
//! §3, draft-ietf-quic-ack-frequency-14 §3 to §5.
//!
//! # Example
//!
//! ```
//! use lastbyte_wire::{
//!     Encode, Side, VarInt, Writer,
//!     frame::{Frame, Frames, LengthField, MaxData, StreamHeader},
//!     packet::PacketType,
//! };
//!
//! let mut payload = [0; 64];
//! let mut writer = Writer::new(&mut payload);
//! MaxData { maximum: VarInt::from_u32(1 << 20) }.encode(&mut writer)?;
//! let header = StreamHeader { id: VarInt::from_u32(8).into(), offset: VarInt::ZERO, fin: true };
//! header.begin(&mut writer, 5, LengthField::Absent)?.copy_from_slice(b"hello");
//!
//! let mut frames = Frames::new(writer.written(), PacketType::OneRtt, Side::Server)?;
//! assert!(matches!(frames.next(), Some(Ok(Frame::MaxData(frame))) if frame.maximum.get() == 1 << 20));
//! let Some(Ok(Frame::Stream(stream))) = frames.next() else { panic!("expected a STREAM frame") };
//! assert_eq!((stream.header, stream.data), (header, &b"hello"[..]));
//! assert!(frames.next().is_none());
//!
//! // A Handshake packet permits neither frame.
//! let error = Frames::new(writer.written(), PacketType::Handshake, Side::Server)?.next().unwrap().unwrap_err();
//! assert_eq!(error.to_string(), "MAX_DATA at byte 0: not permitted in a Handshake packet");
//! assert_eq!(error.transport_error().to_string(), "PROTOCOL_VIOLATION");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod ack_decimation;
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

pub use ack_decimation::AckDecimation;
pub use connection_id::ConnectionId;
pub use reader::{Reader, UnexpectedEnd};
pub use reset_token::StatelessResetToken;
pub use side::Side;
pub use stream_id::{Direction, StreamCount, StreamId};
pub use transport_error::TransportError;
pub use varint::{VarInt, VarIntOutOfRange};
pub use writer::{BufferFull, Encode, Writer};
