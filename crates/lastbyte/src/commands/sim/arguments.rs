//! Arguments of `lastbyte sim`.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::{Args, builder::ArgPredicate};
use lastbyte_congestion::Registry;
use lastbyte_scenario::{
    Arm, ClientAcks, CrossTraffic, Handshake, SettingError, arrivals::Arrivals,
    workload::PARALLEL_MAX,
};
use lastbyte_units as units;

use crate::commands::{figure::FigureArguments, path::PathArguments, values};

const EXAMPLES: &str = "\
Examples:
  # Four startups side by side, over 55 Mb/s and 39 ms.
  lastbyte sim --network vdsl --size 400kB
  # Four times the size overshoots the queue of 50 ms: Rapid Start gains as
  # much at the start, but its recovery takes longer. quicly's variant backs
  # off less and stays ahead.
  lastbyte sim --network vdsl --size 1.6MB --arm slow-start \\
    --arm rapid-start --arm rapid-start:variant=quicly
  # A custom path, two arms, and an interactive plot.
  lastbyte sim --rate 55Mb/s --rtt 39ms --arm slow-start \\
    --arm rapid-start --plot start.html
  # The default arms as a figure for a column of a paper, with its data.
  lastbyte sim --network vdsl --figure 3.33in --plot f.pdf --data f.csv
  # When do the first 200 and 400 kB of a long transfer arrive? Medians over
  # 20 seeds, with 1 % random loss.
  lastbyte sim --network lte --loss 1% --size 10MB \\
    --progress 200kB,400kB --runs 20
  # Two flows share a bottleneck; the second starts 300 ms later.
  lastbyte sim --network dsl --size 20MB --flows 2 --stagger 300ms \\
    --arm cubic --arm bbr
  # Round trips until the first byte (column TTFB RTT): 2, 2 and 1.
  lastbyte sim --rate 10Gb/s --rtt 200ms --arm rapid-start --size 20kB \\
    --handshake full,resumed,0rtt --tls
  # Flow-completion times by size, under an open-loop load of 60 %.
  lastbyte sim --rate 50mbit --rtt 40ms --arm cubic --arm bbr \\
    --arrivals '60% of web for 120s'
  # All events of both ends, for qvis, jq and `lastbyte plot`.
  lastbyte sim --arm rapid-start --qlog qlogs/

Networks: dsl, vdsl, home-wifi, public-wifi, corporate-wifi, lte, 5g, leo, geo, congested, bdp20, bdp40; or a TOML file (docs/network.md). Options override the network's settings. Units: docs/units.md.

An arm is a congestion control spec: a preset (slow-start, jumpstart, rapid-no-jump, rapid-start, hystart, search, newreno, cubic, rate-limited, careful-resume, pico, prague, bbr, c4), optionally with keys changed after a colon: rapid-start:congestion=newreno,startup-beta=0.7. `lastbyte specs` lists presets and keys.

Times count from the client's first datagram. TTFB: first byte of the first response; TTFB RTT: the same in round trips of the path without queues. TTLB: last byte of the first response, after all bytes before it. With --requests or --parallel, the column \"later ms\" is the median time of the other responses, each from its request to its last byte, or as the first if it was requested with it.

Round trips until the client sends its request, and until the first byte: full 1 and 2 (one more if the certificate chain is longer than three times the client's first datagram), resumed 1 and 2, 0rtt 0 and 1.

Reference: docs/sim.md.";

/// Simulate transfers over a path and compare congestion controls.
///
/// Client and server are the production QUIC and HTTP/3 endpoints, in virtual time. Unless --tls is given, TLS is replaced
/// by a handshake of the same sizes and round trips. The same seed gives the same output, byte for byte.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) path: PathArguments,

    /// Response size: 400kB; repeatable, one transfer each
    #[arg(long, value_name = "BYTES", default_value = "400kB", value_delimiter = ',', value_parser = units::bytes, help_heading = "Transfer")]
    pub(crate) size: Vec<u64>,
    /// Also report when these numbers of bytes had arrived in order
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = units::bytes, conflicts_with = "upload", help_heading = "Transfer")]
    pub(crate) progress: Vec<u64>,
    /// Requests per connection, one after the other
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=1_000_000), help_heading = "Transfer")]
    pub(crate) requests: u32,
    /// Responses that each request asks for at once
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=u64::from(PARALLEL_MAX)), help_heading = "Transfer")]
    pub(crate) parallel: u32,
    /// Idle time between requests
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = units::span, help_heading = "Transfer")]
    pub(crate) pause: Duration,
    /// Upload in place of download: the client sends the data
    ///
    /// The arms are then congestion controls of the client. An uplink without a rate of its own has the limits of the downlink.
    #[arg(long, help_heading = "Transfer")]
    pub(crate) upload: bool,
    /// Number of flows of the same arm that share the path
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=100_000), help_heading = "Transfer")]
    pub(crate) flows: u32,
    /// Delay between the starts of flows
    #[arg(long, value_name = "SPAN", default_value = "0", value_parser = units::span, help_heading = "Transfer")]
    pub(crate) stagger: Duration,
    /// Round-trip times of the flows, in turn, if longer than the path's
    #[arg(long, value_name = "SPAN,…", value_delimiter = ',', value_parser = units::span, help_heading = "Transfer")]
    pub(crate) flow_rtt: Vec<Duration>,
    /// Measure transfers that arrive at random: 60% of web for 120s
    ///
    /// Each arm has transfers that arrive as a Poisson process, however long those before take, each on a new connection. LOAD is the
    /// share of the bottleneck's rate that they offer. SIZES is one size, or web: those of web search. SPAN is the time in which they
    /// arrive [default: 60s]. The table has flow-completion times by size (docs/sim.md).
    #[arg(
        long,
        value_name = "LOAD of SIZES for SPAN",
        value_parser = Arrivals::for_span,
        help_heading = "Transfer",
        conflicts_with_all = [
            "size", "progress", "requests", "parallel", "pause", "upload", "flows", "stagger", "flow_rtt", "serve_config",
            "handshake", "saved_window", "tls", "plot", "figure", "qlog",
        ]
    )]
    pub(crate) arrivals: Option<(Arrivals, Duration)>,
    /// Cross traffic: a spec (endless flow), pages or cbr:RATE; repeatable
    ///
    /// cubic is an endless flow. "pages:cubic 300kB 2s" are transfers of 300 kB, each on a new connection, at most one every
    /// 2 s. cbr:5mbit sends packets at a constant bit rate. stack:cubic simulates a whole QUIC connection, which takes longer.
    /// Append "up" for traffic from the client's side, "rtt 80ms" for a longer round-trip time than the path's, "start 2s", and
    /// "hop 2" or "hop 1-2" for some hops of the path only.
    #[arg(long, value_name = "TRAFFIC", help_heading = "Transfer")]
    pub(crate) cross: Vec<String>,

    /// Congestion control to compare: SPEC or NAME=SPEC; repeatable
    ///
    /// Default: slow-start, jumpstart, rapid-no-jump, rapid-start. `lastbyte specs` lists presets and keys.
    #[arg(long, value_name = "SPEC", help_heading = "Endpoints")]
    pub(crate) arm: Vec<String>,
    /// Configuration file of `lastbyte serve` for the server
    ///
    /// Its congestion control or experiment gives the arms, unless there is an --arm. Keys without a meaning in virtual time
    /// are named.
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Endpoints",
        conflicts_with = "mtu"
    )]
    pub(crate) serve_config: Option<PathBuf>,
    /// Handshakes to compare: full, resumed, 0rtt; one transfer each
    #[arg(
        long,
        value_name = "KIND,…",
        value_delimiter = ',',
        default_value = "full",
        help_heading = "Endpoints"
    )]
    pub(crate) handshake: Vec<Handshake>,
    /// Window saved by an earlier visit over this path, for arms with resume=on
    #[arg(long, value_name = "BYTES", value_parser = units::bytes, help_heading = "Endpoints")]
    pub(crate) saved_window: Option<u64>,
    /// Use real TLS in place of the simulated handshake
    ///
    /// Times stay the same but for a few bytes; the simulation takes longer.
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) tls: bool,
    /// UDP payload of full-size datagrams, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1280", value_parser = values::size::<u16>(1200..=65_000), help_heading = "Endpoints")]
    pub(crate) mtu: u16,
    /// Send packets as ECN-capable; managed queues (--aqm) mark them
    ///
    /// --mark DEPTH implies it. A drop-tail queue marks only with --mark DEPTH.
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) ecn: bool,
    /// Let the server request fewer ACKs (draft-ietf-quic-ack-frequency)
    #[arg(long, help_heading = "Endpoints")]
    pub(crate) ack_frequency: bool,
    /// How clients acknowledge: rfc9000, chromium, firefox, safari
    ///
    /// Default: the network's `client-acks`, else rfc9000, which acknowledges every second packet. chromium acknowledges
    /// every tenth from the 100th packet on.
    #[arg(long, value_name = "NAME", help_heading = "Endpoints")]
    pub(crate) client_acks: Option<ClientAcks>,
    /// Flow-control window per stream granted by the client
    #[arg(long, value_name = "BYTES", default_value = "6MiB", value_parser = values::size::<u64>(1..=1 << 40), conflicts_with = "upload", help_heading = "Endpoints")]
    pub(crate) window: u64,
    /// Length of the server's certificate chain
    #[arg(long, hide = true, value_name = "BYTES", default_value = "2400", value_parser = values::size::<u16>(0..=65_535))]
    pub(crate) certificate_chain: u16,

    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed, help_heading = "Simulation")]
    pub(crate) seed: u64,
    /// Simulations per arm, with successive seeds; the table shows medians
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=1_000_000), help_heading = "Simulation")]
    pub(crate) runs: u32,
    /// Virtual time limit of a simulation
    #[arg(long, value_name = "SPAN", default_value = "1000s", value_parser = units::span, help_heading = "Simulation")]
    pub(crate) time_limit: Duration,
    /// Parallel simulations [default: CPU cores]
    #[arg(long, alias = "threads", value_name = "N", value_parser = values::positive(values::THREADS_MAX), help_heading = "Simulation")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Print JSON: an array with an object per transfer (docs/sim.md)
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Plot the transfers to FILE: .html (interactive), .svg; repeatable
    #[arg(
        long,
        value_name = "FILE",
        help_heading = "Output",
        default_value_if("figure", ArgPredicate::IsPresent, "sim.pdf")
    )]
    pub(crate) plot: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) figure: FigureArguments,
    /// Overwrite files of --qlog
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Write new qlog files for both ends of each connection to DIR
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) qlog: Option<PathBuf>,
}

/// The largest number of responses of a connection.
const OBJECTS_MAX: u64 = 1_000_000;

/// Rejects a repeated value: its results could not be told apart.
fn twice<T: PartialEq>(
    flag: &str,
    values: &[T],
    show: impl Fn(&T) -> String,
) -> Result<(), SettingError> {
    let second = values
        .iter()
        .enumerate()
        .find(|(index, value)| values.iter().take(*index).any(|before| before == *value));
    match second {
        Some((_, value)) => Err(SettingError::new(
            flag,
            format!("`{}` is given twice", show(value)),
            "once",
        )),
        None => Ok(()),
    }
}

/// The arms of the experiment that measured Rapid Start.
const FOUR_ARMS: [&str; 4] = ["slow-start", "jumpstart", "rapid-no-jump", "rapid-start"];

impl Arguments {
    /// Checks combinations of options.
    pub(crate) fn check(&self) -> Result<(), SettingError> {
        twice("--size", &self.size, |size| units::show_bytes(*size))?;
        twice("--handshake", &self.handshake, |kind| {
            kind.name().to_owned()
        })?;
        if self.flow_rtt.len() > self.flows as usize {
            return Err(SettingError::new(
                "--flow-rtt",
                format!("{} round-trip times", self.flow_rtt.len()),
                format!("at most one for each of {} flows", self.flows),
            ));
        }
        let shortest = self.size.iter().min().copied().unwrap_or(0);
        if let Some(mark) = self.progress.iter().find(|mark| **mark > shortest) {
            return Err(SettingError::new(
                "--progress",
                units::show_bytes(*mark),
                format!("at most the --size, {}", units::show_bytes(shortest)),
            ));
        }
        if !self.pause.is_zero() && self.requests == 1 {
            return Err(SettingError::reason(
                "--pause requires --requests with 2 or more",
            ));
        }
        let objects = u64::from(self.requests) * u64::from(self.parallel);
        if objects > OBJECTS_MAX {
            return Err(SettingError::new(
                "--requests times --parallel",
                objects,
                format!("at most {OBJECTS_MAX}"),
            ));
        }
        if !self.stagger.is_zero() && self.flows == 1 {
            return Err(SettingError::reason(
                "--stagger requires --flows with 2 or more",
            ));
        }
        if let Some((_, span)) = self.arrivals
            && span > self.time_limit
        {
            return Err(SettingError::new(
                "--arrivals",
                format!("for {}", units::show_span(span)),
                format!(
                    "at most the --time-limit, {}",
                    units::show_span(self.time_limit)
                ),
            ));
        }
        if self.seed + u64::from(self.runs) > units::SEED_END {
            return Err(SettingError::new(
                "--seed",
                self.seed,
                "at most 2^53 minus --runs: each run takes the next seed",
            ));
        }
        Ok(())
    }

    /// The arms of --arm, or the default four.
    pub(crate) fn arms(&self, registry: &Registry) -> Result<Vec<Arm>, SettingError> {
        let default = FOUR_ARMS.map(str::to_owned);
        let texts = match self.arm.as_slice() {
            [] => &default[..],
            texts => texts,
        };
        Arm::parse_all(texts, registry).map_err(|error| error.of("--arm"))
    }

    /// The cross traffic of --cross.
    pub(crate) fn cross(&self, registry: &Registry) -> Result<Vec<CrossTraffic>, SettingError> {
        let parse = |text: &String| CrossTraffic::parse(text, registry);
        let cross: Result<_, _> = self.cross.iter().map(parse).collect();
        cross.map_err(|error: SettingError| error.of("--cross"))
    }

    /// The round-trip time of a flow, where it is not the path's.
    pub(crate) fn rtt_of(&self, flow: u32) -> Option<Duration> {
        let turn = (flow as usize).checked_rem(self.flow_rtt.len())?;
        self.flow_rtt.get(turn).copied()
    }

    /// Whether packets are sent as ECN-capable.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.ecn || self.path.marks()
    }
}
