//! An HTTP/3 client: many fetches over few connections.
//!
//! [`run`] does a list of fetches and returns what came of each. Bodies go to a [`Listener`] slice by slice, out of the
//! packets that they came in. What one run learns of servers is kept in a [`Memory`] for the next: sessions for
//! resumption and 0-RTT, address tokens, settings.
//!
//! | module | owns |
//! |---|---|
//! | [`Url`], [`Fetch`], [`Outcome`] | what is to be fetched, and what came of it |
//! | [`Listener`] | who hears of it |
//! | [`Settings`], [`Memory`] | what can be set, and what is remembered |
//! | [`Trust`] | whose certificates are believed |
//! | `resolve` | names to addresses |
//! | [`Client`] | the application on a worker: who is fetched when, over which connection |
//! | `link` | one connection, and its requests |
//! | `race`, `scout` | which of several addresses a connection is made to, and at which nobody listens |
//!
//! # What is bounded
//!
//! As many fetches are under way as [`Settings::parallel`] says; the others wait. A body that the listener is slow to take
//! is held back by flow control. A request is sent again at most [`Settings::retries`] times.

#![forbid(unsafe_code)]

mod client;
mod fetch;
mod link;
mod listener;
mod race;
mod resolve;
mod run;
mod scout;
mod settings;
mod trust;
mod url;

pub use client::Client;
pub use fetch::{Failure, Fetch, Outcome, Timing, Upload};
pub use listener::{Handshake, Listener};
pub use resolve::{Family, Override};
pub use run::{Lookup, Report, RunError, run};
pub use settings::{Memory, Settings};
pub use trust::Trust;
pub use url::{Origin, Url, UrlError};
