//! The event loop: QUIC [`Endpoint`](lastbyte_quic::endpoint::Endpoint)s on UDP sockets, one worker per thread.
//!
//! | module | owns |
//! |---|---|
//! | [`worker`] | one turn of the loop around an [`Engine`]: wait, receive, commands, send |
//! | [`pool`] | the worker pool of a server: threads, queues and command channels |
//! | [`forward`] | forwarding of datagrams that arrived at another worker |
//! | [`relay`] | forwarding of datagrams to an earlier process that finishes its connections |
//! | [`aead`] | the choice of the library that protects packets, by measurement |
//! | `half_open` | TCP streams that stay readable after the peer has stopped reading |
//! | [`clock`] | the clock that drives the sans-IO state machines |
//!
//! # Example
//!
//! An [`Application`] runs on a [`Worker`] until a command from another thread stops it:
//!
//! ```
//! use lastbyte_driver::{Application, Clock, Next, Status, Worker};
//! use lastbyte_quic::{
//!     Time,
//!     connection::Connection,
//!     endpoint::{Closed, Endpoint, EndpointConfig, Handle},
//! };
//! use lastbyte_udp::{Options, Socket};
//!
//! #[derive(Default)]
//! struct App {
//!     status: Status,
//! }
//!
//! impl Application for App {
//!     type Command = ();
//!     type Data = ();
//!
//!     fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}
//!
//!     fn on_ready(&mut self, _: Time, _: Handle, _: &mut Connection, (): &mut ()) {}
//!
//!     fn on_closed(&mut self, _: Time, _: Closed) {}
//!
//!     fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {
//!         self.status = Status::Stopped;
//!     }
//!
//!     // Open connections here: `endpoint.connect(…)`.
//!     fn on_turn(&mut self, _: Time, _endpoint: &mut Endpoint) -> Next {
//!         Next {
//!             deadline: None,
//!             status: self.status,
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let socket = Socket::bind("127.0.0.1:0".parse()?, &Options::default())?;
//! let endpoint = Endpoint::new(EndpointConfig::client(), [7; 32])?; // use random bytes instead of 7
//! let mut worker = Worker::new(socket, endpoint, App::default(), Clock::new())?;
//! let remote = worker.remote();
//! std::thread::spawn(move || remote.send(()));
//! worker.run()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is shared between workers
//!
//! Nothing on the path of a datagram: each worker has its own socket, endpoint, connections, timers and buffers. The kernel
//! delivers each datagram to the worker of its connection ([`lastbyte_udp::group`]). Where it cannot, the receiving worker
//! forwards the datagram through a bounded queue and counts it.
//!
//! # Bounds
//!
//! [`worker::Limits`] bounds what one turn receives and sends, so that neither direction, and no single connection, delays
//! the others. When the kernel's send buffer is full, the rest stays in the worker's one send buffer, and no more datagrams
//! are built until it has been sent.
//!
//! # Decisions
//!
//! - A short-header packet reaches its worker by a byte of the connection ID; a long-header packet by the kernel's hash
//!   of the addresses, because its ID may be chosen by the client. Without BPF steering, datagrams are forwarded between
//!   workers over bounded queues.
//! - When the kernel's send buffer is full, no further packets are sealed, so that pacing and acknowledgments are
//!   current.
//! - Worker threads request a timer slack of 1 ns instead of 50 µs.

#![forbid(unsafe_code)]

pub mod aead;
pub mod clock;
mod command;
pub mod forward;
mod half_open;
mod next_socket;
pub mod pool;
pub mod relay;
mod statistics;
pub mod worker;

pub use aead::AeadChoice;
pub use clock::Clock;
pub use command::Remote;
pub use forward::SteeringRule;
pub use half_open::{HalfOpen, WriteError};
pub use lastbyte_engine::{Application, Datagram, Engine, Next, Status};
pub use next_socket::NextSocket;
pub use pool::WorkerPool;
pub use relay::Inlet;
pub use statistics::Statistics;
pub use worker::Worker;
