//! Network simulation in virtual time: QUIC endpoints over modelled paths.
//!
//! [`simulate`] takes a [`Scenario`](lastbyte_scenario::Scenario) and runs the client and server of each flow over two links of
//! `lastbyte_link`: the endpoints of `lastbyte_quic`, and the HTTP/3 server of `lastbyte serve` ([`lastbyte_origin`]), each on an
//! engine. Time is virtual, in nanoseconds. Only the cryptography is
//! left out: messages of the same length, with the same round trips, stand in for TLS. All randomness comes from the
//! scenario's seed: the same scenario gives the same [`Outcome`], and the same calls of a [`Listener`], to the byte.
//!
//! ```
//! use lastbyte_scenario::{Scenario, network::PathText};
//! use lastbyte_sim::simulate;
//!
//! // 400 kB over a VDSL line.
//! let path = PathText::named("vdsl")?.path(&mut |file| Err(file.to_owned()))?;
//! let scenario = Scenario::transfer(path, "rapid-start".parse()?, 400_000);
//! let outcome = simulate(&scenario, &mut ())?;
//! let last_byte = outcome.flows[0].responses[0].last_byte.expect("it is complete");
//! assert!((150..250).contains(&last_byte.as_millis()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`browser`] | page loads |
//! | [`outcome`] | the result of each flow |
//! | [`row`] | figures of a result, one row per flow |
//! | [`listener`] | callbacks during a simulation |
//! | [`recorder`] | time series, for charts |
//! | [`neighbour`] | throughput, loss and delay of the other users of a path |
//! | [`tcp`] | a model of Linux TCP with TLS |
//!
//! # Decisions
//!
//! - Simultaneous events have a fixed order (arrivals, timers, sending, each by flow), and each part has its own
//!   generator: one seed gives one history.
//! - Cross traffic has no endpoints: a sender and a receiver with the loss detection, congestion control and acknowledgments of
//!   a connection, at a fraction of its cost. [`CrossKind::Stack`](lastbyte_scenario::CrossKind::Stack) is a whole connection.
//! - TLS is replaced by messages of the same length and round trips unless it is requested. Endpoints take no time to
//!   compute.
//! - Time to last byte counts from the client's first datagram until all bytes can be read. The server's count, from the
//!   request to the last acknowledgment, is reported separately.

#![forbid(unsafe_code)]

mod application;
mod background;
pub mod browser;
mod client;
mod error;
mod handshake;
mod http3;
pub mod listener;
mod measures;
mod moves;
pub mod neighbour;
mod node;
pub mod outcome;
pub mod recorder;
pub mod row;
mod server;
pub mod tcp;
mod timers;
mod world;

pub use browser::{PageLoad, PageOutcome, load_page};
pub use error::SimError;
pub use listener::{LinkEvent, Listener};
pub use neighbour::{NeighbourCounter, NeighbourOutcome};
pub use outcome::{FlowOutcome, Outcome, ResponseOutcome, SenderOutcome};
pub use server::ServerSettings;
pub use world::{simulate, simulate_with};

/// The server name of all handshakes.
const SERVER_NAME: &str = "server.example";
