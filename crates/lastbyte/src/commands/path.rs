//! Paths on the command line: what `lastbyte sim` and `lastbyte emulate` can be told of them, in the same words.

use std::{path::Path, time::Duration};

use clap::Args;
use lastbyte_sim::{
    self as sim,
    network::{LinkText, PathText},
    units,
};

use crate::{failure::Failure, files};

/// A path, or several.
#[derive(Debug, Args)]
pub(crate) struct PathArguments {
    /// A named network, or a file that ends in .toml; may be repeated
    #[arg(long, value_name = "NAME|FILE", help_heading = "Path")]
    pub(crate) network: Vec<String>,
    /// Rate of the bottleneck, from server to client: 55mbit
    #[arg(long, help_heading = "Path")]
    rate: Option<String>,
    /// Delivery opportunities of the bottleneck from a file in mahimahi's format, in place of a rate
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "rate",
        help_heading = "Path"
    )]
    rate_trace: Option<String>,
    /// Round-trip time without queues: 39ms
    #[arg(long, help_heading = "Path")]
    rtt: Option<String>,
    /// What the queue before the bottleneck holds: 50ms at its rate, 64kB, 100p (packets), or unlimited. Default, with a --rate
    /// and an --rtt: one round trip, or 20 packets if that is below 10ms
    #[arg(long, help_heading = "Path")]
    queue: Option<String>,
    /// How the queue is kept: drop-tail, codel, fq-codel
    #[arg(long, help_heading = "Path")]
    aqm: Option<String>,
    /// Above which depth packets are marked CE: 5ms, 30kB, 20p; for codel and fq-codel `on`
    #[arg(long, help_heading = "Path")]
    mark: Option<String>,
    /// Share of packets lost by chance: 1%
    #[arg(long, help_heading = "Path")]
    loss: Option<String>,
    /// Share of packets lost in bursts, and their mean length: "1% 3p" (Gilbert-Elliott)
    #[arg(long, value_name = "SHARE LENGTH", help_heading = "Path")]
    burst_loss: Option<String>,
    /// Share of packets that are held up, and for how long: "1% 5ms"
    #[arg(long, value_name = "SHARE SPAN", help_heading = "Path")]
    reorder: Option<String>,
    /// Up to how much more delay a packet has: 5ms, or "5ms reorder" if they may overtake
    #[arg(long, help_heading = "Path")]
    jitter: Option<String>,
    /// Share of packets that arrive twice: 0.1%
    #[arg(long, value_name = "SHARE", help_heading = "Path")]
    duplicate: Option<String>,
    /// A policer's rate and bucket: "10mbit 100kB"
    #[arg(long, value_name = "RATE BUCKET", help_heading = "Path")]
    policer: Option<String>,
    /// Rate from client to server. Default: unlimited
    #[arg(long, value_name = "RATE", help_heading = "Path")]
    up_rate: Option<String>,
    /// Share of packets lost by chance from client to server
    #[arg(long, value_name = "SHARE", help_heading = "Path")]
    up_loss: Option<String>,
    /// How far apart the packets of the client come out, in batches, as on radio links: 4ms
    #[arg(long, value_name = "SPAN", help_heading = "Path")]
    up_release: Option<String>,
    /// What a packet has beside its UDP payload, in bytes: 28 for IPv4. Default: 0
    #[arg(long, value_name = "BYTES", help_heading = "Path")]
    overhead: Option<u32>,
}

impl PathArguments {
    /// Whether packets are marked on the way.
    pub(crate) const fn marks(&self) -> bool {
        self.mark.is_some()
    }

    /// The settings that stand on the command line.
    fn text(&self) -> PathText {
        PathText {
            rtt: self.rtt.clone(),
            overhead: self.overhead,
            down: LinkText {
                rate: self.rate.clone(),
                trace: self.rate_trace.clone(),
                queue: self.queue.clone(),
                discipline: self.aqm.clone(),
                mark: self.mark.clone(),
                loss: self.loss.clone(),
                burst_loss: self.burst_loss.clone(),
                reorder: self.reorder.clone(),
                jitter: self.jitter.clone(),
                duplicate: self.duplicate.clone(),
                policer: self.policer.clone(),
                ..LinkText::default()
            },
            up: LinkText {
                rate: self.up_rate.clone(),
                loss: self.up_loss.clone(),
                release: self.up_release.clone(),
                ..LinkText::default()
            },
            ..PathText::default()
        }
    }

    /// The paths that were asked for, with their names.
    pub(crate) fn paths(&self) -> Result<Vec<(String, sim::Path)>, Failure> {
        let settings = self.text();
        let mut bases = Vec::new();
        for name in &self.network {
            bases.push(named(name)?);
        }
        if bases.is_empty() {
            bases.push(base_of(&settings)?);
        }
        let mut paths = Vec::new();
        for (name, base) in bases {
            let text = base.overridden_by(settings.clone());
            let path = text.path(&mut |file| files::read_text(Path::new(file)));
            paths.push((name, path.map_err(Failure::usage)?));
        }
        Ok(paths)
    }
}

/// A network that has a name, or a file.
fn named(name: &str) -> Result<(String, PathText), Failure> {
    let file = Path::new(name);
    if file.extension().is_none_or(|extension| extension != "toml") {
        let base = PathText::named(name).map_err(Failure::usage)?;
        return Ok((name.to_owned(), base));
    }
    let text = files::read_text(file).map_err(Failure::Usage)?;
    let base =
        PathText::parse(&text).map_err(|error| Failure::Usage(format!("`{name}`: {error}")))?;
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    Ok((stem.unwrap_or_else(|| name.to_owned()), base))
}

/// Where no network is named: one of the command line's own, if it says what that takes; or the path of the talk.
fn base_of(settings: &PathText) -> Result<(String, PathText), Failure> {
    let has_rate = settings.down.rate.is_some() || settings.down.trace.is_some();
    match (has_rate, &settings.rtt) {
        (false, None) => named("vdsl"),
        (true, Some(rtt)) => {
            let mut base = PathText::default();
            // A queue of one round trip, where nothing is said of it; on a short one, of twenty packets.
            let is_short = units::span(rtt).is_ok_and(|rtt| rtt < SHORT_RTT);
            let queue = if is_short { "20p" } else { rtt };
            base.down.queue = Some(queue.to_owned());
            Ok(("custom".to_owned(), base))
        }
        (true, None) => Err(Failure::Usage(
            "a path with a --rate needs an --rtt too, or a --network to begin with".to_owned(),
        )),
        (false, Some(_)) => Err(Failure::Usage(
            "a path with an --rtt needs a --rate too, or a --network to begin with".to_owned(),
        )),
    }
}

const SHORT_RTT: Duration = Duration::from_millis(10);
