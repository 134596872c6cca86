//! The arguments of `lastbyte compare`, and its arms.

use core::{num::NonZeroUsize, time::Duration};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lastbyte_page::View;
use lastbyte_scenario::{Handshake, HttpVersion, TlsVersion, Upgrade};
use lastbyte_units as units;

use super::{loss, record, run::view};
use crate::{
    commands::{figure::FigureArguments, values},
    failure::Failure,
};

const EXAMPLES: &str = "\
Examples:
  # HTTP/2 and HTTP/3 for the built-in corpus over 24 networks.
  lastbyte compare
  # All three, on a few networks, for thirty pages.
  lastbyte compare --http 1.1,2,3 --network lte --network 10mbit/100ms/2% \\
    --pages 30 --out three
  # HTTP/2 on all hosts, and on those of the page's own site only.
  lastbyte compare --http 1.1,2 --upgrade all,first-party --out partial
  # HTTP/3 with two congestion controls, first view only.
  lastbyte compare --arm '3 cubic' --arm '3 rapid-start' --view first --out cc

Columns, model and sources: docs/compare.md.";

/// What else `compare` does.
#[derive(Debug, Subcommand)]
pub(super) enum Action {
    Loss(loss::Arguments),
    Record(record::Record),
    Generate(record::Generate),
}

/// Compare page loads over HTTP/1.1, 2 and 3 in the simulator.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    /// Corpus file [default: the built-in corpus of 300 pages]
    #[arg(long, value_name = "FILE")]
    pub(super) corpus: Option<PathBuf>,
    /// Versions of HTTP, the baseline first: 1.1, 2, 3
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "2,3",
        conflicts_with = "arm"
    )]
    pub(super) http: Vec<HttpVersion>,
    /// In place of --http: "[NAME=][VERSION] [SPEC]", the baseline first; repeatable
    #[arg(long, value_name = "ARM")]
    pub(super) arm: Vec<String>,
    /// Hosts with the arms' version, others HTTP/1.1: all, first-party; an arm for each
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "all"
    )]
    pub(super) upgrade: Vec<Upgrade>,
    /// Named network, file, RATE[:UP]/RTT[/LOSS], `named` or `grid`; repeatable [default: 24]
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) network: Vec<String>,
    /// Views: first, with an empty cache, and repeat
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "first,repeat",
        value_parser = view
    )]
    pub(super) view: Vec<View>,
    /// Handshake: full, resumed or 0rtt [default: full at the first view, resumed at the repeat view]
    #[arg(long, value_name = "NAME")]
    pub(super) handshake: Option<Handshake>,
    /// TLS of connections over TCP: 1.3, 1.2 or none
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    pub(super) tls: TlsVersion,
    /// Time to resolve the name of a host, once for each
    #[arg(long, value_name = "SPAN", default_value = "0ms", value_parser = units::span)]
    pub(super) dns: Duration,
    /// Servers send 103 (Early Hints) where the page has hints
    #[arg(long)]
    pub(super) early_hints: bool,
    /// All hosts have HTTP/3, not only those that have it in the corpus
    #[arg(long)]
    pub(super) all_http3: bool,
    /// Send all requests at once over HTTP/2 and 3, whatever their priority
    ///
    /// Without it, requests of low priority wait for the first render, two at a time, as in Chromium. Over HTTP/1.1 they always
    /// wait.
    #[arg(long)]
    pub(super) no_hold_back: bool,
    /// All resources of a page are on the host of its document
    #[arg(long)]
    pub(super) single_host: bool,
    /// UDP payload of a full QUIC packet
    #[arg(long, value_name = "BYTES", default_value = "1350", value_parser = values::size::<u16>(1200..=65_527))]
    pub(super) datagram_size: u16,
    /// Number of pages, from the first of the corpus [default: all]
    #[arg(long, value_name = "N", value_parser = values::positive(1_000_000))]
    pub(super) pages: Option<NonZeroUsize>,
    /// Loads of each page with different random numbers, averaged
    #[arg(long, value_name = "N", default_value = "1", value_parser = values::count::<u32>(1..=1000))]
    pub(super) repeats: u32,
    /// Random seed
    #[arg(long, default_value = "1", value_parser = units::seed)]
    pub(super) seed: u64,
    /// Network whose waterfalls the page has [default: the first]
    #[arg(long, value_name = "NAME")]
    pub(super) waterfall: Option<String>,
    /// Parallel simulations [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    pub(super) jobs: Option<NonZeroUsize>,
    /// Directory for loads.ndjson, report.html, report.svg, first-render.svg and summary.json
    #[arg(long, value_name = "DIR", default_value = "compare")]
    pub(super) out: PathBuf,
    #[command(flatten)]
    pub(super) figure: FigureArguments,
    /// Overwrite the files of an earlier run
    #[arg(long)]
    pub(super) force: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl Arguments {
    /// Returns an error if there are no third parties that could lack a version of HTTP.
    pub(super) fn check_hosts(&self) -> Result<(), Failure> {
        if self.single_host && self.upgrade.contains(&Upgrade::FirstParty) {
            return Err(Failure::Usage(
                "--upgrade first-party: with --single-host, no resource is of a third party, so it is the same as `all` (expected one of both options)"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
