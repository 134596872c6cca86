//! Cross traffic: other flows on the path, as data and as text.

use core::{ops::RangeInclusive, time::Duration};

use lastbyte_congestion::{Registry, Spec};
use lastbyte_link as link;
use lastbyte_units as units;

use lastbyte_units::Direction;

use crate::{arrivals::Arrivals, setting::SettingError};

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
    /// Round-trip time without queues. `None`: that of the path, or of the hops that its data pass, which is also the
    /// minimum.
    pub rtt: Option<Duration>,
    /// The first and the last hop that its data pass, numbered from 0. `None`: all. Its acknowledgments take the whole
    /// other link.
    pub hops: Option<RangeInclusive<u8>>,
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
    /// Transfers that arrive at random, each over a new connection with this congestion control.
    Arrivals(Spec, Arrivals),
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
            hops: None,
        }
    }
}

impl CrossKind {
    /// Parses `SPEC`, `stack:SPEC`, `pages:SPEC SIZE INTERVAL`, `poisson:SPEC LOAD of SIZES` or `cbr:RATE`.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] for the first part that is invalid.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let mut words = text.split_whitespace();
        let kind = kind(&mut words, registry)?;
        nothing_left(words.next())?;
        Ok(kind)
    }
}

impl CrossTraffic {
    /// Parses cross traffic as options and network files write it: a kind, as [`CrossKind::parse`] reads it, and optionally
    /// `up`, `rtt SPAN`, `start SPAN`, and `hop N` or `hop N-M` with hops numbered from 1.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] for the first part that is invalid.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let mut words = text.split_whitespace();
        let mut traffic = Self::from(kind(&mut words, registry)?);
        while let Some(word) = words.next() {
            match word {
                "up" => traffic.direction = Direction::Up,
                "rtt" => traffic.rtt = Some(span(words.next(), "rtt")?),
                "start" => traffic.start = span(words.next(), "start")?,
                "hop" => traffic.hops = Some(hops(words.next())?),
                other => nothing_left(Some(other))?,
            }
        }
        if matches!(traffic.kind, CrossKind::Stack(_)) {
            if traffic.direction == Direction::Up {
                return Err(SettingError::of_value(
                    "`stack` and `up` exclude each other",
                    "one of them",
                ));
            }
            if traffic.hops.is_some() {
                return Err(SettingError::of_value(
                    "`stack` and `hop` exclude each other",
                    "one of them",
                ));
            }
        }
        Ok(traffic)
    }

    /// Checks that the link of its data has its hops.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] if the link has fewer hops.
    pub fn check(&self, link: &link::Config) -> Result<(), SettingError> {
        let count = link.hops().count();
        match &self.hops {
            Some(hops) if usize::from(*hops.end()) >= count => Err(SettingError::of_value(
                format!(
                    "cross traffic on hop {} of the {}",
                    u16::from(*hops.end()) + 1,
                    self.direction.name()
                ),
                format!("1 to {count}"),
            )),
            _ => Ok(()),
        }
    }

    /// The hops that its data pass.
    pub fn hops(&self) -> RangeInclusive<u8> {
        self.hops.clone().unwrap_or(0..=u8::MAX)
    }

    /// The propagation delay of its data on this link.
    pub fn delay(&self, link: &link::Config) -> Duration {
        let hops = self.hops();
        let on_way = (0u8..).zip(link.hops());
        let on_way = on_way.filter(|(hop, _)| hops.contains(hop));
        on_way.map(|(_, hop)| hop.delay).sum()
    }
}

fn kind<'a>(
    words: &mut impl Iterator<Item = &'a str>,
    registry: &Registry,
) -> Result<CrossKind, SettingError> {
    let word = words.next().unwrap_or_default();
    let spec = |text| registry.parse(text).map_err(SettingError::from);
    if let Some(rate) = word.strip_prefix("cbr:") {
        let rate = units::rate(rate)?;
        return Ok(CrossKind::Constant(rate));
    }
    if let Some(text) = word.strip_prefix("stack:") {
        return spec(text).map(CrossKind::Stack);
    }
    if let Some(text) = word.strip_prefix("poisson:") {
        let congestion = spec(text)?;
        return Ok(CrossKind::Arrivals(congestion, Arrivals::parse(words)?));
    }
    if let Some(text) = word.strip_prefix("pages:") {
        let size = words.next().ok_or_else(|| {
            SettingError::of_value("`pages` without a size", "`pages:SPEC SIZE INTERVAL`")
        })?;
        let bytes = units::bytes(size)?;
        let every = span(words.next(), "pages")?;
        if every.is_zero() {
            return Err(SettingError::of_value("an interval of 0", "a span above 0"));
        }
        return Ok(CrossKind::Pages(spec(text)?, Pages { bytes, every }));
    }
    spec(word).map(CrossKind::Bulk)
}

fn span(word: Option<&str>, key: &str) -> Result<Duration, SettingError> {
    let word = word.ok_or_else(|| {
        SettingError::of_value(format!("`{key}` without a span"), "such as `40ms`")
    })?;
    units::span(word).map_err(SettingError::from)
}

fn hops(word: Option<&str>) -> Result<RangeInclusive<u8>, SettingError> {
    let word = word
        .ok_or_else(|| SettingError::of_value("`hop` without a number", "such as `2` or `2-3`"))?;
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let index = |text: &str| text.parse::<u8>().ok()?.checked_sub(1);
    match (index(first), index(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err(SettingError::of_value(
            format!("hop `{word}`"),
            "a number from 1 or two in order, such as `2` or `2-3`",
        )),
    }
}

fn nothing_left(word: Option<&str>) -> Result<(), SettingError> {
    match word {
        Some(word) => Err(SettingError::of_value(
            format!("`{word}`"),
            "`up`, `rtt SPAN`, `start SPAN` or `hop N` after the kind",
        )),
        None => Ok(()),
    }
}
