//! The HTTP/3 server of one worker without sockets, threads, files and clocks: datagrams and time in, datagrams and deadlines out.
//!
//! [`Http3Server`] is an [`Application`](lastbyte_engine::Application) of an [`Engine`](lastbyte_engine::Engine).
//! `lastbyte serve` runs it on UDP sockets, with files and upstream servers behind its handlers; simulations, tests and fuzz
//! targets run the same in virtual time.
//!
//! ```
//! use core::time::Duration;
//! use std::sync::Arc;
//!
//! use lastbyte_origin::{Arm, Arms, Shared, engine, generated::Objects};
//! use lastbyte_quic::{Time, connection::Config, crypto::plain::PlainServer, endpoint::EndpointConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Arc::new(Config::new("cubic".parse()?));
//! let arm = Arm { name: "cubic".into(), share: 1.0, config: Arc::clone(&config) };
//! let arms = Arms::new(vec![arm]).ok_or("no arm")?;
//! let wall = Arc::new(|now: Time| now.since(Time::ZERO));
//! let shared = Shared::new(Arc::new(Objects), arms, wall);
//! let crypto = Arc::new(PlainServer::new(1, vec![b"h3".to_vec()]));
//! let mut server = engine(shared, EndpointConfig::server(config, crypto), [7; 32])?;
//! server.run(Time::ZERO);
//! assert_eq!(server.finish(Time::ZERO, false).deadline, None);
//! # Ok(())
//! # }
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`application`] | the connections of a worker, their requests, counters, and graceful shutdown |
//! | [`handler`] | the [`Handler`] trait, requests' peers, and responses |
//! | [`exchange`] | responses that are produced piece by piece, by other threads or [`inline`] |
//! | [`inline`] | tasks that run where they are woken |
//! | [`budget`] | the memory for buffered bodies |
//! | [`arms`] | the arms of an experiment: a configuration for each connection |
//! | [`sites`] | names for requests and connections, by host and path, for the logs |
//! | [`routes`] | requests by host and path to several handlers; 103 Early Hints |
//! | [`representation`] | conditional requests, ranges, content codings |
//! | [`generated`] | a handler with objects by size |
//! | [`sink`] | a handler that receives uploads and discards them |
//! | [`access`] | the lines of the access log |
//! | [`log`] | the queue of log lines |
//! | [`counters`], [`histogram`] | which statistics are summed, and times to the last byte |
//! | [`times`] | times of requests by route and status class |
//! | [`date`] | the `date` of responses |
//! | [`wakers`] | wakers of tasks that wait |
//!
//! # Decisions
//!
//! - A response is complete, delayed, or a task that writes to bounded channels ([`exchange`]). A waker posts into the worker's
//!   mailbox.
//! - A connection is logged when all of its first response is acknowledged, as in H2O, or when it ends before that. Every
//!   connection is logged.
//! - Only safe requests are answered as 0-RTT; others get 425.

#![forbid(unsafe_code)]

pub mod access;
pub mod application;
pub mod arms;
pub mod budget;
pub mod counters;
pub mod date;
pub mod exchange;
pub mod generated;
pub mod handler;
pub mod histogram;
pub mod inline;
pub mod log;
pub mod representation;
pub mod routes;
pub mod sink;
pub mod sites;
pub mod times;
pub mod wakers;

pub use application::{
    Http3Server, Kept, Shared, Statistics, UPLOAD_WINDOW_MAX, WallClock, engine, kept,
    upload_window,
};
pub use arms::{Arm, Arms};
pub use handler::{DelayedResponse, FullResponse, Handler, HandlerResponse, Peer, Version};
pub use sites::Sites;
