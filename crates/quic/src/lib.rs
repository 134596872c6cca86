//! A QUIC transport as a pure state machine: bytes and time in, bytes and deadlines out.
//!
//! An [`Endpoint`] routes the datagrams of a socket to its [`Connection`]s; the caller has the socket and the clock.
//! Here two endpoints in one process exchange datagrams until a request arrives:
//!
//! ```
//! use std::sync::Arc;
//!
//! use lastbyte_quic::{
//!     Config, Endpoint, EndpointConfig, NetworkPath, Route, Time,
//!     crypto::plain::{PlainClient, PlainServer},
//!     stream::KeepAll,
//! };
//! use lastbyte_wire::Direction;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Arc::new(Config::new("cubic".parse()?));
//! // Plaintext, for simulations; `crypto::tls` provides the protection of RFC 9001.
//! let alpn = || vec![b"echo".to_vec()];
//! let (client_crypto, server_crypto) = (PlainClient::new(1, alpn()), PlainServer::new(2, alpn()));
//! let server = EndpointConfig::server(Arc::clone(&config), Arc::new(server_crypto));
//! let mut ends = [
//!     Endpoint::new(EndpointConfig::client(), [1; 32])?,
//!     Endpoint::new(server, [2; 32])?,
//! ];
//! let mut now = Time::from_nanos(1);
//! let path = NetworkPath { local: "10.0.0.1:4000".parse()?, remote: "10.0.0.2:443".parse()? };
//! let client = ends[0].connect(now, path, "localhost", &config, Arc::new(client_crypto), Vec::new())?;
//! let mut buffer = [0; 1500];
//! let mut server_has_read = Vec::new();
//! let mut is_open = false;
//! while server_has_read.is_empty() {
//!     for (from, to) in [(0, 1), (1, 0)] {
//!         while let Some(sent) = ends[from].poll_transmit(now, &mut buffer) {
//!             let datagram = &mut buffer[..sent.len];
//!             let path = NetworkPath { local: sent.path.remote, remote: sent.path.local };
//!             let route = ends[to].route(now, &path, datagram);
//!             if let Route::Connection(handle) | Route::Accepted(handle) = route {
//!                 let connection = ends[to].connection(handle).expect("it was routed to");
//!                 connection.handle_datagram(now, &path, sent.ecn, datagram, &mut KeepAll);
//!                 if to == 1 && let Some(id) = connection.streams().accept(Direction::Bidirectional) {
//!                     connection.streams().read(id, now, &mut |bytes| {
//!                         server_has_read.extend_from_slice(bytes);
//!                         bytes.len()
//!                     })?;
//!                 }
//!             }
//!         }
//!     }
//!     let streams = ends[0].connection(client).expect("it is open").streams();
//!     if !is_open && let Some(id) = streams.open(Direction::Bidirectional) {
//!         streams.write(id, b"hello")?;
//!         is_open = true;
//!     }
//!     now = now + std::time::Duration::from_millis(1);
//! }
//! assert_eq!(server_has_read, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | module | content |
//! |---|---|
//! | [`endpoint`] | many connections behind one socket: demultiplexing, and answers that need no connection (RFC 9000 §5.2, §6, §8.1, §10.3) |
//! | [`connection`] | datagrams in and out, the handshake, paths, timers |
//! | [`crypto`] | keys and packet protection, TLS, key update; a plaintext stand-in for simulators (RFC 9001, 9369) |
//! | [`stream`] | streams, their data and states (RFC 9000 §2 to §4; priorities of RFC 9218) |
//! | [`recovery`] | packets in flight, losses, probes, ECN; congestion control and pacing (RFC 9002) |
//! | [`ack`] | received packets, and when to acknowledge them (RFC 9000 §13) |
//! | [`cid`] | connection IDs, ours and the peer's (RFC 9000 §5.1) |
//! | [`path`] | anti-amplification, path validation, datagram size (RFC 9000 §8, §14) |
//! | [`trace`], [`statistics`] | events and counters for logs |
//!
//! Modules that write frames work alike: they take `now`, write their own frames, store a [`receipt::Receipt`] with the
//! packet for each, receive it back when the packet is acknowledged or lost, and return their own deadline.
//!
//! No module reads a clock, opens a socket or draws a random number: time and randomness are arguments. Received bytes
//! never cause a panic, and each queue and buffer has a bound.
//!
//! # Decisions
//!
//! - An ACK frame costs what it newly acknowledges: a run of acknowledged packets in the ring is skipped in one step.
//! - Lost packets stay in the ring for four probe timeouts, so that a late acknowledgment is recognized, undoes the
//!   congestion event, and raises the reordering thresholds.
//! - A probe carries new data, or unacknowledged data of the expired space, and lost data of the other spaces.
//! - Tickets are stateless and allow 0-RTT: each connection has its own session store for the TLS library, and the
//!   stored session is sealed into the `NewSessionTicket` message (`crypto/tickets.rs`). Client sessions are saved and
//!   restored by a handshake in memory (`crypto/tickets/client.rs`). Both depend on one version of rustls.
//! - The probe timer runs, and probes ignore the window, when handshake data waits behind a full window of packets that
//!   the peer cannot acknowledge yet.
//! - Packets of an abandoned path no longer count as in flight, and their acknowledgment or loss is not reported to the
//!   controller of the current path.
//! - A client that migrates before it has spare connection IDs keeps its ID, as behind a NAT.
//! - Without a trace listener, nothing is computed for one.
//! - For a compatible version change (RFC 9368 §2.3), keys of the other version are derived by an HKDF between the TLS
//!   library and its provider.
//! - A skipped packet number stays in the ring until its successor is acknowledged.

#![forbid(unsafe_code)]

pub mod ack;
#[doc(hidden)]
pub mod ack_frequency;
#[doc(hidden)]
pub mod address_token;
pub mod anatomy;
pub mod cid;
pub mod close;
pub mod connection;
pub mod crypto;
#[doc(hidden)]
pub mod crypto_stream;
pub mod endpoint;
#[doc(hidden)]
pub mod flood;
#[doc(hidden)]
pub mod flow;
#[doc(hidden)]
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

pub use connection::{Config, Connection, Event, Transmit};
pub use endpoint::{Endpoint, EndpointConfig, Handle, Route};
pub use lastbyte_congestion::Time;
pub use network_path::NetworkPath;
pub use stage::Stage;
pub use wall_time::WallTime;
