//! An HTTP client: many fetches over few connections, by HTTP/3, 2 and 1.1.
//!
//! [`run`] does a list of fetches and returns what came of each. Bodies go to a [`Listener`] slice by slice, over HTTP/3 out
//! of the packets that they came in. What one run learns of servers is kept in a [`Memory`] for the next: sessions for
//! resumption and 0-RTT, address tokens, settings, alternative services.
//!
//! | module | owns |
//! |---|---|
//! | [`Url`], [`Fetch`], [`Upload`], [`Outcome`], [`Failure`] | what is to be fetched, and what came of it |
//! | [`Listener`], [`Head`] | who hears of it |
//! | [`Settings`], [`Memory`], [`SessionFile`] | what can be set, what is remembered, and how it outlives the process |
//! | [`Trust`], [`Identity`] | whose certificates are believed, and our own |
//! | [`AltSvc`] | where else origins are served |
//! | [`CookieJar`] | cookies |
//! | [`Proxies`] | who is asked in place of servers |
//! | `resolve`, `dns` | names to addresses, and to how they are served (HTTPS records) |
//! | `job`, `follow`, `decode`, `retry` | one fetch under way: redirects, resumption, decompression, new attempts |
//! | [`Client`] | the application on a worker: who is fetched when, over which connection |
//! | `link`, `tcp` | one connection, and its requests: over QUIC, and over TCP |
//! | [`best_idle`] | which of several idle connections a request is sent on |
//! | `candidates`, `happy_eyeballs`, `reachability` | addresses to try, in which order, and which of them refuse |
//!
//! # How it is run
//!
//! [`run`] returns when all is done, and calls the listener from the thread that it was called in. A program of tokio's gives
//! it to `spawn_blocking` and takes the bodies by a channel: `examples/tokio.rs`. Connections over QUIC live in that thread,
//! those over TCP in one more, which is there only if one is needed.
//!
//! # What is bounded
//!
//! As many fetches are under way as [`Settings::parallel`] says; the others wait. A body that the listener is slow to take
//! is held back by flow control, over TCP when a megabyte of it is there. A request is sent again at most
//! [`Settings::retries`] times, redirects are followed as often as [`Follow::max`] says, and what is decompressed may not grow
//! beyond all measure.

#![forbid(unsafe_code)]

mod alt_svc;
mod base64;
mod calendar;
mod candidates;
mod client;
mod connection_reuse;
mod cookies;
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
mod proxy;
mod reachability;
mod resolve;
mod retry;
mod run;
mod sessions;
mod settings;
mod tcp;
mod trust;
mod upload;
mod url;

pub use alt_svc::{AltSvc, Alternative};
pub use base64::base64;
pub use client::Client;
pub use connection_reuse::{IdleConnection, best_idle};
pub use cookies::CookieJar;
pub use dns::Service;
pub use failure::Failure;
pub use family::Family;
pub use fetch::{Fetch, Follow, Outcome, Stream, Timing, Upload};
pub use head::{Head, Version};
pub use listener::{Handshake, Listener, Transport};
pub use memory::Memory;
pub use proxy::{Exceptions, Proxies, Proxy};
pub use resolve::{Answer, ConnectTo, Lookup, Override, Services};
pub use retry::Retry;
pub use run::{Report, RunError, run};
pub use sessions::SessionFile;
pub use settings::{Settings, Versions};
pub use trust::{Identity, Trust};
pub use url::{Origin, Scheme, Url, UrlError};
