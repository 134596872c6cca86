//! HTTP client for HTTP/3, HTTP/2 and HTTP/1.1: many fetches over few connections.
//!
//! [`run`] performs a list of [`Fetch`]es and returns the [`Outcome`] of each. Response bodies are passed to a [`Listener`]
//! slice by slice; over HTTP/3 these slices point into the received packets. Knowledge about servers is kept in a
//! [`Memory`] for the next run: TLS sessions for resumption and 0-RTT, address tokens, HTTP/3 settings, alternative
//! services.
//!
//! ```no_run
//! use std::io::{self, Write};
//!
//! use lastbyte_client::{Fetch, Listener, Memory, Settings, run};
//! use lastbyte_driver::Clock;
//! use lastbyte_quic::connection::Config;
//!
//! struct Stdout;
//!
//! impl Listener for Stdout {
//!     fn on_body(&mut self, _fetch: usize, bytes: &[u8]) -> io::Result<()> {
//!         io::stdout().write_all(bytes)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings::new(Config::new("cubic".parse()?));
//! let fetches = vec![Fetch::get("https://example.com/".parse()?)];
//! let report = run(&settings, &Memory::default(), Clock::new(), fetches, &mut Stdout)?;
//! for outcome in report.outcomes {
//!     println!("{:?}: {} bytes", outcome.status, outcome.received);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | responsibility |
//! |---|---|
//! | [`Url`], [`Fetch`], [`Upload`], [`Outcome`], [`Failure`] | a fetch and its result |
//! | [`Listener`], [`Head`] | callbacks for events and response bodies |
//! | [`Settings`], [`Memory`], [`SessionFile`] | configuration; state kept between runs, in memory or in a file |
//! | [`Trust`], [`Identity`] | verification of server certificates; the client certificate |
//! | [`Tls`], [`connect_target`], [`ReachabilityProbe`] | for programs that drive connections of their own |
//! | [`AltSvc`] | alternative services (RFC 7838) |
//! | `resolve`, `dns` | addresses and HTTPS records of hosts |
//! | `fetch_state`, `follow`, `decode` | progress of a fetch: redirects, decompression |
//! | [`Client`] | the application that runs on a worker: schedules fetches on connections |
//! | `link`, `tcp` | connections and their requests: HTTP/3 over QUIC, HTTP/1.1 and HTTP/2 over TCP |
//! | [`best_idle`] | choice between several idle connections |
//! | `network` | notification of changed addresses and routes |
//! | `candidates`, `happy_eyeballs`, `reachability` | addresses to try, their order, and detection of closed ports |
//!
//! # Threads
//!
//! [`run`] blocks until all fetches are complete, and calls the listener from the calling thread. A tokio program calls
//! it in `spawn_blocking` and receives the bodies through a channel; see `examples/async_fetch.rs`. QUIC connections run in the
//! calling thread. TCP connections run in one additional thread, which is started when the first one is needed.
//!
//! # Bounds
//!
//! At most [`Settings::parallel`] fetches are in progress; the others wait. If the listener is slow, flow control holds the
//! server back; over TCP, at most 1 MiB of each body is buffered. A request is sent again at most [`Settings::retries`]
//! times, and at most 50 redirects are followed. Decompression fails if the output is more than 64 MiB and
//! more than 200 times the size of the input.
//!
//! # Decisions
//!
//! - The first completed handshake wins a race of HTTP versions; 0-RTT requests of the other are sent again.
//! - The system resolves addresses, and a resolver of our own (`dns`) queries HTTPS records, which the system does not
//!   return. Nothing waits for them longer than 50 ms. The crate `domain` brings five crates, `hickory-resolver` about
//!   fifty.
//! - A request that the server did not process moves to another connection, a bounded number of times; other failures
//!   are not retried.
//! - A session is taken out of the session file, under a lock, before it is used, so that two runs never use it twice.
//! - While 0-RTT requests are in flight on an address, no other address is tried.
//! - When the host's network changes, connections move to a new socket (`moves`). Which source address packets have is asked
//!   of the system's routing table, so the messages of netlink are not parsed. The socket before stays open for connections
//!   that do not move.
//! - One socket serves all connections. The kernel does not report closed ports on it, so `reachability` probes silent
//!   addresses.

#![forbid(unsafe_code)]

mod alt_svc;
mod base64;
mod candidates;
mod client;
mod connection_reuse;
mod crypto;
mod decode;
mod dns;
mod failure;
mod family;
mod fetch;
mod fetch_state;
mod follow;
mod happy_eyeballs;
mod head;
mod link;
mod listener;
mod mailbox;
mod memory;
#[cfg_attr(not(target_os = "linux"), path = "network/none.rs")]
mod network;
mod quoted;
mod reachability;
mod resolve;
mod run;
mod sessions;
mod settings;
mod tcp;
mod tls;
mod trust;
mod upload;
mod url;

pub use alt_svc::{AltSvc, Alternative};
pub use base64::base64;
pub use client::Client;
pub use connection_reuse::{IdleConnection, best_idle};
pub use dns::Service;
pub use failure::Failure;
pub use family::Family;
pub use fetch::{Fetch, Outcome, Stream, Timing, Upload};
pub use head::{Head, Version};
pub use listener::{Handshake, Listener, Move, Transport};
pub use memory::Memory;
pub use reachability::ReachabilityProbe;
pub use resolve::{
    Answer, ConnectTo, Lookup, Override, Services, connect_target, resolve_blocking,
};
pub use run::{Report, RunError, run};
pub use sessions::SessionFile;
pub use settings::{Settings, Versions};
pub use tcp::{Received, is_unprocessed};
pub use tls::Tls;
pub use trust::{Identity, Trust};
pub use url::{Origin, Scheme, Url, UrlError};
