//! Dual-queue coupled AQM (RFC 9332), with `DualPI2` of its Appendix A.
//!
//! L4S packets, ECT(1) and CE, wait in a queue of their own, which is kept short by marks; the others share the classic
//! queue. A PI controller on the classic queue's delay gives a base probability *p'*: classic packets are dropped or marked
//! with *p'²*, L4S packets are marked with at least *k p'* (§2.4), so that scalable and classic flows get similar rates.
//!
//! | rule | section |
//! |---|---|
//! | base probability, each `UPDATE` | A.1, `dualpi2_update` |
//! | marks of the L4S queue: a ramp from 0.8 to 1.2 ms of waiting, for more than one packet | A.1, `laqm` |
//! | marks and drops at even distances: `recur` | A.1 |
//! | overload, where *k p'* reaches 1: L4S packets are dropped as well | A.2 |
//!
//! The scheduler is a weighted round robin in bytes with a tenth for the classic queue, as in Linux; A.1 leaves it open. The
//! classic queue's delay is the time for which its head has waited.

use core::time::Duration;

use lastbyte_units::nanos;

use super::{
    DualPi2, ResolvedLimit, Sink,
    fifo::{Fifo, Source},
    updates::Updates,
};

use crate::{Count, DropReason, Ecn, Event, Observer, Rate, Time, packet::Item};

/// `Tupdate`: A.1.
const UPDATE: Duration = Duration::from_millis(15);
/// `alpha` and `beta` for a `RTT_max` of 100 ms: A.1.
const ALPHA: f64 = 0.15;
const BETA: f64 = 3.0;
/// The coupling factor `k`.
const COUPLING: f64 = 2.0;
/// `minTh` and `range` of the L4S queue's ramp, in nanoseconds: A.1.
const RAMP_START: f64 = 800_000.0;
const RAMP: f64 = 400_000.0;
/// The weights of the queues, in percent.
const WEIGHT_CLASSIC: i64 = 10;
const WEIGHT_L4S: i64 = 90;

/// Events at even distances.
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(f64);

impl Recurrence {
    /// `recur`: `true` as often as `likelihood` says.
    fn happens(&mut self, likelihood: f64) -> bool {
        self.0 += likelihood;
        let happens = self.0 > 1.0;
        if happens {
            self.0 -= 1.0;
        }
        happens
    }
}

/// The base probability, and the probabilities derived from it.
#[derive(Clone, Debug)]
struct Control {
    target: f64,
    base: f64,
    /// In seconds.
    delay_before: f64,
}

impl Control {
    /// `dualpi2_update`. Returns whether the next update with the same delay would change anything.
    fn update(&mut self, delay: f64) -> bool {
        let before = (self.base, self.delay_before);
        let step = ALPHA * (delay - self.target) + BETA * (delay - self.delay_before);
        self.base = (self.base + step).clamp(0.0, 1.0);
        self.delay_before = delay;
        (self.base, self.delay_before) != before
    }

    /// `p_C`.
    fn classic(&self) -> f64 {
        self.base * self.base
    }

    /// `p_CL`.
    fn coupled(&self) -> f64 {
        COUPLING * self.base
    }
}

/// `laqm`: the probability of a mark by an L4S queue's own delay.
fn ramp(waited: Duration) -> f64 {
    ((nanos(waited) as f64 - RAMP_START) / RAMP).clamp(0.0, 1.0)
}

/// An L4S and a classic queue, coupled.
#[derive(Debug)]
pub(crate) struct DualPi2Queue<T> {
    classic: Fifo<T>,
    l4s: Fifo<T>,
    limit: ResolvedLimit,
    control: Control,
    updates: Updates,
    marks: Recurrence,
    classic_events: Recurrence,
    l4s_drops: Recurrence,
    /// By how much the classic queue is behind its share, in bytes times percent. 0 while one of the queues is empty.
    credit: i64,
}

impl<T> DualPi2Queue<T> {
    pub(super) fn new(config: &DualPi2, nominal: Rate) -> Self {
        Self {
            classic: Fifo::new(),
            l4s: Fifo::new(),
            limit: ResolvedLimit::new(config.limit, nominal),
            control: Control {
                target: config.target.as_secs_f64(),
                base: 0.0,
                delay_before: 0.0,
            },
            updates: Updates::new(UPDATE),
            marks: Recurrence::default(),
            classic_events: Recurrence::default(),
            l4s_drops: Recurrence::default(),
            credit: 0,
        }
    }

    pub(super) const fn depth(&self) -> Count {
        let (classic, l4s) = (self.classic.depth(), self.l4s.depth());
        Count {
            packets: classic.packets + l4s.packets,
            bytes: classic.bytes + l4s.bytes,
        }
    }

    fn update(&mut self, now: Time) {
        let head = self.classic.head().map(|item| item.queued_at);
        let control = &mut self.control;
        self.updates
            .on_delay(now, head, |delay| control.update(delay));
    }

    /// `dualpi2_enqueue`.
    pub(super) fn enqueue<O: Observer<T>>(
        &mut self,
        now: Time,
        item: Item<T>,
        is_idle: bool,
        sink: &mut Sink<'_, O>,
    ) {
        self.update(now);
        let mut depth = self.depth();
        if !is_idle && !self.limit.holds_with(depth, item.packet.bytes) {
            return sink.drop(now, DropReason::QueueFull, &item, depth);
        }
        depth.add(item.packet.bytes);
        sink.emit(now, Event::Queued, &item, depth);
        match item.packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.push(item),
            Ecn::NotEct | Ecn::Ect0 => self.classic.push(item),
        }
    }

    /// Whether the L4S queue is served next.
    fn serves_l4s(&mut self) -> bool {
        let (classic, l4s) = (self.classic.head(), self.l4s.head());
        match (classic, l4s) {
            (Some(_), Some(_)) => self.credit <= 0,
            (_, l4s) => {
                self.credit = 0;
                l4s.is_some()
            }
        }
    }

    /// `dualpi2_dequeue`. Returns `None` if all packets were dropped.
    pub(super) fn dequeue<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        self.update(now);
        loop {
            let is_l4s = self.serves_l4s();
            let queue = if is_l4s {
                &mut self.l4s
            } else {
                &mut self.classic
            };
            let behind = queue.depth().packets.saturating_sub(1);
            let mut item = queue.pop()?;
            let bytes = i64::from(item.packet.bytes);
            self.credit += if is_l4s {
                WEIGHT_CLASSIC * bytes
            } else {
                -WEIGHT_L4S * bytes
            };
            let is_dropped = if is_l4s {
                self.judge_l4s(now, &mut item, behind > 0, sink)
            } else {
                self.judge_classic(now, &mut item, sink)
            };
            if !is_dropped {
                return Some(item);
            }
            sink.drop(now, DropReason::Aqm, &item, self.depth());
        }
    }

    /// Marks an L4S packet if it is to be marked. Returns whether it is to be dropped.
    fn judge_l4s<O: Observer<T>>(
        &mut self,
        now: Time,
        item: &mut Item<T>,
        has_followers: bool,
        sink: &mut Sink<'_, O>,
    ) -> bool {
        let coupled = self.control.coupled();
        let own = if has_followers {
            ramp(now.since(item.queued_at))
        } else {
            0.0
        };
        let is_overloaded = coupled >= 1.0;
        if is_overloaded && self.l4s_drops.happens(self.control.classic()) {
            return true;
        }
        if self.marks.happens(own.max(coupled).min(1.0)) {
            sink.mark(now, item, self.depth());
        }
        false
    }

    /// Marks a classic packet if it is to be marked. Returns whether it is to be dropped.
    fn judge_classic<O: Observer<T>>(
        &mut self,
        now: Time,
        item: &mut Item<T>,
        sink: &mut Sink<'_, O>,
    ) -> bool {
        if !self.classic_events.happens(self.control.classic()) {
            return false;
        }
        let is_overloaded = self.control.coupled() >= 1.0;
        if item.packet.ecn.is_capable() && !is_overloaded {
            sink.mark(now, item, self.depth());
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests;
