//! QUIC on the wire: versions 1 and 2, as pure functions over slices.
//!
//! # Map
//!
//! | module | holds |
//! |---|---|
//! | [`packet`] | what a datagram says in any version; its packets, step by step out of their protection; packets to be sent, step by step into it; Retry, Version Negotiation, stateless reset; packet numbers; what differs between versions |
//! | [`frame`] | one file a frame, the table of what may be where, and [`Frames`](frame::Frames), which goes through a payload |
//! | [`transport_parameters`] | what the ends tell each other in the handshake, and what of it is remembered for 0-RTT |
//! | the root | [`VarInt`]; [`Reader`] and [`Writer`], the cursors all codecs use; connection IDs, stream IDs, reset tokens, error codes |
//!
//! What is read off the wire borrows from the datagram. What is written goes into a buffer of the caller's, all or
//! nothing; [`Encode::encoded_len`] says beforehand, exactly, how much room it takes. Large data is not copied: STREAM
//! and DATAGRAM frames hand out the place in the packet where it belongs.
//!
//! What decodes is legal: ranges that count below zero, offsets beyond 2^62 − 1, frames where they may not be, and the
//! like, are errors, which name the frame, the place and the code to close the connection with.
//!
//! # What it must never do
//!
//! - panic, whatever bytes it is given (`any_*` in the tests);
//! - allocate, but for the version list of transport parameters and [`to_vec`];
//! - encrypt, decrypt or compare with a key: it says where the sample is and applies the mask it is given;
//! - know a connection: whether a stream exists, a limit is kept, or an extension was agreed on, is for others to say;
//! - read a clock, or make a random number.
//!
//! [`to_vec`]: transport_parameters::TransportParameters::to_vec
//!
//! # Sources
//!
//! RFC 8999 (all of it), RFC 9000 §2.1, §4.6, §7.3, §7.4, §10.3, §12, §15 to §20, RFC 9001 §5.1, §5.2, §5.4, §5.8 (the
//! data and the offsets, not the cryptography), RFC 9221 §3 and §4, RFC 9287 §3, RFC 9368 §3, §4 and §10, RFC 9369 §3,
//! draft-ietf-quic-ack-frequency-14 §3 to §5.
//!
//! # A payload, there and back
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
//! let Some(Ok(Frame::Stream(stream))) = frames.next() else { panic!("a STREAM frame comes next") };
//! assert_eq!((stream.header, stream.data), (header, &b"hello"[..]));
//! assert!(frames.next().is_none());
//!
//! // In a Handshake packet neither frame may be.
//! let error = Frames::new(writer.written(), PacketType::Handshake, Side::Server)?.next().unwrap().unwrap_err();
//! assert_eq!(error.to_string(), "MAX_DATA at byte 0: not permitted in a Handshake packet");
//! assert_eq!(error.transport_error().to_string(), "PROTOCOL_VIOLATION");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
