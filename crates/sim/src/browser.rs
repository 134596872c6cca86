//! Page loads: a browser of `lastbyte_page` over connections that share a path.
//!
//! [`load_page`] simulates a [`PageLoad`] and returns a [`PageOutcome`]. The browser opens connections to the hosts of the
//! page as it needs them, all over one access link in each direction. HTTP/3 connections are the real endpoints of
//! `lastbyte_quic` and `lastbyte_http3`; HTTP/1.1 and 2 run over the model of TCP in [`crate::tcp`]. The same input gives the
//! same outcome to the nanosecond.
//!
//! | file | owns |
//! |---|---|
//! | `browser/world.rs` | the event loop: links, connections, name resolution |
//! | `browser/http3.rs` | both ends of an HTTP/3 connection |
//! | `browser/tcp.rs` | both ends of an HTTP/1.1 or 2 connection |
//!
//! docs/compare.md lists what is modelled, with sources.

use core::time::Duration;
use std::sync::Arc;

use lastbyte_congestion::Spec;
use lastbyte_page::{Moment, Page, View};
pub use lastbyte_scenario::http::{HttpVersion, TlsVersion, Upgrade};
use lastbyte_scenario::{Path, Transport};

mod http3;
mod tcp;
#[cfg(test)]
mod tests;
mod world;

pub use world::load_page;

/// A page load: the page, its path and its settings.
#[derive(Clone, Debug)]
pub struct PageLoad {
    /// The page. It must pass [`Page::check`].
    pub page: Arc<Page>,
    /// First view, or repeat view with a warm cache.
    pub view: View,
    /// The highest version that the browser uses. Hosts without HTTP/3 use HTTP/2 in place of it.
    pub version: HttpVersion,
    /// The hosts that have this version; others have HTTP/1.1.
    pub upgrade: Upgrade,
    /// Whether requests of low priority over HTTP/2 and 3 wait before the first render, as over HTTP/1.1: two at a time are in flight.
    pub holds_back: bool,
    /// Congestion control of both ends. `None` for Linux's CUBIC over TCP, and for `cubic` over QUIC.
    pub congestion: Option<Spec>,
    /// The access link, which all connections share, and the round-trip time to the first host.
    pub path: Path,
    /// Settings of QUIC endpoints. The handshake and the size of the certificate chain apply to TCP as well.
    pub transport: Transport,
    /// TLS of connections over TCP.
    pub tls: TlsVersion,
    /// Whether servers answer the request of the document with 103 (Early Hints) at once, if the page has hints.
    pub early_hints: bool,
    /// Time to resolve the name of a host, once for each host.
    pub dns: Duration,
    /// Random seed.
    pub seed: u64,
    /// When the simulation ends, whether or not the page has loaded.
    pub time_limit: Duration,
}

impl PageLoad {
    /// The first view of a page, with defaults.
    #[must_use]
    pub fn new(page: Arc<Page>, version: HttpVersion, path: Path) -> Self {
        Self {
            page,
            view: View::First,
            version,
            upgrade: Upgrade::All,
            holds_back: false,
            congestion: None,
            path,
            transport: Transport::default(),
            tls: TlsVersion::V13,
            early_hints: false,
            dns: Duration::ZERO,
            seed: 1,
            time_limit: Duration::from_secs(600),
        }
    }
}

/// The result of a page load.
#[derive(Clone, Debug, PartialEq)]
pub struct PageOutcome {
    /// From the start until the first render; `None` if it took longer than the limit.
    pub first_render: Option<Duration>,
    /// From the start until all resources were loaded (`onload`); `None` if it took longer than the limit.
    pub loaded: Option<Duration>,
    /// The mean time at which a visible byte was shown, like the Speed Index with bytes in place of pixels.
    pub byte_index: Option<Duration>,
    /// The times of each resource, in the order of the page.
    pub resources: Vec<Moment>,
    /// Connections opened.
    pub connections: u32,
    /// Requests whose connection failed.
    pub failed: u32,
    /// Packets sent in both directions.
    pub packets: u64,
    /// Bytes that the link to the client carried, with headers of all layers.
    pub bytes_down: u64,
    /// Bytes that the link from the client carried.
    pub bytes_up: u64,
    /// Packets that the link to the client dropped.
    pub drops_down: u64,
}

/// A part of a response that reached the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// A 103 (Early Hints) response to the request of the document (RFC 8297).
    Hints,
    /// The header of a response.
    Head(u16),
    /// The number of bytes of the body that have arrived in order.
    Body(u16, u64),
    /// The end of a response.
    End(u16),
    /// The connection of the response failed.
    Failed(u16),
}
