//! A web server: HTTP/3 on workers of [`lastbyte_driver`], HTTP/1.1 and 2 beside it, one handler for all.
//!
//! | module | owns |
//! |---|---|
//! | [`handler`] | what answers a request: the trait, for handlers of anybody's |
//! | [`exchange`] | requests whose answers come piece by piece, from other threads |
//! | `hop_by_hop` | which fields go no further than one connection |
//! | [`budget`] | how many bytes of bodies may wait in memory |
//! | [`representation`] | conditions, ranges, content codings |
//! | [`site`] | the handler of `lastbyte serve`: a directory, and objects by size |
//! | [`access`] | one line a request |
//! | [`proxy`] | the handler that passes requests on |
//! | [`arms`] | which congestion control each connection gets, and the name of the arm |
//! | [`identity`] | certificates and keys: from files, or self-signed |
//! | [`log`] | one line a connection, written by a thread of its own |
//! | `metrics` | what is counted, for people who watch servers |
//! | `application` | HTTP/3 on one worker |
//! | [`tcp`] | HTTP/1.1 and 2 |
//! | `tls` | what clients are shown, and what they can resume with |
//! | [`server`] | all of that together |
//!
//! A body is a source that is read when there is room to send, so a file of any size costs a file descriptor; or it comes
//! in pieces over a channel with a bound.

#![forbid(unsafe_code)]

pub mod access;
mod application;
pub mod arms;
pub mod budget;
mod date;
pub mod exchange;
pub mod handler;
mod hop_by_hop;
pub mod identity;
pub mod log;
mod metrics;
pub mod proxy;
pub mod representation;
pub mod server;
pub mod site;
pub mod tcp;
mod tls;

pub use application::Statistics;
pub use arms::{Arm, Arms};
pub use handler::{Answer, Handler, Later, Peer, Reply, Version};
pub use identity::Identity;
pub use log::LogWriter;
pub use server::{Inherited, KeyLog, Server, Settings, StartError, Versions};
pub use site::Site;
