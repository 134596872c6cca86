//! Network simulation in virtual time: QUIC endpoints over modelled paths.
//!
//! [`simulate`] takes a [`Scenario`] and runs the client and server of each flow, the endpoints of `lastbyte_quic` with the
//! HTTP/3 of `lastbyte_http3`, over two links of `lastbyte_link`. Time is virtual, in nanoseconds. Only the cryptography is
//! left out: messages of the same length, with the same round trips, stand in for TLS. All randomness comes from the
//! scenario's seed: the same scenario gives the same [`Outcome`], and the same calls of a [`Listener`], to the byte.
//!
//! ```
//! use lastbyte_sim::{Scenario, network::PathText, simulate};
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
//! | [`scenario`] | the input: paths, flows, endpoints |
//! | [`browser`] | page loads |
//! | [`client_acks`] | how browsers acknowledge |
//! | [`cross`] | cross traffic |
//! | [`outcome`] | the result of each flow |
//! | [`row`] | figures of a result, one row per flow |
//! | [`listener`] | callbacks during a simulation |
//! | [`recorder`] | time series, for charts |
//! | [`neighbour`] | other users of a path, and their throughput, loss and delay |
//! | [`lines`] | all events, one JSON object per line |
//! | [`network`] | named networks, and paths as TOML |
//! | [`tcp`] | a model of Linux TCP with TLS |
//! | [`population`] | the distribution of paths: sites, access classes, sizes |
//! | [`workload`] | number and direction of the objects that a client transfers |
//! | [`experiment`] | arms, and the assignment of connections to them |
//!
//! # Decisions
//!
//! - Simultaneous events have a fixed order (arrivals, timers, sending, each by flow), and each part has its own
//!   generator: one seed gives one history.
//! - Cross traffic has no endpoints: a sender and a receiver with the loss detection, congestion control and acknowledgments of
//!   a connection, at a fraction of its cost. [`CrossKind::Stack`] is a whole connection.
//! - TLS is replaced by messages of the same length and round trips unless it is requested. Endpoints take no time to
//!   compute.
//! - Time to last byte counts from the client's first datagram until all bytes can be read. The server's count, from the
//!   request to the last acknowledgment, is reported separately.

#![forbid(unsafe_code)]

mod background;
pub mod browser;
mod client;
pub mod client_acks;
pub mod cross;
pub mod experiment;
mod handshake;
pub mod lines;
pub mod listener;
pub mod moves;
pub mod neighbour;
pub mod network;
mod node;
pub mod outcome;
pub mod population;
mod protocol;
pub mod recorder;
pub mod row;
pub mod scenario;
mod server;
mod setting;
pub mod tcp;
mod timers;
pub mod workload;
mod world;

pub use browser::{HttpVersion, PageLoad, PageOutcome, TlsVersion, Upgrade, load_page};
pub use client_acks::ClientAcks;
pub use cross::{CrossKind, CrossTraffic, Pages};
pub use experiment::{Arm, Experiment, Plan};
pub use listener::{Direction, LinkEvent, Listener};
pub use moves::{Move, MoveKind};
pub use neighbour::{Neighbour, NeighbourCounter, NeighbourOutcome};
pub use outcome::{FlowOutcome, Outcome, ResponseOutcome, SenderOutcome};
pub use population::{CrossFact, Draw, DrawFacts, Population, Sweep};
pub use scenario::{FlowPlan, Handshake, Path, Protocol, Request, Scenario, Security, Transport};
pub use setting::SettingError;
pub use workload::Workload;
pub use world::{SimError, simulate};

/// The server name of all handshakes.
const SERVER_NAME: &str = "server.example";
