//! A web server: HTTP/3 on workers of [`lastbyte_driver`], HTTP/1.1 on hyper, HTTP/2 on h2, one handler for all.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use lastbyte_http3::Request;
//! use lastbyte_quic::connection::Config;
//! use lastbyte_server::{FullResponse, Arm, Arms, Handler, Identity, Peer, HandlerResponse, Server, Settings};
//!
//! struct Hello;
//!
//! impl Handler for Hello {
//!     fn handle(&self, request: &Request, peer: &Peer) -> HandlerResponse {
//!         let path = request.path().unwrap_or_default();
//!         FullResponse::text(200, format!("{path} over {}\n", peer.version.name())).into()
//!     }
//! }
//!
//! let arm = Arm {
//!     name: "cubic".into(),
//!     share: 1.0,
//!     config: Arc::new(Config::new("cubic".parse()?)),
//! };
//! let arms = Arms::new(vec![arm]).ok_or("no arm")?;
//! let days = lastbyte_driver::Clock::since_epoch().as_secs() / 86_400;
//! let identity = Identity::self_signed(&["localhost".into()], days.cast_signed())?;
//! let settings = Settings::new("[::]:4433".parse()?, identity, arms, Arc::new(Hello));
//! let server = Server::start(settings)?;
//! // Until it is time to stop.
//! server.shut_down(Duration::from_secs(5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`handler`], [`exchange`], [`budget`], [`representation`], [`sites`], [`routes`], [`sink`], [`access`], [`arms`] | those of [`lastbyte_origin`], the HTTP/3 server of a worker |
//! | `hop_by_hop` | the fields that apply to one connection only |
//! | [`site`] | the handler of `lastbyte serve`: a directory, and objects by size |
//! | [`proxy`] | the handler that forwards requests to an upstream server |
//! | [`server_timing`] | `Server-Timing` for the responses of another handler |
//! | [`identity`] | certificates and keys: from files, or self-signed |
//! | [`challenges`] | proofs for a certificate authority (ACME) that a name is this server's |
//! | [`log`] | log files, written by a separate thread |
//! | `metrics` | Prometheus metrics and the health check |
//! | [`tcp`] | HTTP/1.1 and 2 |
//! | `tls` | certificates and tickets of all listeners |
//! | `websocket` | the opening handshake of WebSocket over HTTP/1.1 |
//! | [`server`] | start, reload and shutdown |
//! | [`handover`] | replacement by a later process, without a lost connection |
//!
//! A body is a source that is read when there is room to send, so that a file of any size costs only a file descriptor;
//! or it arrives in pieces over a bounded channel.
//!
//! # Decisions
//!
//! - One handler serves three versions. Headers are those of `http3`; a response is immediate, delayed, or a task
//!   that writes to bounded channels ([`exchange`]). The QUIC worker, hyper and the responses over HTTP/2 poll the channels, and a waker
//!   posts into the worker's mailbox.
//! - The server opens its sockets, or a service manager passes them ([`Inherited`]). Either way there is one UDP socket
//!   per worker, in the order in which they were bound; steering depends on that order.
//! - tokio, hyper and h2 run on their own threads. No datagram passes through them. A connection over TCP stays on one
//!   thread, with a current-thread runtime (`tcp::threads`).
//! - The kernel does not report when the last byte over TCP is acknowledged, so the stream polls for it
//!   (`tcp::observed`), less often the longer it takes.
//! - A TCP socket is closed when the client has received everything or stops reading (`tcp::lingering`): closing a
//!   socket with unread data sends a reset, which discards data in flight.
//! - One thread writes all logs. Workers never wait for it: what does not fit its queue is dropped and counted.
//! - Paths are resolved by the kernel, below the directory only: `openat2` with `RESOLVE_BENEATH`.

#![forbid(unsafe_code)]

pub mod challenges;
mod date;
pub mod handover;
mod hop_by_hop;
pub mod identity;
pub mod log;
mod metrics;
pub mod proxy;
pub mod server;
pub mod server_timing;
pub mod site;
pub mod tcp;
mod tls;
mod websocket;

pub use identity::{Contents, Identity, Validity};
pub use lastbyte_origin::Sites;
pub use lastbyte_origin::{
    Arm, Arms, DelayedResponse, FullResponse, Handler, HandlerResponse, Peer, Statistics, Version,
    access, arms, budget, exchange, handler, representation, routes, sink, sites,
};
pub use log::LogWriter;
pub use metrics::RampStatus;
pub use server::{Inherited, Server, Settings, StartError, Versions};
pub use site::Site;
pub use tls::KeyLog;
pub use websocket::accept as websocket_accept;
