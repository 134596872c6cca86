//! Load generator for HTTP/1.1, 2 and 3: closed and open loop, with latencies that are corrected for coordinated omission.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use lastbyte_load::{Amount, Arrivals, Control, Request, Settings, Version, report, run};
//! use lastbyte_quic::connection::Config;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = Settings {
//!     client: lastbyte_client::Settings::new(Config::new("cubic".parse()?)),
//!     version: Version::Http3,
//!     requests: vec![Request { url: "https://localhost:4433/".parse()?, weight: 1 }],
//!     fields: lastbyte_http3::Fields::new(),
//!     body: None,
//!     amount: Amount::Requests(1000),
//!     arrivals: Arrivals::Poisson { rate: 100.0 },
//!     connections: 10,
//!     connect_rate: None,
//!     streams: 10,
//!     threads: 1,
//!     timeout: Duration::from_secs(30),
//!     mix: None,
//!     migrate: None,
//!     migrate_to: Vec::new(),
//!     seed: 1,
//!     network: None,
//!     connection_log: None,
//! };
//! let control = Arc::new(Control::new(settings.threads, Arc::default()));
//! let measurement = run(&settings, &control)?;
//! println!("{}", report::text(&settings, &measurement));
//! # Ok(())
//! # }
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`dispatcher`] | the schedule: which request is due when, on which connection |
//! | `buckets` | logarithmic buckets of durations |
//! | [`histogram`] | durations in constant memory; percentiles, and when there are enough values for one |
//! | [`mix`] | how requests get their connections: handshakes and weights |
//! | [`recorder`] | counts and measurements of a thread |
//! | [`timeline`] | latencies and failures over the time of a run |
//! | [`report`] | the final table, and JSON |
//! | [`settings`], [`run`](run()) | settings, progress and interruption; threads and their results |
//! | `target`, `sessions` | the server's address; TLS sessions |
//! | [`Error`] | why a run could not start |
//! | `thread_state` | what the engines share: start, end, CPU time |
//! | `http3` | the engine for HTTP/3: an application of `lastbyte-driver` |
//! | `connection_log` | a line per connection, from the engine of HTTP/3 |
//! | `network` | connections over model paths, for the engine of HTTP/3 |
//! | `tcp` | the engine for HTTP/1.1 and 2: connections of hyper and of the `h2` crate on a runtime of each thread |
//!
//! The first five are pure: time and randomness are arguments.
//!
//! # Bounds
//!
//! A thread keeps [`Settings::streams`] requests per connection, four histograms of 270 kB each, a timeline of 330 kB, and at
//! most 33 different errors. It keeps two TLS sessions per connection, at most 10,000, and only if sessions are resumed. An open
//! loop that falls behind keeps no list of late requests: their times are computed when they are sent. Each
//! request ends within [`Settings::timeout`], each attempt to connect within the client's time limit, and a run of a fixed
//! number of requests gives up a connection after four failures. Over model paths, each connection has a socket, and the
//! links of a thread hold at most 1 GiB of datagrams (at least 1 MiB per direction of a path); more are dropped and counted.
//!
//! # Decisions
//!
//! - The connections of a thread share one UDP socket, one endpoint and one timer wheel. A server that spreads connections
//!   over its sockets by address sees one client per thread. Over model paths, each connection has a socket.
//! - Model paths have an event loop of their own: `lastbyte-driver`'s reads one socket, and its datagrams go to the endpoint
//!   as they arrive.
//! - An open loop starts when its connections are established, so that handshakes do not count as waiting time.
//! - TLS sessions are kept by rustls, not as bytes: to restore one from bytes costs a handshake in memory, which would count
//!   as CPU time of the generator.
//! - Connections that resume sessions use QUIC version 1 only, since a session belongs to the version it was issued in
//!   (RFC 9369 §5).
//! - To migrate, the connections of a thread move to a new socket together. The thread keeps the socket before as well, since
//!   a connection uses it until the server has validated the new path, or permanently if that fails. A third socket replaces
//!   the older one, so a thread has at most two.
//! - With a [`Mix`], a client has one request at a time. Otherwise a new connection would have to wait for the requests on
//!   the one before.
//! - The histogram is our own: a hundred lines, where `hdrhistogram` brings four crates.

#![forbid(unsafe_code)]

mod buckets;
mod connection_log;
pub mod dispatcher;
mod error;
pub mod histogram;
mod http3;
pub mod mix;
#[cfg(target_os = "linux")]
mod network;
pub mod recorder;
pub mod report;
mod run;
mod sessions;
pub mod settings;
mod target;
mod tcp;
mod thread_state;
pub mod timeline;

pub use connection_log::LineSink;
pub use dispatcher::{Amount, Arrivals};
pub use error::Error;
pub use mix::{Handshake, Mix};
pub use run::{Measurement, run};
pub use settings::{Control, Network, Progress, Request, Settings, Version};
pub use thread_state::ThreadUse;
