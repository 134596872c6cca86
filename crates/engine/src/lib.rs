//! One turn of a QUIC endpoint and its application, without sockets, threads and clocks.
//!
//! An [`Engine`] owns an [`Endpoint`](lastbyte_quic::endpoint::Endpoint) and an [`Application`]: a server, a client or a load
//! generator. A shell passes datagrams, commands and the time to it, and sends what it returns. So the same application runs
//! over UDP sockets in production, over model paths, and in virtual time.
//!
//! # Usage
//!
//! A turn of a shell is, in this order:
//!
//! 1. [`Engine::receive`] for each datagram that arrived, and [`Engine::command`] for each command;
//! 2. [`Engine::run`], once;
//! 3. [`Engine::poll_transmit`] until it returns `None`, or until the socket accepts no more, or a limit of the shell;
//! 4. [`Engine::finish`], which returns when the next turn is due, and whether this was the last.
//!
//! ```
//! use lastbyte_engine::{Application, Engine, Next, Status};
//! use lastbyte_quic::{
//!     Time,
//!     connection::Connection,
//!     endpoint::{Closed, Endpoint, EndpointConfig, Handle},
//! };
//!
//! /// Ends by a command.
//! struct App {
//!     is_done: bool,
//! }
//!
//! impl Application for App {
//!     type Command = ();
//!     type Data = ();
//!
//!     fn on_accepted(&mut self, _: Time, _: Handle, _: &mut Connection) {}
//!
//!     fn on_ready(&mut self, _: Time, _: Handle, connection: &mut Connection, (): &mut ()) {
//!         while let Some(event) = connection.poll_event() {
//!             println!("{event:?}");
//!         }
//!     }
//!
//!     fn on_closed(&mut self, _: Time, _: Closed) {}
//!
//!     fn on_command(&mut self, _: Time, _: &mut Endpoint, (): ()) {
//!         self.is_done = true;
//!     }
//!
//!     // Open connections here: `endpoint.connect(…)`.
//!     fn on_turn(&mut self, _: Time, _endpoint: &mut Endpoint) -> Next {
//!         Next {
//!             deadline: None,
//!             status: if self.is_done { Status::Stopped } else { Status::Running },
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::new(EndpointConfig::client(), [7; 32])?; // use random bytes instead of 7
//! let mut engine = Engine::new(endpoint, App { is_done: false });
//! let mut buffer = [0; 65_000];
//! let now = Time::from_nanos(1_000_000_000);
//! engine.command(now, ());
//! engine.run(now);
//! while let Some(transmit) = engine.poll_transmit(now, &mut buffer) {
//!     println!("{} bytes to {}", transmit.len, transmit.path.remote);
//! }
//! assert_eq!(engine.finish(now, false).status, Status::Stopped);
//! # Ok(())
//! # }
//! ```
//!
//! # Decisions
//!
//! - What concerns sockets and processes is not asked of the application: a shell has commands of its own for it.
//! - An engine ends when nothing is left to send, and at most a second after its application: a peer that does not receive the
//!   packet that closes its connection waits for its idle timeout.

#![forbid(unsafe_code)]

mod application;
mod engine;

pub use application::{Application, Datagram, Next, Status};
pub use engine::{DRAIN_MAX, Engine};
