//! Cross traffic: other flows on the path, as data and as text.

use core::time::Duration;

use lastbyte_congestion::{Registry, Spec};
use lastbyte_link as link;
use lastbyte_units as units;

use crate::listener::Direction;

#[cfg(test)]
mod tests;

/// Cross traffic on a path.
#[derive(Clone, Debug)]
pub struct CrossTraffic {
    /// When it starts.
    pub start: Duration,
    /// Its kind.
    pub kind: CrossKind,
    /// The link that its data takes. Default: down.
    pub direction: Direction,
    /// Round-trip time without queues. `None`: that of the path, which is also the minimum.
    pub rtt: Option<Duration>,
}

/// A kind of cross traffic.
#[derive(Clone, Debug)]
pub enum CrossKind {
    /// An endless transfer with this congestion control: only loss detection, congestion control, flow
    /// control and acknowledgments are simulated.
    Bulk(Spec),
    /// An endless download over a complete QUIC connection, which takes several times as long to simulate.
    Stack(Spec),
    /// Consecutive transfers of one size, each over a new connection with this congestion control.
    Pages(Spec, Pages),
    /// Packets of 1200 bytes at a constant rate, without congestion control.
    Constant(link::Rate),
}

/// Size and interval of page transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    /// The size of a page, in bytes.
    pub bytes: u64,
    /// From the start of a page to the start of the next, which also waits for the end of the previous one.
    pub every: Duration,
}

impl From<CrossKind> for CrossTraffic {
    /// Downstream, from the start, with the path's round-trip time.
    fn from(kind: CrossKind) -> Self {
        Self {
            start: Duration::ZERO,
            kind,
            direction: Direction::Down,
            rtt: None,
        }
    }
}

impl CrossKind {
    /// Parses `SPEC`, `stack:SPEC`, `pages:SPEC SIZE INTERVAL` or `cbr:RATE`.
    ///
    /// # Errors
    ///
    /// Returns the text of the error for the first part that is invalid.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let kind = kind(&mut words, registry)?;
        nothing_left(words.next())?;
        Ok(kind)
    }
}

impl CrossTraffic {
    /// Parses cross traffic as options and network files write it: a kind, as [`CrossKind::parse`] reads it, and optionally
    /// `up`, `rtt SPAN` and `start SPAN`.
    ///
    /// # Errors
    ///
    /// Returns the text of the error for the first part that is invalid.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let mut traffic = Self::from(kind(&mut words, registry)?);
        while let Some(word) = words.next() {
            match word {
                "up" => traffic.direction = Direction::Up,
                "rtt" => traffic.rtt = Some(span(words.next(), "rtt")?),
                "start" => traffic.start = span(words.next(), "start")?,
                other => nothing_left(Some(other))?,
            }
        }
        if traffic.direction == Direction::Up && matches!(traffic.kind, CrossKind::Stack(_)) {
            return Err("`stack` and `up` exclude each other (expected one of them)".to_owned());
        }
        Ok(traffic)
    }
}

fn kind<'a>(
    words: &mut impl Iterator<Item = &'a str>,
    registry: &Registry,
) -> Result<CrossKind, String> {
    let word = words.next().unwrap_or_default();
    let spec = |text| registry.parse(text).map_err(|error| error.to_string());
    if let Some(rate) = word.strip_prefix("cbr:") {
        let rate = units::rate(rate).map_err(|error| error.with_value())?;
        return Ok(CrossKind::Constant(rate));
    }
    if let Some(text) = word.strip_prefix("stack:") {
        return spec(text).map(CrossKind::Stack);
    }
    if let Some(text) = word.strip_prefix("pages:") {
        let size = words
            .next()
            .ok_or("`pages` without a size (expected `pages:SPEC SIZE INTERVAL`)")?;
        let bytes = units::bytes(size).map_err(|error| error.with_value())?;
        let every = span(words.next(), "pages")?;
        if every.is_zero() {
            return Err("an interval of 0 (expected a span above 0)".to_owned());
        }
        return Ok(CrossKind::Pages(spec(text)?, Pages { bytes, every }));
    }
    spec(word).map(CrossKind::Bulk)
}

fn span(word: Option<&str>, key: &str) -> Result<Duration, String> {
    let word = word.ok_or_else(|| format!("`{key}` without a span (expected such as `40ms`)"))?;
    units::span(word).map_err(|error| error.with_value())
}

fn nothing_left(word: Option<&str>) -> Result<(), String> {
    match word {
        Some(word) => Err(format!(
            "`{word}` (expected `up`, `rtt SPAN` or `start SPAN` after the kind)"
        )),
        None => Ok(()),
    }
}
