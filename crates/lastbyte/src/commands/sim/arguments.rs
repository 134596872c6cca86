//! What `lastbyte sim` can be told.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use lastbyte_congestion::Spec;
use lastbyte_link::Rate;
use lastbyte_sim::{CrossKind, Handshake, Protocol, units};

use crate::commands::{path::PathArguments, values};

const EXAMPLES: &str = "\
Examples:
  # Four ways to start, side by side, over 55 Mb/s and 39 ms.
  lastbyte sim --network vdsl --size 400kB
  # Four times as much overshoots that path's queue of 50 ms: Rapid Start
  # gains as before at the start, and pays for it with a longer recovery.
  # quicly's variant, which backs off less, stays ahead.
  lastbyte sim --network vdsl --size 1.6MB --arm slow-start \\
    --arm rapid-start --arm rapid-start:variant=quicly
  # A path of your own, two arms, and a picture to zoom into.
  lastbyte sim --rate 55Mb/s --rtt 39ms --arm slow-start \\
    --arm rapid-start --plot start.html
  # When do the first 200 and 400 kB of a long transfer arrive? Medians over
  # 20 seeds, with 1 % random loss.
  lastbyte sim --network lte --loss 1% --size 10MB \\
    --progress 200kB,400kB --runs 20
  # Two flows share a bottleneck; the second starts 300 ms later.
  lastbyte sim --network dsl --size 20MB --flows 2 --stagger 300ms \\
    --arm cubic --arm bbr
  # Cost of a handshake before the first byte: 2, 2 and 1 round trips, in
  # the column TTFB RTT.
  lastbyte sim --rate 10Gb/s --rtt 200ms --arm rapid-start --size 20kB \\
    --handshake full,resumed,0rtt --tls
  # All events, for jq and qvis.
  lastbyte sim --arm rapid-start --trace events.ndjson --qlog qlogs/

Networks: dsl, vdsl, home-wifi, public-wifi, corporate-wifi, lte, 5g, leo, geo, congested, bdp20, bdp40; or a TOML file (see networks/*.toml). Flags override the network's settings. Units: docs/units.md.

An arm is a congestion control spec: a preset (slow-start, jumpstart, rapid-no-jump, rapid-start, hystart, newreno, cubic, pico, bbr), with keys changed after a colon: rapid-start:congestion=newreno,startup-beta=0.7.

Times count from the client's first datagram. TTLB: until the last byte of the first response had arrived, and all before it. TTFB: until its first byte had arrived; TTFB RTT: the same in round trips of the path without queues. With --requests, the column \"later ms\" has the median time of the later responses, each from its request to its last byte.

A handshake of HTTP/3 takes this many round trips until the client sends its request, and until the first byte: full 1 and 2 (one more if the certificate chain is longer than three times the client's first datagram), resumed 1 and 2, 0rtt 0 and 1.";

/// Simulates transfers over a path, arm by arm.
///
/// Client and server are the real QUIC endpoints with HTTP/3 on them, in virtual time; only TLS is replaced by a twin of the
/// same sizes and round trips, unless --tls says otherwise. The same seed gives the same figures, to the byte.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) path: PathArguments,

    /// Size of the response: 400kB; may be repeated, one transfer each
    #[arg(long, value_name = "BYTES", default_value = "400kB", value_delimiter = ',', value_parser = units::bytes, help_heading = "Transfer")]
    pub(crate) size: Vec<u64>,
    /// Also report when these numbers of bytes had arrived in order: 200kB,400kB
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = units::bytes, help_heading = "Transfer")]
    pub(crate) progress: Vec<u64>,
    /// Requests on each connection, one after the other, all of the same size
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<usize>(1..=1_000_000), help_heading = "Transfer")]
    pub(crate) requests: usize,
    /// Idle time between requests
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = units::span, help_heading = "Transfer")]
    pub(crate) pause: Duration,
    /// Flows of the same arm that share the path
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=100_000), help_heading = "Transfer")]
    pub(crate) flows: u32,
    /// Delay of each flow's start after that of the one before
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = units::span, help_heading = "Transfer")]
    pub(crate) stagger: Duration,
    /// Other traffic in the way: a spec, for a QUIC flow without end, or cbr:5mbit for packets at that rate; may be repeated
    #[arg(long, value_name = "SPEC", value_parser = cross, help_heading = "Transfer")]
    pub(crate) cross: Vec<CrossKind>,

    /// A way to start and go on; may be repeated. Default: slow-start, jumpstart, rapid-no-jump, rapid-start
    #[arg(long, value_name = "SPEC", value_parser = arm, help_heading = "Endpoints")]
    pub(crate) arm: Vec<Arm>,
    /// What client and server speak: h3, or raw for a request and a response without HTTP, as in quicly's simulator
    #[arg(
        long,
        value_name = "NAME",
        default_value = "h3",
        help_heading = "Endpoints"
    )]
    pub(crate) protocol: Protocol,
    /// How they shake hands: full, resumed (the client was here before), 0rtt (and asks at once); one transfer each
    #[arg(
        long,
        value_name = "KIND,…",
        value_delimiter = ',',
        default_value = "full",
        help_heading = "Endpoints"
    )]
    pub(crate) handshake: Vec<Handshake>,
    /// Real TLS in place of its twin: the same figures, but for some bytes, at a higher cost
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) tls: bool,
    /// UDP payload of full datagrams, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1280", value_parser = values::size::<u16>(1200..=65_000), help_heading = "Endpoints")]
    pub(crate) mtu: u16,
    /// Mark packets as capable of ECN
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) ecn: bool,
    /// Keep RFC 9002's reordering thresholds, whatever the path does; by default they adapt to reordering
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) fixed_thresholds: bool,
    /// Let the server ask for rarer acknowledgments (draft-ietf-quic-ack-frequency)
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) ack_frequency: bool,
    /// How long a client holds back acknowledgments at most
    #[arg(long, value_name = "SPAN", default_value = "25ms", value_parser = units::span, help_heading = "Endpoints")]
    pub(crate) max_ack_delay: Duration,
    /// Flow-control window that the client grants on a stream
    #[arg(long, value_name = "BYTES", default_value = "6MiB", value_parser = values::size::<u64>(1..=1 << 40), help_heading = "Endpoints")]
    pub(crate) window: u64,
    /// Length of the server's certificate chain
    #[arg(long, value_name = "BYTES", default_value = "2400", value_parser = values::size::<u16>(0..=65_535), help_heading = "Endpoints")]
    pub(crate) certificate_chain: u16,

    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed, help_heading = "Simulation")]
    pub(crate) seed: u64,
    /// Simulations of each arm, with seeds counting up; the table has the median of each figure
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=1_000_000), help_heading = "Simulation")]
    pub(crate) runs: u32,
    /// Virtual time after which a simulation is given up
    #[arg(long, value_name = "SPAN", default_value = "1000s", value_parser = units::span, help_heading = "Simulation")]
    pub(crate) time_limit: Duration,
    /// Simulations at a time. Default: one a core
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX), help_heading = "Simulation")]
    pub(crate) threads: Option<NonZeroUsize>,

    /// JSON in place of a table: an array with an object for each transfer
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Draw the transfer over time, the arms side by side: .html (zooms and hovers), .svg or .png; may be repeated
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Vec<PathBuf>,
    /// Write all that happens, one JSON object a line, into a new file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace: Option<PathBuf>,
    /// Replace the file of --trace if it exists
    #[arg(long, requires = "trace", help_heading = "Output")]
    pub(crate) force: bool,
    /// Write qlog files for both ends of each connection into a folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) qlog: Option<PathBuf>,
    /// Which qlog: 0.3, which qvis loads, or that of the current drafts
    #[arg(
        long,
        value_name = "DIALECT",
        default_value = "0.3",
        requires = "qlog",
        help_heading = "Output"
    )]
    pub(crate) qlog_dialect: QlogDialect,
}

/// Which qlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QlogDialect {
    /// Version 0.3.
    #[value(name = "0.3")]
    V03,
    /// The current drafts.
    #[value(name = "draft")]
    Draft,
}

/// An arm, as it was written and what it means.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) label: String,
    pub(crate) spec: Spec,
}

/// Results of two that are the same could not be told apart.
fn twice<T: PartialEq + core::fmt::Debug>(flag: &str, values: &[T]) -> Result<(), String> {
    let second = values
        .iter()
        .enumerate()
        .find(|(index, value)| values.iter().take(*index).any(|before| before == *value));
    match second {
        Some((_, value)) => Err(format!("{flag}: {value:?} is there twice")),
        None => Ok(()),
    }
}

fn arm(text: &str) -> Result<Arm, String> {
    let spec = text.parse::<Spec>().map_err(|error| error.to_string())?;
    Ok(Arm {
        label: text.to_owned(),
        spec,
    })
}

fn cross(text: &str) -> Result<CrossKind, String> {
    if let Some(rate) = text.strip_prefix("cbr:") {
        let rate: Rate = units::rate(rate).map_err(|error| error.with_value())?;
        return Ok(CrossKind::Constant(rate));
    }
    let spec = text.parse::<Spec>().map_err(|error| error.to_string())?;
    Ok(CrossKind::Bulk(spec))
}

/// The arms of the experiment in which Rapid Start was measured.
const FOUR_ARMS: [&str; 4] = ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"];

impl Arguments {
    /// What no flag by itself can be wrong about.
    pub(crate) fn check(&self) -> Result<(), String> {
        let labels: Vec<&str> = self.arm.iter().map(|arm| arm.label.as_str()).collect();
        twice("--arm", &labels)?;
        twice("--size", &self.size)?;
        twice("--handshake", &self.handshake)?;
        let shortest = self.size.iter().min().copied().unwrap_or(0);
        if let Some(mark) = self.progress.iter().find(|mark| **mark > shortest) {
            return Err(format!(
                "--progress: {} (expected at most the --size, {})",
                units::show_bytes(*mark),
                units::show_bytes(shortest)
            ));
        }
        if !self.pause.is_zero() && self.requests == 1 {
            return Err(
                "--pause is between requests, and there is one: add --requests N".to_owned(),
            );
        }
        if !self.stagger.is_zero() && self.flows == 1 {
            return Err("--stagger is between flows, and there is one: add --flows N".to_owned());
        }
        if self.seed + u64::from(self.runs) > units::SEED_END {
            return Err(format!(
                "--seed: {} (expected at most 2^53 less the --runs, whose seeds count up)",
                self.seed
            ));
        }
        Ok(())
    }

    /// The arms that were asked for, or the four.
    pub(crate) fn arms(&self) -> Result<Vec<Arm>, String> {
        if self.arm.is_empty() {
            FOUR_ARMS.into_iter().map(arm).collect()
        } else {
            Ok(self.arm.clone())
        }
    }

    /// Whether packets are marked as capable of ECN.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.ecn || self.path.marks()
    }
}
