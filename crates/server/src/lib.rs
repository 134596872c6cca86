//! An HTTP/3 server on workers of [`lastbyte_driver`].
//!
//! | module | owns |
//! |---|---|
//! | [`handler`] | what answers a request: the trait, for handlers of anybody's |
//! | [`site`], `files`, `generated` | the handler of `lastbyte serve`: a directory, and objects by size |
//! | [`arms`] | which congestion control each connection gets, and the name of the arm |
//! | [`identity`] | certificates and keys: from files, or self-signed |
//! | [`log`] | one line a connection, written by a thread of its own |
//! | `application` | HTTP/3 on one worker |
//! | [`server`] | all of that together |
//!
//! Handlers answer at once, in the worker's thread: bodies are read when packets are filled, so a file of any size costs
//! a file descriptor.

#![forbid(unsafe_code)]

mod application;
pub mod arms;
mod files;
mod generated;
pub mod handler;
pub mod identity;
pub mod log;
pub mod server;
pub mod site;

pub use application::Statistics;
pub use arms::{Arm, Arms};
pub use handler::{Answer, Handler};
pub use identity::Identity;
pub use log::LogWriter;
pub use server::{Server, Settings, StartError};
pub use site::Site;
