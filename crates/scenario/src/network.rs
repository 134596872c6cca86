//! Paths as text: named networks, TOML files and single settings.
//!
//! Defines the keys of a network file ([`PathText`], [`LinkText`]), and the named networks ([`NAMED`], the files in
//! `networks/`). All figures are text with units (see [`lastbyte_units`]). Opens no file: the caller reads the trace of a link.

use core::time::Duration;

use lastbyte_congestion::Registry;
use lastbyte_link::{
    self as link, BlackHole, Capacity, CoDel, Contention, Departure, DropTail, DualPi2, FqCoDel,
    GilbertElliott, HOPS_MAX, Jitter, Limit, Loss, Pie, Policer, Queue, Reordering, Schedule,
    Shaper, Spacing, Spread, Trace, WakeUp, Wifi,
};
use lastbyte_units::{self as units, UnitError};
use serde::Deserialize;

use crate::{
    cross::CrossTraffic,
    moves::Move,
    scenario::Path,
    setting::{self, SettingError},
};

#[cfg(test)]
mod tests;

/// The named networks, with their files.
pub const NAMED: &[(&str, &str)] = &[
    ("dsl", include_str!("../networks/dsl.toml")),
    ("vdsl", include_str!("../networks/vdsl.toml")),
    ("home-wifi", include_str!("../networks/home-wifi.toml")),
    ("public-wifi", include_str!("../networks/public-wifi.toml")),
    (
        "corporate-wifi",
        include_str!("../networks/corporate-wifi.toml"),
    ),
    ("lte", include_str!("../networks/lte.toml")),
    ("5g", include_str!("../networks/5g.toml")),
    ("leo", include_str!("../networks/leo.toml")),
    ("geo", include_str!("../networks/geo.toml")),
    ("congested", include_str!("../networks/congested.toml")),
    ("bdp20", include_str!("../networks/bdp20.toml")),
    ("bdp40", include_str!("../networks/bdp40.toml")),
];

/// The maximum overhead of a packet, in bytes: the length of the longest packet.
pub(crate) const OVERHEAD_MAX: u32 = 65_535;

/// A path, as a file or a command line describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PathText {
    /// A description for readers.
    pub description: Option<String>,
    /// The source of its figures.
    pub source: Option<String>,
    /// The round-trip time without queues: half of it is the delay of each link without its own `delay`.
    pub rtt: Option<String>,
    /// Overhead of a packet beside its UDP payload, in bytes: 28 for IPv4. Default: 0, so that rates are rates of payload.
    pub overhead: Option<u32>,
    /// How clients acknowledge: `rfc9000`, the default, `chromium`, `firefox` or `safari` ([`ClientAcks`](crate::ClientAcks)).
    pub client_acks: Option<String>,
    /// Cross traffic: `["cubic rtt 80ms", "pages:cubic 300kB 2s"]`.
    pub cross: Option<Vec<String>>,
    /// When the addresses of clients change: `["2s nat", "5s network"]`.
    pub moves: Option<Vec<String>>,
    /// The link from the server to the client.
    #[serde(default)]
    pub down: LinkText,
    /// The link from the client to the server.
    #[serde(default)]
    pub up: LinkText,
}

/// One direction of a path, as a file or a command line describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkText {
    /// The rate of the bottleneck: `55mbit`. Default: unlimited.
    pub rate: Option<String>,
    /// With `rate`: token bucket size, the bytes that pass at `peak-rate` after a pause.
    pub burst: Option<String>,
    /// With `burst`: the line rate, at which packets leave while there are tokens.
    pub peak_rate: Option<String>,
    /// With `rate`: Wi-Fi. The most packets and the longest time of a transmission: `64p 4ms`.
    pub aggregate: Option<String>,
    /// Rates with their start times, instead of `rate`: `["0s 30mbit", "5s 10mbit"]`.
    pub steps: Option<Vec<String>>,
    /// The period after which the steps repeat. Default: no repetition.
    pub period: Option<String>,
    /// A file of delivery opportunities in mahimahi's format, instead of a rate.
    pub trace: Option<String>,
    /// Capacity of the bottleneck queue: `50ms` at its rate, `64kB`, `100p` for packets, or `unlimited`, which
    /// is the default.
    pub queue: Option<String>,
    /// `drop-tail`, the default, `codel` (RFC 8289), `fq-codel` (RFC 8290), `pie` (RFC 8033), `dualpi2` (RFC 9332) or
    /// `cake` (COBALT and flow queueing).
    pub discipline: Option<String>,
    /// The queue depth above which ECN-capable packets are marked CE, written as `queue`. For disciplines other than
    /// `drop-tail`: `on` or `off`. Default: `off` for `drop-tail`, `on` for the others; `dualpi2` always marks.
    pub mark: Option<String>,
    /// When a packet leaves the bottleneck: `last-bit`, the default, or `first-bit`, as in quicly's simulator.
    pub departure: Option<String>,
    /// The propagation delay, instead of half the round-trip time.
    pub delay: Option<String>,
    /// Share of the time that others use the medium, and mean length of their use: `20% 5ms`. Packets wait meanwhile.
    pub contention: Option<String>,
    /// The pause after which the radio sleeps, and its wake-up delay: `10s 60ms`. It sleeps at the start.
    pub wake_up: Option<String>,
    /// Maximum extra delay, uniformly distributed: `5ms`; `5ms reorder` lets packets overtake.
    pub jitter: Option<String>,
    /// Random loss rate: `1%`.
    pub loss: Option<String>,
    /// Loss rate and mean length of loss bursts: `1% 3p` (Gilbert-Elliott).
    pub burst_loss: Option<String>,
    /// Numbers of the packets to lose, counted on the link from 0.
    pub lose: Option<Vec<u64>>,
    /// Probability that a packet arrives twice: `0.1%`.
    pub duplicate: Option<String>,
    /// Probability that a packet is held back, and the extra delay: `1% 5ms`.
    pub reorder: Option<String>,
    /// The largest UDP payload that passes, in bytes; larger datagrams are dropped.
    pub mtu: Option<u32>,
    /// Rate and bucket size of a policer: `10mbit 100kB`.
    pub policer: Option<String>,
    /// Interval at which gathered packets are released: `4ms`, or `random 4ms`.
    pub release: Option<String>,
    /// Further hops in series, which packets pass in this order after this one. A further hop has none of its own.
    pub hop: Option<Vec<Self>>,
}

/// The settings of one text in place of those of another.
macro_rules! overridden {
    ($base:ident by $other:ident: $($field:ident),*; $($rest:ident: $value:expr),*) => {
        Self { $($field: $other.$field.or($base.$field),)* $($rest: $value,)* }
    };
}

/// Reads the file of a trace.
pub type ReadTrace<'a> = &'a mut dyn FnMut(&str) -> Result<String, String>;

impl PathText {
    /// Reads a network file.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not TOML, or has an unknown key.
    pub fn parse(text: &str) -> Result<Self, SettingError> {
        setting::read(text)
    }

    /// The network of this name.
    ///
    /// # Errors
    ///
    /// Returns an error, with the known names, if there is no network of this name.
    pub fn named(name: &str) -> Result<Self, SettingError> {
        let found = NAMED.iter().find(|(known, _)| *known == name);
        let Some((_, text)) = found else {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            return Err(SettingError::of_value(
                format!("unknown network `{name}`"),
                format!("{}, or a file that ends in .toml", names.join(", ")),
            ));
        };
        Self::parse(text)
    }

    /// Returns `self` with the settings of `other` in place of its own.
    #[must_use]
    pub fn overridden_by(self, other: Self) -> Self {
        let (down, up) = (
            self.down.overridden_by(other.down),
            self.up.overridden_by(other.up),
        );
        overridden!(self by other: description, source, rtt, overhead, client_acks, cross, moves; down: down, up: up)
    }

    /// The path.
    ///
    /// # Errors
    ///
    /// Returns the first invalid setting.
    pub fn path(&self, read_trace: ReadTrace<'_>) -> Result<Path, SettingError> {
        let rtt = optional(self.rtt.as_deref(), "rtt", span_of)?;
        let overhead = self.overhead.unwrap_or(0);
        if overhead > OVERHEAD_MAX {
            return Err(SettingError::new(
                "overhead",
                overhead,
                format!("at most {OVERHEAD_MAX} bytes"),
            ));
        }
        let path = Path {
            down: self.down.link("down", rtt, overhead, read_trace)?,
            up: self.up.link("up", rtt, overhead, read_trace)?,
            overhead,
            client_acks: optional(self.client_acks.as_deref(), "client-acks", |key, name| {
                name.parse().map_err(|error: SettingError| error.of(key))
            })?,
            cross: self.cross()?,
            moves: Move::parse_all(self.moves.as_deref().unwrap_or_default())
                .map_err(|error| error.of("moves"))?,
        };
        for cross in &path.cross {
            let checked = cross.check(path.link(cross.direction));
            checked.map_err(|error| error.of("cross"))?;
        }
        Ok(path)
    }

    fn cross(&self) -> Result<Vec<CrossTraffic>, SettingError> {
        let texts = self.cross.as_deref().unwrap_or_default();
        if texts.len() > CROSS_MAX {
            return Err(SettingError::new(
                "cross",
                format!("{} flows", texts.len()),
                format!("at most {CROSS_MAX}"),
            ));
        }
        let registry = Registry::builtin();
        texts
            .iter()
            .map(|text| {
                CrossTraffic::parse(text, &registry)
                    .map_err(|error| error.in_text(text).of("cross"))
            })
            .collect()
    }
}

/// The maximum number of cross traffic flows of a path.
const CROSS_MAX: usize = 1000;

fn span_of(key: &str, text: &str) -> Result<Duration, SettingError> {
    units::span(text).map_err(|error| misread(key, &error))
}

/// The error of an invalid figure.
fn misread(key: &str, error: &UnitError) -> SettingError {
    SettingError::from(error.clone()).of(key)
}

impl LinkText {
    fn overridden_by(self, other: Self) -> Self {
        // A rate of one kind replaces a rate of any other kind.
        let has_rate = other.rate.is_some() || other.steps.is_some() || other.trace.is_some();
        let base = if has_rate {
            Self {
                rate: None,
                burst: None,
                peak_rate: None,
                aggregate: self.aggregate.filter(|_| other.rate.is_some()),
                steps: None,
                period: None,
                trace: None,
                ..self
            }
        } else {
            self
        };
        overridden!(base by other: rate, burst, peak_rate, aggregate, steps, period, trace, queue, discipline, mark, departure, delay,
            contention, wake_up, jitter, loss, burst_loss, lose, duplicate, reorder, mtu, policer, release, hop;)
    }

    fn link(
        &self,
        direction: &str,
        rtt: Option<Duration>,
        overhead: u32,
        read_trace: ReadTrace<'_>,
    ) -> Result<link::Config, SettingError> {
        let key = |name: &str| format!("{direction}.{name}");
        let named = |name: &str| {
            let key = key(name);
            move |error: UnitError| misread(&key, &error)
        };
        let further = self.further(direction, overhead, read_trace)?;
        let delay = match (&self.delay, rtt) {
            (Some(text), _) => units::span(text).map_err(named("delay"))?,
            (None, None) => Duration::ZERO,
            (None, Some(rtt)) => {
                let taken = further.iter().map(|hop| hop.delay).sum();
                (rtt / 2).checked_sub(taken).ok_or_else(|| {
                    let (rtt, taken) = (units::show_span(rtt), units::show_span(taken));
                    SettingError::new(
                        "rtt",
                        format!("{rtt}, but the hops of `{direction}` delay {taken}"),
                        "at most half of the round trip",
                    )
                })?
            }
        };
        let config = link::Config {
            black_hole: self.mtu.map(|mtu| BlackHole {
                mtu: mtu.saturating_add(overhead),
                from: link::Time::ZERO,
            }),
            policer: optional(self.policer.as_deref(), &key("policer"), policer)?,
            loss: self.losses(direction)?,
            duplication: match &self.duplicate {
                Some(text) => units::probability(text).map_err(named("duplicate"))?,
                None => 0.0,
            },
            queue: self.queue(direction)?,
            capacity: self.capacity(direction, read_trace)?,
            departure: match self.departure.as_deref() {
                None | Some("last-bit") => Departure::LastBit,
                Some("first-bit") => Departure::FirstBit,
                Some(other) => {
                    return Err(SettingError::new(
                        key("departure"),
                        format!("`{other}`"),
                        "`last-bit` or `first-bit`",
                    ));
                }
            },
            contention: optional(self.contention.as_deref(), &key("contention"), contention)?,
            wake_up: optional(self.wake_up.as_deref(), &key("wake-up"), wake_up)?,
            delay,
            path_change: None,
            jitter: self.jitter(&key("jitter"))?,
            reordering: optional(self.reorder.as_deref(), &key("reorder"), reordering)?,
            release: optional(self.release.as_deref(), &key("release"), release)?,
            further,
        };
        config
            .check()
            .map_err(|error| SettingError::because(direction, error))?;
        Ok(config)
    }

    /// The hops after this one, numbered from 2 in errors.
    fn further(
        &self,
        direction: &str,
        overhead: u32,
        read_trace: ReadTrace<'_>,
    ) -> Result<Vec<link::Config>, SettingError> {
        let texts = self.hop.as_deref().unwrap_or_default();
        if texts.len() >= HOPS_MAX {
            return Err(SettingError::new(
                format!("{direction}.hop"),
                format!("{} tables", texts.len()),
                format!("at most {}", HOPS_MAX - 1),
            ));
        }
        let mut hops = Vec::with_capacity(texts.len());
        for (text, number) in texts.iter().zip(2..) {
            let name = format!("{direction}.hop[{number}]");
            if text.hop.is_some() {
                return Err(SettingError::new(
                    format!("{name}.hop"),
                    "a hop of a hop",
                    format!("all hops in `{direction}.hop`"),
                ));
            }
            hops.push(text.link(&name, None, overhead, read_trace)?);
        }
        Ok(hops)
    }

    fn capacity(
        &self,
        direction: &str,
        read_trace: ReadTrace<'_>,
    ) -> Result<Capacity, SettingError> {
        let key = |name: &str| format!("{direction}.{name}");
        let kinds = [
            self.rate.is_some(),
            self.steps.is_some(),
            self.trace.is_some(),
        ];
        if kinds.iter().filter(|is_there| **is_there).count() > 1 {
            return Err(SettingError::because(
                direction,
                "one of `rate`, `steps` and `trace`, not several",
            ));
        }
        if self.period.is_some() && self.steps.is_none() {
            return Err(SettingError::because(
                key("period"),
                "it is of `steps`, and there are none",
            ));
        }
        let is_plain = self.rate.is_some() && self.burst.is_none() && self.departure.is_none();
        if self.aggregate.is_some() && !is_plain {
            return Err(SettingError::because(
                key("aggregate"),
                "it requires `rate`, without `burst` and `departure`",
            ));
        }
        let rate_of =
            |name: &str, text: &str| units::rate(text).map_err(|error| misread(&key(name), &error));
        match (&self.rate, &self.burst, &self.peak_rate) {
            (Some(rate), Some(burst), Some(peak)) => {
                let shaper = Shaper {
                    rate: rate_of("rate", rate)?,
                    burst: units::bytes(burst).map_err(|error| misread(&key("burst"), &error))?,
                    peak: rate_of("peak-rate", peak)?,
                };
                if shaper.peak < shaper.rate {
                    return Err(SettingError::new(
                        key("peak-rate"),
                        format!("`{peak}`"),
                        format!("at least `rate`, {rate}"),
                    ));
                }
                return Ok(Capacity::Shaper(shaper));
            }
            (Some(rate), None, None) => {
                let rate = rate_of("rate", rate)?;
                return match &self.aggregate {
                    None => Ok(Capacity::Constant(rate)),
                    Some(text) => wifi(&key("aggregate"), text, rate).map(Capacity::Wifi),
                };
            }
            (_, None, None) => {}
            _ => {
                return Err(SettingError::because(
                    direction,
                    "`burst` and `peak-rate` require each other and `rate`",
                ));
            }
        }
        if let Some(steps) = &self.steps {
            let key = key("steps");
            let steps: Result<Vec<_>, SettingError> = steps
                .iter()
                .map(|step| {
                    let [at, rate] =
                        two_words(&key, step, "a time and a rate, such as `5s 10mbit`")?;
                    let at = span_of(&key, at)?;
                    let rate = match rate {
                        "0" => link::Rate::ZERO,
                        _ => units::rate(rate).map_err(|error| misread(&key, &error))?,
                    };
                    Ok((at, rate))
                })
                .collect();
            let period = optional(
                self.period.as_deref(),
                &format!("{direction}.period"),
                span_of,
            )?;
            let schedule = Schedule::new(&steps?, period)
                .map_err(|error| SettingError::because(&key, error))?;
            return Ok(Capacity::Schedule(schedule));
        }
        if let Some(name) = &self.trace {
            let key = key("trace");
            let text = read_trace(name).map_err(|error| SettingError::because(&key, error))?;
            let trace: Trace = text
                .parse()
                .map_err(|error| SettingError::because(&key, format!("{name}: {error}")))?;
            return Ok(Capacity::Trace(trace));
        }
        Ok(Capacity::Unlimited)
    }

    fn queue(&self, direction: &str) -> Result<Queue, SettingError> {
        let limit_of = |name: &str, text: &Option<String>| {
            optional(text.as_deref(), &format!("{direction}.{name}"), limit)
        };
        let size = limit_of("queue", &self.queue)?;
        let marks = || match self.mark.as_deref() {
            None | Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(other) => Err(SettingError::new(
                format!("{direction}.mark"),
                format!("`{other}`"),
                "`on` or `off`: this discipline finds the depth itself",
            )),
        };
        let codel = |default: CoDel| -> Result<CoDel, SettingError> {
            Ok(CoDel {
                ecn: marks()?,
                limit: size.unwrap_or(default.limit),
                ..default
            })
        };
        let flows = || -> Result<FqCoDel, SettingError> {
            let default = FqCoDel::default();
            Ok(FqCoDel {
                codel: codel(default.codel)?,
                ..default
            })
        };
        Ok(match self.discipline.as_deref() {
            None | Some("drop-tail") => Queue::DropTail(DropTail {
                limit: size.unwrap_or_default(),
                mark_above: match self.mark.as_deref() {
                    Some("off") => None,
                    _ => limit_of("mark", &self.mark)?,
                },
            }),
            Some("codel") => Queue::CoDel(codel(CoDel::default())?),
            Some("fq-codel") => Queue::FqCoDel(flows()?),
            Some("cake") => Queue::Cake(flows()?),
            Some("pie") => {
                let default = Pie::default();
                Queue::Pie(Pie {
                    ecn: marks()?,
                    limit: size.unwrap_or(default.limit),
                    ..default
                })
            }
            Some("dualpi2") => {
                if !marks()? {
                    return Err(SettingError::new(
                        format!("{direction}.mark"),
                        "`off`",
                        "`on`: `dualpi2` always marks",
                    ));
                }
                let default = DualPi2::default();
                Queue::DualPi2(DualPi2 {
                    limit: size.unwrap_or(default.limit),
                    ..default
                })
            }
            Some(other) => {
                return Err(SettingError::new(
                    format!("{direction}.discipline"),
                    format!("`{other}`"),
                    "`drop-tail`, `codel`, `fq-codel`, `pie`, `dualpi2` or `cake`",
                ));
            }
        })
    }

    fn losses(&self, direction: &str) -> Result<Vec<Loss>, SettingError> {
        let mut losses = Vec::new();
        if let Some(text) = &self.loss {
            let probability = units::probability(text)
                .map_err(|error| misread(&format!("{direction}.loss"), &error))?;
            if probability > 0.0 {
                losses.push(Loss::Bernoulli(probability));
            }
        }
        if let Some(text) = &self.burst_loss {
            let key = format!("{direction}.burst-loss");
            let [mean, length] = two_words(&key, text, "a share and a length, such as `1% 3p`")?;
            let mean = units::probability(mean).map_err(|error| misread(&key, &error))?;
            let packets = length.strip_suffix('p').and_then(|text| text.parse().ok());
            let packets = packets.filter(|packets: &f64| packets.is_finite() && *packets >= 1.0);
            let length = packets.ok_or_else(|| {
                SettingError::new(
                    &key,
                    format!("`{length}`"),
                    "a mean length of one packet or more, such as `3p`",
                )
            })?;
            losses.push(Loss::GilbertElliott(GilbertElliott::simple(mean, length)));
        }
        if let Some(numbers) = &self.lose {
            losses.push(Loss::Packets(numbers.clone()));
        }
        Ok(losses)
    }

    fn jitter(&self, key: &str) -> Result<Option<Jitter>, SettingError> {
        let Some(text) = &self.jitter else {
            return Ok(None);
        };
        let (span, may_reorder) = match text.trim().strip_suffix(" reorder") {
            Some(span) => (span, true),
            None => (text.as_str(), false),
        };
        let span = span_of(key, span)?;
        Ok((!span.is_zero()).then_some(Jitter {
            spread: Spread::Uniform(span),
            may_reorder,
        }))
    }
}

fn policer(key: &str, text: &str) -> Result<Policer, SettingError> {
    let [rate, burst] = two_words(key, text, "a rate and a bucket, such as `10mbit 100kB`")?;
    Ok(Policer {
        rate: units::rate(rate).map_err(|error| misread(key, &error))?,
        burst: units::bytes(burst).map_err(|error| misread(key, &error))?,
    })
}

fn contention(key: &str, text: &str) -> Result<Contention, SettingError> {
    let [share, busy] = two_words(key, text, "a share and a duration, such as `20% 5ms`")?;
    Ok(Contention {
        share: units::probability(share).map_err(|error| misread(key, &error))?,
        busy: span_of(key, busy)?,
    })
}

fn wake_up(key: &str, text: &str) -> Result<WakeUp, SettingError> {
    let [after, delay] = two_words(key, text, "a pause and a delay, such as `10s 60ms`")?;
    Ok(WakeUp {
        after: span_of(key, after)?,
        delay: span_of(key, delay)?,
    })
}

fn reordering(key: &str, text: &str) -> Result<Reordering, SettingError> {
    let [probability, extra] = two_words(key, text, "a share and a delay, such as `1% 5ms`")?;
    Ok(Reordering {
        probability: units::probability(probability).map_err(|error| misread(key, &error))?,
        extra: span_of(key, extra)?,
    })
}

fn release(key: &str, text: &str) -> Result<Spacing, SettingError> {
    Ok(match text.trim().strip_prefix("random ") {
        Some(mean) => Spacing::Random(span_of(key, mean)?),
        None => Spacing::Fixed(span_of(key, text)?),
    })
}

/// A setting that may be absent.
fn optional<T>(
    text: Option<&str>,
    key: &str,
    parse: impl FnOnce(&str, &str) -> Result<T, SettingError>,
) -> Result<Option<T>, SettingError> {
    text.map(|text| parse(key, text)).transpose()
}

/// Splits a text into two words; `expected` describes them in the error.
fn two_words<'a>(key: &str, text: &'a str, expected: &str) -> Result<[&'a str; 2], SettingError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    <[&str; 2]>::try_from(words).map_err(|_| SettingError::new(key, format!("`{text}`"), expected))
}

/// The most packets of an aggregate: of 802.11be.
const AGGREGATE_MAX: u16 = 1024;

fn wifi(key: &str, text: &str, rate: link::Rate) -> Result<Wifi, SettingError> {
    let expected = "1 to 1024 packets and a duration, such as `64p 4ms`";
    let [packets, airtime] = two_words(key, text, expected)?;
    let packets = packets.strip_suffix('p').and_then(|text| text.parse().ok());
    Ok(Wifi {
        rate,
        packets: packets
            .filter(|packets| (1..=AGGREGATE_MAX).contains(packets))
            .ok_or_else(|| SettingError::new(key, format!("`{text}`"), expected))?,
        airtime: span_of(key, airtime)?,
    })
}

fn limit(key: &str, text: &str) -> Result<Limit, SettingError> {
    let text = text.trim();
    if text == "unlimited" {
        return Ok(Limit::Unlimited);
    }
    if let Some(packets) = text.strip_suffix('p')
        && let Ok(packets) = packets.trim_end().parse()
    {
        return Ok(Limit::Packets(packets));
    }
    if let Ok(span) = units::span(text) {
        return Ok(Limit::Time(span));
    }
    // A number without a unit is ambiguous: bytes, packets or time.
    let is_bare = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'_');
    match units::bytes(text).ok().filter(|_| !is_bare) {
        Some(bytes) => Ok(Limit::Bytes(bytes)),
        None if is_bare && !text.is_empty() => Err(SettingError::new(
            key,
            format!("`{text}`"),
            format!("a depth with its unit: `{text}ms`, `{text}kB` or `{text}p` for packets"),
        )),
        None => Err(SettingError::new(
            key,
            format!("`{text}`"),
            "a depth, such as `50ms`, `64kB`, `100p` or `unlimited`",
        )),
    }
}
