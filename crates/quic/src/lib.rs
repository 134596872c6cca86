//! A QUIC transport as a pure state machine: bytes and time in, bytes and deadlines out.
//!
//! [`endpoint::Endpoint`] leads datagrams to connections, [`connection::Connection`] joins the rooms, and each room is
//! complete and tested alone.
//!
//! | room | owns |
//! |---|---|
//! | [`endpoint`] | many connections behind one socket: whose a datagram is, and answers that need no connection (RFC 9000 §5.2, §6, §8.1, §10.3) |
//! | [`connection`] | the switchboard: datagrams in and out, the handshake, timers |
//! | [`ack`] | what was received, and when to say so (RFC 9000 §13) |
//! | [`recovery`] | what is in flight, losses, probes, ECN; congestion control and pacing (RFC 9002) |
//! | [`cid`] | connection IDs, ours and the peer's (RFC 9000 §5.1) |
//! | [`path`] | anti-amplification, path validation, datagram size (RFC 9000 §8, §14) |
//! | [`crypto`] | keys and packet protection, TLS, key update; a plaintext twin for simulators (RFC 9001, 9369) |
//! | [`crypto_stream`] | CRYPTO data of one space (RFC 9000 §7.5) |
//! | [`stream`], [`flow`] | streams, their data and states; flow control both ways (RFC 9000 §2 to §4; priorities of RFC 9218) |
//! | [`idle`], [`close`] | the idle timeout; closing and draining (RFC 9000 §10) |
//! | [`space`], [`receipt`] | what the rooms share |
//!
//! Every room speaks one dialect: it takes `now`, writes its own frames, leaves a [`receipt::Receipt`] with the packet for
//! each, is told by it whether the packet was acknowledged or lost, and names its own deadline.
//!
//! No room reads a clock, opens a socket or draws a random number: time and randomness are arguments. Bytes off the wire
//! never make one panic, and each queue and buffer has a bound.

#![forbid(unsafe_code)]

pub mod ack;
pub mod ack_frequency;
pub mod address_token;
pub mod cid;
pub mod close;
pub mod connection;
pub mod crypto;
pub mod crypto_stream;
pub mod datagram;
pub mod endpoint;
pub mod flood;
pub mod flow;
pub mod idle;
mod network_path;
pub mod path;
pub mod random;
pub mod receipt;
pub mod recovery;
pub mod space;
mod stage;
pub mod statistics;
pub mod stream;
pub mod trace;
mod wall_time;

pub use lastbyte_congestion::Time;
pub use network_path::NetworkPath;
pub use stage::Stage;
pub use wall_time::WallTime;
