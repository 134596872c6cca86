//! Transfers over time: what each arm sent, what came back, and what the path and the sender's control did meanwhile.
//!
//! All pictures of one [`Picture`] show the same: a column an arm, all with the same axes, and from the top down bytes,
//! queue, window, pacing rate and round-trip time. Rows that nobody has data for are left out, so an arm with nothing but
//! [`sent`](Arm::sent) and [`acked`](Arm::acked) is a picture too.
//!
//! | file | owns |
//! |---|---|
//! | `transfer/panel.rs` | the table of rows, series, colours and guide lines, for all pictures |
//! | `transfer/clean.rs` | what can be drawn of what came in, and the extent of it |
//! | `transfer/thin.rs` | as many points as a pixel can show |
//! | `transfer/figure.rs` | the picture on paper: SVG and PNG |
//! | `transfer/page.rs`, `page.js`, `page.css` | the page that zooms and hovers |
//! | `transfer/pack.rs` | the data in the page, small |

use core::fmt;

mod clean;
mod figure;
mod pack;
mod page;
mod panel;
mod thin;

use crate::{raster, svg};

/// The whole picture: one or more transfers over the same path.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Picture {
    /// What it is about, in a few words.
    pub title: String,
    /// What else one must know to get it again: network, size, seed. May be empty.
    pub subtitle: String,
    /// The transfers, in the order of their columns.
    pub arms: Vec<Arm>,
    /// What is known of the path, drawn as dashed lines.
    pub guides: Guides,
}

/// What is known of the path. Each becomes a dashed line where it belongs; what is `None` is not drawn.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Guides {
    /// Rate of the bottleneck, in bit/s: a level for the pacing rate, and from each arm's first acknowledgment on the
    /// slope that its bytes could have had.
    pub rate: Option<f64>,
    /// What the bottleneck's queue holds at most, in bytes.
    pub queue_limit: Option<f64>,
    /// Round-trip time of the empty path, in ms. With `rate`, it also gives the bandwidth-delay product, a level for the
    /// window.
    pub rtt: Option<f64>,
}

/// One transfer. Times are in milliseconds since the client's first datagram; all series may be empty.
///
/// Points are best in the order of time; others are sorted. Values between two points are those of the earlier one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Arm {
    /// What it is called, such as `rapid-start`.
    pub label: String,
    /// What came of it, such as `312 ms, 1.9 % lost`; stands below the label. May be empty.
    pub note: String,
    /// Bytes sent so far, one point a packet: when it left, and the bytes up to and with it, repeated ones counted again.
    pub sent: Vec<Point>,
    /// Bytes acknowledged so far: when the sender learned of it.
    pub acked: Vec<Point>,
    /// Bytes that the client has without a gap: when it could hand them on.
    pub arrived: Vec<Point>,
    /// Packets declared lost: when the sender did so, and the bytes sent up to and with the packet, as in
    /// [`sent`](Self::sent).
    pub lost: Vec<Point>,
    /// Bytes in the queue of the bottleneck.
    pub queue: Vec<Point>,
    /// Packets that the bottleneck dropped: when, and the bytes in its queue at that time.
    pub drops: Vec<Point>,
    /// Packets that the bottleneck marked with ECN-CE: when, and the bytes in its queue at that time.
    pub marks: Vec<Point>,
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
    /// Recovery periods: from when to when, in ms.
    pub recovery: Vec<(f64, f64)>,
    /// What happened when (ms), in a word or two, such as `first byte` or `startup ends`. Drawn as labelled lines; the
    /// time is written beside the label.
    pub events: Vec<(f64, String)>,
}

impl Arm {
    /// An arm of which nothing is known yet but its name.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }
}

/// A value at a time. A point of which either is no finite number is not drawn.
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
    /// A page that zooms and hovers: one file that loads nothing, in light and dark, with the static picture for those
    /// without JavaScript.
    #[must_use]
    pub fn html(&self) -> String {
        page::document(self)
    }

    /// A figure for papers that loads nothing: XML of some hundred kB for four arms, whatever the number of points.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::document(&figure::scene(&clean::cleaned(self)))
    }

    /// The same figure as pixels, at twice the size, on white.
    ///
    /// # Errors
    ///
    /// [`PngError::TooLarge`] if there are so many arms that it would be longer than 16 384 pixels.
    pub fn png(&self) -> Result<Vec<u8>, PngError> {
        raster::png(&figure::scene(&clean::cleaned(self))).map_err(|trouble| match trouble {
            raster::Trouble::TooLarge => PngError::TooLarge,
            raster::Trouble::Encoder => PngError::Encoder,
        })
    }
}

/// Why there is no PNG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PngError {
    /// There are so many arms that it would be longer than 16 384 pixels.
    TooLarge,
    /// The encoder failed, for want of memory.
    Encoder,
}

impl fmt::Display for PngError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => {
                "The picture has too many arms for a PNG of at most 16384 pixels; draw fewer, or write `.html`."
            }
            Self::Encoder => "The PNG could not be encoded; there may be too little memory.",
        })
    }
}

impl core::error::Error for PngError {}

#[cfg(test)]
mod tests;
