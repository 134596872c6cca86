//! Web pages as dependency graphs, and the browser that loads them as a state machine.
//!
//! A [`Page`] lists the resources of a page with their hosts and sizes, and what makes a browser request each of them. A
//! [`Load`] is the state machine of the browser: it receives the arrivals with their times, and returns the next requests, until the page
//! has loaded. It has no connections: the caller decides over which protocol and connection a request goes.
//!
//! ```
//! use core::time::Duration;
//! use lastbyte_page::{Host, Kind, Load, Page, Resource, Trigger, View};
//! use lastbyte_units::Time;
//!
//! let page = Page {
//!     name: "two resources".to_owned(),
//!     hosts: vec![Host::first_party("www.example")],
//!     resources: vec![
//!         Resource::new(0, Kind::Document, 10_000),
//!         // The preload scanner finds it in the first 4000 bytes of the document.
//!         Resource::new(0, Kind::Stylesheet, 5000).triggered(Trigger::Bytes { of: 0, offset: 4000 }, Duration::ZERO),
//!     ],
//! };
//! page.check()?;
//! let mut load = Load::new(&page, View::First, Time::ZERO);
//! assert_eq!(load.next_request(), Some(0));
//! assert_eq!(load.next_request(), None);
//!
//! let at = |millis| Time::ZERO + Duration::from_millis(millis);
//! load.on_body(0, 4000, at(100));
//! assert_eq!(load.next_request(), Some(1));
//! load.on_body(0, 10_000, at(110));
//! load.on_complete(0, at(110));
//! load.on_complete(1, at(150));
//! assert_eq!(load.loaded(), Some(at(150)));
//! # Ok::<(), lastbyte_page::PageError>(())
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`page`](Page) | the description: hosts, resources, triggers |
//! | [`load`](Load) | the state machine of a browser |
//! | [`pool`](Pool) | which request goes on which connection of HTTP/1.1 |
//! | [`corpus`](read_corpus) | files of pages |
//! | [`generator`] | pages whose marginals follow published statistics |
//! | [`har`] | pages from HAR files |
//! | [`content`] | bodies from which a real browser reproduces the page |
//!
//! # Decisions
//!
//! - A resource has one trigger. A browser's real graph has several reasons for a request; the one that came last in a recorded
//!   load is kept, because it is the one that delayed the request.
//! - The main thread is one queue: parsing and scripts run one after the other, in the order in which they became ready.
//!   Without it, `onload` would depend on the network alone.
//! - A script does not wait for style sheets before it, and the parser does not wait for a script: where this matters, the
//!   recorded trigger or delay of what follows contains it.

#![forbid(unsafe_code)]

pub mod content;
mod corpus;
mod curve;
pub mod generator;
pub mod har;
mod load;
mod page;
mod pool;

pub use corpus::{CorpusError, read as read_corpus, write as write_page};
pub use generator::generate;
pub use load::{Load, Moment};
pub use page::{Host, Kind, Page, PageError, Party, Priority, Resource, Trigger, View};
pub use pool::{InFlight, Pool, Use, is_low_priority};
