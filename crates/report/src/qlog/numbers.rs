//! The numbers that a connection log would have of a sender, at moments of its transfer.
//!
//! They are those of `lastbyte_record::connection_log`, as far as a file tells them. Times that a log rounds to milliseconds are rounded.

use std::collections::{BTreeMap, BTreeSet};

use lastbyte_record::connection_log::keys;

use super::anatomy::Anatomy;
use crate::transfer::parts::Part;

/// The size of the first moment, in bytes. Each further one has √2 times the data of the one before.
const FIRST: f64 = 50e3;
/// Packets that were declared lost, of which late acknowledgments are counted.
const LOST_MAX: usize = 1 << 16;

/// A sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sender {
    /// When the first request arrived, in ms.
    pub started: f64,
    /// Responses with data.
    pub responses: usize,
    /// Whether all data were acknowledged.
    pub is_complete: bool,
    /// The transfer so far, when its acknowledged data reached 50 kB, and each time they grew by √2. The last one is its end.
    pub moments: Vec<Moment>,
}

/// A transfer up to a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moment {
    /// The time, in ms.
    pub at: f64,
    /// Numbers by keys of the connection log. One that the file does not tell is absent.
    pub numbers: BTreeMap<&'static str, f64>,
}

/// What an acknowledged packet says about the transfer so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Stream data sent, without retransmissions.
    pub(super) data: u64,
    /// Packets sent, up to the acknowledged one.
    pub(super) packets: u64,
}

/// Round-trip times of the sender, in ms.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrips {
    pub(super) minimum: Option<f64>,
    pub(super) smoothed: Option<f64>,
    pub(super) variance: Option<f64>,
    pub(super) latest: Option<f64>,
}

/// Counts what a connection log counts.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub(super) acked: u64,
    pub(super) ack_frames: u64,
    pub(super) probe_timeouts: u64,
    pub(super) confirmed: Option<f64>,
    pub(super) episodes: u64,
    pub(super) responses: BTreeSet<u64>,
    pub(super) rtt: RoundTrips,
    /// Packets declared lost.
    pub(super) lost: u64,
    /// States of congestion control are known.
    pub(super) has_states: bool,
    late: u64,
    lost_by_time: u64,
    lost_without_reason: bool,
    outstanding_losses: BTreeSet<u64>,
    window: Option<f64>,
    window_before: Option<f64>,
    window_at_exit: f64,
    window_min: Option<f64>,
    window_max: f64,
    moments: Vec<Moment>,
    newest: Moment,
    /// Packets sent at the newest moment.
    sent: u64,
    /// Of what the newest moment was measured.
    measured: Option<(Progress, u64, f64)>,
}

impl Numbers {
    /// A packet was declared lost, for this reason.
    pub(super) fn lost(&mut self, packets: u64, number: Option<u64>, trigger: Option<&str>) {
        self.lost += packets;
        match trigger {
            Some("time_threshold") => self.lost_by_time += packets,
            Some(_) => {}
            None => self.lost_without_reason = true,
        }
        if let Some(number) = number.filter(|_| self.outstanding_losses.len() < LOST_MAX) {
            self.outstanding_losses.insert(number);
        }
    }

    /// Whether a packet was declared lost, and not acknowledged since.
    pub(super) fn is_lost(&self, number: u64) -> bool {
        self.outstanding_losses.contains(&number)
    }

    /// Packets are acknowledged: lost ones among them late.
    pub(super) fn acknowledged(&mut self, low: u64, high: u64) {
        while let Some(number) = self.outstanding_losses.range(low..=high).next().copied() {
            self.outstanding_losses.remove(&number);
            self.late += 1;
            self.acked += 1;
        }
    }

    pub(super) fn window(&mut self, window: f64) {
        self.window_before = self.window.replace(window);
        self.window_max = self.window_max.max(window);
        if self.window_before.is_some_and(|before| window < before) {
            self.window_min = Some(self.window_min.map_or(window, |least| least.min(window)));
        }
    }

    pub(super) fn startup_ended(&mut self) {
        self.has_states = true;
        if self.window_at_exit == 0.0 {
            let windows = self.window.into_iter().chain(self.window_before);
            self.window_at_exit = windows.fold(0.0, f64::max);
        }
    }

    /// The metrics after an acknowledgment belong to its moment.
    pub(super) fn on_metrics(&mut self, now: f64) {
        if let Some((progress, sent, request)) = self.measured
            && self.newest.at.total_cmp(&now).is_eq()
        {
            self.measure(now, progress, sent, request);
        }
    }

    /// Data were acknowledged.
    pub(super) fn measure(&mut self, now: f64, progress: Progress, sent: u64, request: f64) {
        self.sent = sent;
        self.measured = Some((progress, sent, request));
        let numbers = &mut self.newest.numbers;
        numbers.clear();
        let rtt = self.rtt;
        let data = Some(progress.data as f64).filter(|data| *data > 0.0);
        let if_states = |value: f64| self.has_states.then_some(value);
        let lost_by_time = (!self.lost_without_reason).then_some(self.lost_by_time as f64);
        for (key, value) in [
            (keys::CONTENT_LENGTH.name(), data),
            (keys::TTLB.name(), Some((now - request).round())),
            (keys::NUM_PACKETS_SENT.name(), Some(progress.packets as f64)),
            (keys::NUM_PACKETS_LOST.name(), Some(self.lost as f64)),
            (keys::NUM_PACKETS_LOST_TIME_THRESHOLD.name(), lost_by_time),
            (
                keys::NUM_PACKETS_ACK_RECEIVED.name(),
                Some(self.acked as f64),
            ),
            (keys::NUM_PACKETS_LATE_ACKED.name(), Some(self.late as f64)),
            ("num-frames-received.ack", Some(self.ack_frames as f64)),
            (keys::NUM_PTOS.name(), Some(self.probe_timeouts as f64)),
            (
                keys::HANDSHAKE_CONFIRMED_MSEC.name(),
                self.confirmed.map(f64::round),
            ),
            (keys::RTT_MINIMUM.name(), rtt.minimum.map(f64::round)),
            (keys::RTT_SMOOTHED.name(), rtt.smoothed.map(f64::round)),
            (keys::RTT_VARIANCE.name(), rtt.variance.map(f64::round)),
            (keys::RTT_LATEST.name(), rtt.latest.map(f64::round)),
            (keys::CC_CWND.name(), self.window),
            (
                keys::CC_CWND_EXITING_SLOW_START.name(),
                if_states(self.window_at_exit),
            ),
            (keys::CC_CWND_MINIMUM.name(), self.window_min),
            (
                keys::CC_CWND_MAXIMUM.name(),
                self.window.map(|_| self.window_max),
            ),
            (
                keys::CC_NUM_LOSS_EPISODES.name(),
                (self.episodes > 0 || self.lost == 0).then_some(self.episodes as f64),
            ),
            (keys::ANATOMY_HANDSHAKE.name(), Some(request)),
        ] {
            if let Some(value) = value {
                numbers.insert(key, value);
            }
        }
        self.newest.at = now;
        if self
            .moments
            .last()
            .is_some_and(|last| last.at.total_cmp(&now).is_eq())
        {
            self.moments.pop();
        }
        let next = self.moments.last().map_or(FIRST, |last| {
            last.numbers[keys::CONTENT_LENGTH.name()] * core::f64::consts::SQRT_2
        });
        if progress.data as f64 >= next {
            self.moments.push(self.newest.clone());
        }
    }

    /// The sender; `None` if no data were acknowledged.
    pub(super) fn finish(
        mut self,
        is_complete: bool,
        has_losses: bool,
        anatomy: &Anatomy,
    ) -> Option<Sender> {
        let mut last = self.newest;
        let started = *last.numbers.get(keys::ANATOMY_HANDSHAKE.name())?;
        last.numbers
            .insert(keys::NUM_PACKETS_SENT.name(), self.sent as f64);
        if is_complete && let Some(times) = anatomy.times() {
            let is_pacing_known = times[Part::Unlimited as usize] == 0.0;
            for (key, part, is_known) in [
                (keys::ANATOMY_PACING.name(), Part::Pacing, is_pacing_known),
                (keys::ANATOMY_REPAIR.name(), Part::Repair, true),
                (keys::ANATOMY_LAST_ACK.name(), Part::LastAck, true),
            ] {
                if is_known {
                    last.numbers.insert(key, times[part as usize]);
                }
            }
        }
        self.moments.retain(|moment| moment.at < last.at);
        self.moments.push(last);
        if !has_losses {
            for moment in &mut self.moments {
                moment
                    .numbers
                    .retain(|key, _| !key.contains("lost") && !key.contains("late"));
            }
        }
        Some(Sender {
            started,
            responses: self.responses.len(),
            is_complete,
            moments: self.moments,
        })
    }
}
