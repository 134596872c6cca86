//! Transfers over time: bytes sent and acknowledged, the queue of the path, and the sender's congestion control.
//!
//! Page and SVG of a [`Picture`] show the same: a column per arm, all with the same axes, and from top to bottom bytes,
//! queue, rates at the bottleneck, window, pacing rate and round-trip time. Rows without data are left out, so an arm needs no more than
//! [`sent`](Arm::sent) and [`acked`](Arm::acked).
//!
//! | file | owns |
//! |---|---|
//! | `transfer/panel.rs` | the table of rows, series, colours and guide lines |
//! | `transfer/clean.rs` | removal of points that cannot be drawn, and the extent of the rest |
//! | `transfer/thin.rs` | thinning to what pixels can show |
//! | `transfer/figure.rs` | the static picture: SVG |
//! | `transfer/print.rs` | the figure for print |
//! | `transfer/page.rs`, `page.js`, `page.css` | the interactive page |
//! | `transfer/play.rs`, `play.js` | playing the transfer on the page: where packets are at each moment |
//! | `transfer/named.rs` | the names of events |
//! | `transfer/parts.rs` | where the time went, as a sentence |
//! | `transfer/flow.rs` | the limits of flow control |
//! | `transfer/bounded.rs` | series of bounded length |
//! | `transfer/pack.rs` | the compact form of the data in the page |

pub(crate) mod bounded;
mod clean;
mod figure;
pub mod flow;
pub mod named;
mod pack;
mod page;
mod panel;
pub mod parts;
pub mod play;
mod print;
mod thin;

use crate::{figure::Figure, svg};

/// A picture of one or more transfers over the same path.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Picture {
    /// The title, a few words.
    pub title: String,
    /// The conditions: network, size, seed. May be empty.
    pub subtitle: String,
    /// The moment from which times count, such as `the first event`; empty for the client's first datagram.
    pub origin: String,
    /// The transfers, in the order of their columns.
    pub arms: Vec<Arm>,
    /// Properties of the path, drawn as dashed lines.
    pub guides: Guides,
}

/// Properties of the path. Each is drawn as a dashed line unless it is `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Guides {
    /// Rate of the bottleneck, in bit/s: a level for the pacing rate, and a slope for the bytes, from each arm's first
    /// acknowledgment.
    pub rate: Option<f64>,
    /// Capacity of the queue of the bottleneck, in bytes.
    pub queue_limit: Option<f64>,
    /// Round-trip time of the empty path, in ms. With `rate`, it also gives the bandwidth-delay product, a level for the
    /// window.
    pub rtt: Option<f64>,
}

/// One transfer. Times are in milliseconds since the client's first datagram; all series may be empty.
///
/// Points should be in the order of time; others are sorted. A value holds until the next point.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Arm {
    /// Its name, such as `rapid-start`.
    pub label: String,
    /// The result, such as `312 ms, 1.9 % lost`, shown below the label. May be empty.
    pub note: String,
    /// Where its time went, as a sentence without a full stop. May be empty.
    pub summary: String,
    /// When the transfer was complete, in ms, if others go on after it: lines of what is its own end then.
    pub ended: Option<f64>,
    /// Bytes sent, a point per packet: the time it was sent, and all bytes up to and including it. Retransmissions count again.
    pub sent: Vec<Point>,
    /// Bytes acknowledged, at the time the sender received the acknowledgment.
    pub acked: Vec<Point>,
    /// Bytes received in order, at the time the client could deliver them.
    pub arrived: Vec<Point>,
    /// Packets declared lost: the time of the declaration, and the bytes up to and including the packet, as in
    /// [`sent`](Self::sent).
    pub lost: Vec<Point>,
    /// Flow control of the connection: the bytes, as in [`sent`](Self::sent) or [`arrived`](Self::arrived), at which its limit is
    /// reached.
    pub connection_limit: Vec<Point>,
    /// The same of the largest stream.
    pub stream_limit: Vec<Point>,
    /// Bytes in the queue of the bottleneck.
    pub queue: Vec<Point>,
    /// Packets that the bottleneck dropped: the time, and the bytes in its queue then.
    pub drops: Vec<Point>,
    /// Packets that the bottleneck marked ECN-CE: the time, and the bytes in its queue then.
    pub marks: Vec<Point>,
    /// Rate at which the bottleneck transmitted the packets of this transfer, in bit/s.
    pub rate: Vec<Point>,
    /// The same of all other traffic.
    pub others: Vec<Point>,
    /// Congestion window, in bytes.
    pub window: Vec<Point>,
    /// Bytes in flight.
    pub in_flight: Vec<Point>,
    /// Pacing rate, in bit/s.
    pub pacing: Vec<Point>,
    /// Samples of the round-trip time, in ms.
    pub rtt: Vec<Point>,
    /// Smoothed round-trip time, in ms.
    pub rtt_smoothed: Vec<Point>,
    /// One-way delays of packets from the server to the client, at the time of sending, in ms.
    pub delay_down: Vec<Point>,
    /// The same from the client to the server.
    pub delay_up: Vec<Point>,
    /// Bytes acknowledged in a simulation of the same transfer.
    pub twin_acked: Vec<Point>,
    /// The congestion window in it, in bytes.
    pub twin_window: Vec<Point>,
    /// The smoothed round-trip time in it, in ms.
    pub twin_rtt: Vec<Point>,
    /// Recovery periods: start and end, in ms.
    pub recovery: Vec<(f64, f64)>,
    /// Periods in which flow control blocked the sender: start and end, in ms.
    pub blocked: Vec<(f64, f64)>,
    /// Events: the time in ms and a name of a word or two, such as `first byte` or `startup ends`. Drawn as lines with name and
    /// time, so a name with a number ends with a preposition: `idle for 66 ms from`.
    pub events: Vec<(f64, String)>,
    /// The life of each packet in the order of sending, if it is known: the page then shows where packets are.
    pub packets: Vec<play::Packet>,
    /// What the sender is doing from these times on, in ms, such as `startup` or `idle`. May be empty.
    pub phases: Vec<(f64, String)>,
}

impl Arm {
    /// Where the line of a series ends that holds its last value: what is of the path goes on.
    fn line_end(&self, key: &str, end: f64) -> f64 {
        match self.ended {
            Some(ended) if !["queue", "others"].contains(&key) => ended.min(end),
            _ => end,
        }
    }

    /// An arm with a name and without data.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }
}

/// A value at a time. A point with a value or time that is not finite is not drawn.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Point {
    /// Milliseconds since the client's first datagram.
    pub ms: f64,
    /// The value, in the unit of the series.
    pub value: f64,
}

impl Point {
    /// `value` at `ms`.
    #[must_use]
    pub const fn new(ms: f64, value: f64) -> Self {
        Self { ms, value }
    }
}

impl Picture {
    /// Where the time went: a sentence for each arm that has one.
    fn summaries(&self) -> Vec<String> {
        let with_name = self.arms.len() > 1;
        let arms = self.arms.iter().filter(|arm| !arm.summary.is_empty());
        arms.map(|arm| {
            if with_name {
                format!("{}: {}.", arm.label, arm.summary)
            } else {
                format!("{}.", arm.summary)
            }
        })
        .collect()
    }

    /// The caption of the time axis.
    fn since(&self) -> String {
        match self.origin.as_str() {
            "" => "since the client’s first datagram".to_owned(),
            origin => format!("since {origin}"),
        }
    }

    /// An interactive page: one self-contained file, light and dark, with the static picture if there is no JavaScript.
    pub fn html(&self) -> String {
        page::document(self)
    }

    /// A self-contained figure. Four arms take a few hundred kB, whatever the number of points.
    pub fn svg(&self) -> String {
        svg::document(&figure::scene(&clean::cleaned(self)))
    }

    /// The figure for print: a panel per row, with a line per arm.
    pub fn figure(&self) -> Figure {
        print::figure(&clean::cleaned(self))
    }
}

#[cfg(test)]
mod tests;
