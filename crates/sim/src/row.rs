//! The figures of a transfer, for the tables and the JSON output of `lastbyte sim`.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_http3::{Code, StallLimit};
use lastbyte_link::DropReason;
use lastbyte_quic::close::CloseReason;
use lastbyte_record::json::Object;
use lastbyte_scenario::Handshake;

use crate::outcome::{ArrivalsOutcome, Completion, Outcome, Progress};

/// What a simulation is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The arm's spec.
    pub arm: String,
    /// The network's name.
    pub network: String,
    /// The size of the first response, in bytes.
    pub size_bytes: u64,
    /// The seed.
    pub seed: u64,
    /// The kind of handshake.
    pub handshake: Handshake,
}

/// The figures of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The simulation.
    pub label: Label,
    /// Index of the flow in the scenario.
    pub flow: usize,
    /// Time to last byte of the first response: from the client's first datagram until all bytes had arrived; `None` if incomplete.
    pub ttlb: Option<Duration>,
    /// Time to first byte.
    pub ttfb: Option<Duration>,
    /// Duration of the client's handshake.
    pub handshake: Option<Duration>,
    /// From the client's first datagram to its request.
    pub first_request: Option<Duration>,
    /// The round-trip time of the path without queues.
    pub path_rtt: Duration,
    /// Packets that the sender of the data sent: the server, or the client that uploads.
    pub packets_sent: u64,
    /// Of those, declared lost.
    pub packets_lost: u64,
    /// Of those, acknowledged later.
    pub packets_lost_spuriously: u64,
    /// Bytes of UDP payload that it sent.
    pub bytes_sent: u64,
    /// Of those, declared lost.
    pub bytes_lost: u64,
    /// Stream bytes retransmitted.
    pub bytes_retransmitted: u64,
    /// Congestion events: reductions of the window.
    pub loss_episodes: u64,
    /// Probe timeouts that expired.
    pub probe_timeouts: u64,
    /// When startup ended, from the client's first datagram; `None` if it did not.
    pub startup_exit: Option<Duration>,
    /// The window just before startup ended, in bytes.
    pub startup_exit_window: Option<u64>,
    /// The window at the end, in bytes.
    pub window: u64,
    /// The minimum round-trip time.
    pub rtt_min: Duration,
    /// Utilisation of the bottleneck by all flows, from the start of the first response to the last byte, 0 to 1; `None`
    /// without a rate.
    pub utilisation: Option<f64>,
    /// The longest time in this span that the bottleneck was idle.
    pub idle_gap_max: Duration,
    /// Peak size of the bottleneck queue, in bytes.
    pub queue_peak_bytes: u64,
    /// Packets dropped by the queue, of all flows.
    pub queue_drops: u64,
    /// Packets that the bottleneck dropped for any reason, of all flows.
    pub link_drops: u64,
    /// When these numbers of bytes had arrived.
    pub progress: Vec<Progress>,
    /// From request to last byte, of the other responses on the connection.
    pub next_ttlb: Vec<Option<Duration>>,
    /// Transfers of cross traffic that arrived at random during the simulation.
    pub arrivals: Vec<ArrivalsOutcome>,
    /// Why the connection ended early, if it did: a clause.
    pub failure: Option<String>,
}

/// Flow-completion times of transfers of similar size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletionTimes {
    /// The transfers are smaller than this, in bytes, and not in a class before; `None` for all others.
    pub below: Option<u64>,
    /// Their number.
    pub count: u64,
    /// The mean.
    pub mean: Duration,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile: the smallest time that at least 99 % do not exceed; `None` of fewer than 100 transfers.
    pub p99: Option<Duration>,
    /// The mean slowdown: the time in relation to that of the empty path.
    pub slowdown_mean: f64,
    /// Its 99th percentile; `None` of fewer than 100 transfers.
    pub slowdown_p99: Option<f64>,
}

/// The limits of the classes: short transfers, and long ones.
const SIZE_CLASSES: [Option<u64>; 3] = [Some(100_000), Some(1_000_000), None];

impl CompletionTimes {
    /// The class of sizes in words, such as `below 100kB`.
    pub fn name(&self) -> String {
        let below = self.below.map(lastbyte_units::show_bytes);
        below.map_or_else(|| "others".to_owned(), |below| format!("below {below}"))
    }

    /// The times by size; classes without transfers are left out.
    pub fn by_size(arrivals: &ArrivalsOutcome) -> Vec<Self> {
        let mut from = 0;
        let classes = SIZE_CLASSES.iter().filter_map(|below| {
            let to = below.unwrap_or(u64::MAX);
            let of_class = arrivals.completions.iter();
            let of_class = of_class.filter(|one| (from..to).contains(&one.bytes));
            let slowdown = |one: &Completion| one.time.as_secs_f64() / one.alone.as_secs_f64();
            let (mut times, mut slowdowns): (Vec<Duration>, Vec<f64>) =
                of_class.map(|one| (one.time, slowdown(one))).unzip();
            from = to;
            times.sort_unstable();
            slowdowns.sort_by(f64::total_cmp);
            let rank = |share: usize| (times.len() * share).div_ceil(100).max(1) - 1;
            let at = |share: usize| times.get(rank(share)).copied();
            let p50 = at(50)?;
            let has_p99 = times.len() >= 100;
            Some(Self {
                below: *below,
                count: times.len() as u64,
                mean: times.iter().sum::<Duration>() / u32::try_from(times.len()).ok()?,
                p50,
                p99: at(99).filter(|_| has_p99),
                slowdown_mean: slowdowns.iter().sum::<f64>() / slowdowns.len() as f64,
                slowdown_p99: slowdowns.get(rank(99)).copied().filter(|_| has_p99),
            })
        });
        classes.collect()
    }
}

/// Why a connection ended early.
fn why(reason: CloseReason) -> String {
    let cancelled = Code::REQUEST_CANCELLED.get();
    if reason == (CloseReason::LocalApplication { code: cancelled }) {
        let StallLimit { timeout, bytes } = StallLimit::default();
        return format!(
            "the server cancelled a transfer of less than {bytes} bytes in {} s, its limit for stalled clients",
            timeout.as_secs()
        );
    }
    reason.to_string()
}

impl Row {
    /// The rows of an outcome, one for each flow.
    pub fn all(label: &Label, outcome: &Outcome) -> Vec<Self> {
        let rows = outcome.flows.iter().enumerate().map(|(flow, one)| {
            let first = one.responses.first();
            let link = outcome.bottleneck_link();
            let server = one.server.as_ref();
            let recovery = server.map(|server| server.recovery).unwrap_or_default();
            let congestion = server.map(|server| &server.congestion);
            let startup = congestion.map(|state| &state.statistics);
            let since_start = |at: Time| at.since(one.started_at);
            Self {
                label: label.clone(),
                flow,
                ttlb: first.and_then(|first| first.last_byte),
                ttfb: first.and_then(|first| first.first_byte),
                handshake: one.handshake,
                first_request: one.first_request,
                path_rtt: one.path_rtt,
                packets_sent: recovery.packets_sent,
                packets_lost: recovery.packets_lost,
                packets_lost_spuriously: recovery.packets_late,
                bytes_sent: recovery.bytes_sent,
                bytes_lost: recovery.bytes_lost,
                bytes_retransmitted: server.map_or(0, |server| server.streams.data_resent),
                loss_episodes: startup.map_or(0, |one| one.loss_episodes),
                probe_timeouts: recovery.probe_timeouts,
                startup_exit: startup
                    .and_then(|one| one.startup_exited_at)
                    .map(since_start),
                startup_exit_window: startup.and_then(|one| one.window_exiting_startup),
                window: congestion.map_or(0, |state| state.window),
                rtt_min: server.map_or(Duration::ZERO, |server| server.rtt_min),
                utilisation: outcome.bottleneck.utilisation,
                idle_gap_max: outcome.bottleneck.idle_gap_max,
                queue_peak_bytes: link.queue_peak_bytes,
                queue_drops: link.dropped(DropReason::QueueFull).packets
                    + link.dropped(DropReason::CoDel).packets
                    + link.dropped(DropReason::Aqm).packets,
                link_drops: link.dropped_total().packets,
                progress: one.progress.clone(),
                next_ttlb: one
                    .responses
                    .iter()
                    .skip(1)
                    .map(|next| next.last_byte)
                    .collect(),
                arrivals: outcome.arrivals.clone(),
                failure: one.failure.map(why),
            }
        });
        rows.collect()
    }

    /// A time in round trips of the path; `None` on a path without delay.
    pub fn in_round_trips(&self, span: Duration) -> Option<f64> {
        (!self.path_rtt.is_zero()).then(|| span.as_secs_f64() / self.path_rtt.as_secs_f64())
    }

    /// Writes the row as a JSON object. Missing values are `null`.
    pub fn write_json(&self, text: &mut String) {
        let mut object = Object::new(text);
        let ms = |span: Option<Duration>| span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3);
        let rtts = |span: Option<Duration>| {
            span.and_then(|span| self.in_round_trips(span))
                .unwrap_or(f64::NAN)
        };
        object
            .text("arm", &self.label.arm)
            .text("network", &self.label.network)
            .integer("size_bytes", self.label.size_bytes)
            .integer("seed", self.label.seed)
            .integer("flow", self.flow as u64)
            .text("handshake", self.label.handshake.name())
            .number("ttlb_ms", ms(self.ttlb), 6)
            .number("ttfb_ms", ms(self.ttfb), 6)
            .number("ttfb_rtts", rtts(self.ttfb), 6)
            .number("handshake_ms", ms(self.handshake), 6)
            .number("request_ms", ms(self.first_request), 6)
            .number("request_rtts", rtts(self.first_request), 6)
            .number("path_rtt_ms", ms(Some(self.path_rtt)), 6)
            .integer("packets_sent", self.packets_sent)
            .integer("packets_lost", self.packets_lost)
            .integer("packets_lost_spuriously", self.packets_lost_spuriously)
            .integer("bytes_sent", self.bytes_sent)
            .integer("bytes_lost", self.bytes_lost)
            .integer("bytes_retransmitted", self.bytes_retransmitted)
            .integer("loss_episodes", self.loss_episodes)
            .integer("probe_timeouts", self.probe_timeouts)
            .number("startup_exit_ms", ms(self.startup_exit), 6);
        match self.startup_exit_window {
            Some(window) => object.integer("startup_exit_window_bytes", window),
            None => object.number("startup_exit_window_bytes", f64::NAN, 0),
        };
        object
            .integer("window_bytes", self.window)
            .number("rtt_min_ms", ms(Some(self.rtt_min)), 6)
            .number("utilisation", self.utilisation.unwrap_or(f64::NAN), 6)
            .number("idle_gap_ms", ms(Some(self.idle_gap_max)), 6)
            .integer("queue_peak_bytes", self.queue_peak_bytes)
            .integer("queue_drops", self.queue_drops)
            .integer("link_drops", self.link_drops);
        {
            let mut progress = object.array("progress");
            for mark in &self.progress {
                progress
                    .object()
                    .integer("bytes", mark.bytes)
                    .number("ms", ms(mark.after), 6);
            }
        }
        if !self.next_ttlb.is_empty() {
            let mut next = object.array("next_ttlb_ms");
            for span in &self.next_ttlb {
                next.number(ms(*span), 6);
            }
        }
        if !self.arrivals.is_empty() {
            let mut sources = object.array("arrivals");
            for arrivals in &self.arrivals {
                write_arrivals(arrivals, &mut sources.object());
            }
        }
        if let Some(failure) = &self.failure {
            object.text("failure", failure);
        }
    }
}

/// Writes the members of the object of transfers that arrive at random: their number, and their times by size.
pub fn write_arrivals(arrivals: &ArrivalsOutcome, object: &mut Object<'_>) {
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    object
        .integer("completed", arrivals.completions.len() as u64)
        .integer("open", arrivals.open)
        .integer("refused", arrivals.refused);
    let mut classes = object.array("completion_times");
    for class in CompletionTimes::by_size(arrivals) {
        let mut one = classes.object();
        if let Some(below) = class.below {
            one.integer("below_bytes", below);
        }
        one.integer("count", class.count)
            .number("mean_ms", ms(class.mean), 6)
            .number("p50_ms", ms(class.p50), 6)
            .number("slowdown_mean", class.slowdown_mean, 6);
        if let (Some(time), Some(slowdown)) = (class.p99, class.slowdown_p99) {
            one.number("p99_ms", ms(time), 6)
                .number("slowdown_p99", slowdown, 6);
        }
    }
}
