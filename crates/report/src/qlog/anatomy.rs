//! Where the time of a transfer went, as its sender sees it.
//!
//! The definitions are those of `lastbyte_quic::anatomy`, as far as a file tells what limited the sender: from the first byte of a
//! request to the last acknowledgment of stream data, each span between two of these events has one reason: a packet is sent,
//! acknowledged or declared lost, or a probe timeout expires. The window counts as full if another packet of the largest size
//! does not fit. The pacer holds data back until the bytes sent have left at the pacing rate.

use crate::transfer::parts::{Part, Times, sentence};

/// The sender at the end of a span, before the event that ends it.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    pub(super) in_flight: u64,
    /// The congestion window; `None` before it is known.
    pub(super) window: Option<f64>,
    /// The size of the largest packet.
    pub(super) packet: u64,
    pub(super) is_flow_full: bool,
    /// Stream data sent so far, without retransmissions.
    pub(super) data: u64,
    pub(super) next_number: u64,
    /// When the pacer releases the next packet, in ms; `None` without a pacing rate.
    pub(super) paced_until: Option<f64>,
}

impl State {
    pub(super) fn is_window_full(&self) -> bool {
        self.window
            .is_some_and(|window| self.in_flight as f64 + self.packet as f64 > window)
    }
}

/// Measures a transfer.
#[derive(Debug, Default)]
pub(super) struct Anatomy {
    /// Time is counted until here; `None` before the request.
    counted_to: Option<f64>,
    started_at: f64,
    data: u64,
    /// Loss is under repair until a packet of this number or a later one is acknowledged.
    repaired_by: Option<u64>,
    /// Data sent again is outstanding until a packet of this number or a later one is acknowledged.
    resent_by: Option<u64>,
    /// The parts until stream data was last sent for the first time.
    parts: Times,
    /// The parts since then, if more stream data follows.
    since: Times,
    /// The parts since then, if none follows.
    tail: Times,
    /// The parts until the last packet with stream data was acknowledged.
    result: Times,
    /// Time in which the window was not known.
    unknown: f64,
}

impl Anatomy {
    /// The request starts, unless one has.
    pub(super) fn start(&mut self, now: f64, data: u64) {
        if self.counted_to.is_none() {
            self.counted_to = Some(now);
            self.started_at = now;
            self.data = data;
        }
    }

    pub(super) fn on_sent(&mut self, now: f64, state: &State) {
        self.count(now, state, false);
    }

    /// The packet of this number has stream data, all of it sent before.
    pub(super) fn on_resent(&mut self, number: u64) {
        self.resent_by = Some(number);
    }

    /// A packet was acknowledged for the first time.
    pub(super) fn on_acked(&mut self, now: f64, state: &State, highest: u64, has_data: bool) {
        self.count(now, state, false);
        self.repaired_by.take_if(|by| highest >= *by);
        self.resent_by.take_if(|by| highest >= *by);
        if has_data {
            self.result = self.parts;
            add(&mut self.result, &self.tail);
        }
    }

    pub(super) fn on_lost(&mut self, now: f64, state: &State) {
        self.count(now, state, false);
        self.repaired_by = Some(state.next_number);
    }

    pub(super) fn on_probe_timeout(&mut self, now: f64, state: &State) {
        self.count(now, state, true);
        self.repaired_by = Some(state.next_number);
    }

    /// The limit changed that blocks the sender.
    pub(super) fn on_limit(&mut self, now: f64, state: &State) {
        self.count(now, state, false);
    }

    fn count(&mut self, now: f64, state: &State, is_probe_timeout: bool) {
        let Some(from) = self.counted_to else {
            return;
        };
        if state.data > self.data {
            self.data = state.data;
            let since = core::mem::take(&mut self.since);
            add(&mut self.parts, &since);
            self.tail = Times::default();
        }
        let span = now - from;
        if span <= 0.0 {
            return;
        }
        self.counted_to = Some(now);
        let is_repair = is_probe_timeout || self.repaired_by.is_some();
        let tail = if is_repair || self.resent_by.is_some() {
            Part::Repair
        } else {
            Part::LastAck
        };
        self.tail[tail as usize] += span;
        let since = &mut self.since;
        if is_probe_timeout || (state.is_window_full() && is_repair) {
            since[Part::Repair as usize] += span;
        } else if state.is_window_full() {
            since[Part::Window as usize] += span;
        } else if state.is_flow_full {
            since[Part::FlowControl as usize] += span;
        } else if let Some(until) = state.paced_until {
            let paced = (until - from).clamp(0.0, span);
            since[Part::Pacing as usize] += paced;
            since[Part::Application as usize] += span - paced;
        } else {
            since[Part::Unlimited as usize] += span;
        }
        if state.window.is_none() {
            self.unknown += span;
        }
    }

    /// A sentence about the parts; `None` if the window was not known, or nothing was acknowledged.
    pub(super) fn sentence(&self) -> Option<String> {
        self.times().and_then(sentence)
    }

    /// The parts; `None` if the window was not known.
    pub(super) fn times(&self) -> Option<&Times> {
        let total: f64 = self.result.iter().sum();
        (self.unknown <= total * 0.01).then_some(&self.result)
    }

    /// When the request arrived, in ms; `None` before that.
    pub(super) fn started(&self) -> Option<f64> {
        self.counted_to.map(|_| self.started_at)
    }
}

fn add(times: &mut Times, others: &Times) {
    for (time, other) in times.iter_mut().zip(others) {
        *time += other;
    }
}
