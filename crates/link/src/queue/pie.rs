//! Proportional integral controller enhanced (RFC 8033), with the enhancements of its §5 that Linux has as well.
//!
//! Each `UPDATE`, a drop probability rises with the queue delay's distance from `target` and with its growth (§4.2). Arriving
//! packets are dropped with that probability (§4.1), those of the first burst aside (§4.4).
//!
//! | rule | section |
//! |---|---|
//! | scaled steps while the probability is low | §4.2, §5.4 of the text on auto-tuning |
//! | no drop while the queue holds two packets, or delay and probability are low | §4.1 |
//! | burst allowance | §4.4 |
//! | marks in place of drops below 10 % | §5.1 |
//! | steps of 2 % at most above 10 % | §5.5 |
//! | no drop for a while after one: `accu_prob` | §5.4 |
//!
//! The queue delay is the time for which the packet at the head has waited, as §4.3 permits in place of a departure rate.

use core::time::Duration;

use super::{
    Pie, ResolvedLimit, Sink,
    fifo::{Fifo, Source},
    updates::Updates,
};
use lastbyte_units::nanos;

use crate::{
    Count, DropReason, Event, Observer, Rate, Time,
    packet::Item,
    random::{Component, Random},
};

/// `T_UPDATE`: RFC 8033 §4.2.
const UPDATE: Duration = Duration::from_millis(15);
/// `alpha` and `beta`, per second of delay: RFC 8033 §4.2.
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// A probability below this with no delay is zero.
const NEGLIGIBLE: f64 = 1e-9;

/// The probability and the state from which it is computed.
#[derive(Clone, Debug)]
struct Control {
    /// In seconds.
    target: f64,
    burst: u64,
    probability: f64,
    /// In seconds.
    delay_before: f64,
    burst_left: u64,
    /// `accu_prob_` of RFC 8033 §5.4.
    accumulated: f64,
}

impl Control {
    fn new(config: &Pie) -> Self {
        Self {
            target: config.target.as_secs_f64(),
            burst: nanos(config.burst),
            probability: 0.0,
            delay_before: 0.0,
            burst_left: nanos(config.burst),
            accumulated: 0.0,
        }
    }

    /// `calculate_drop_prob`. Returns whether the next update with the same delay would change anything.
    fn update(&mut self, delay: f64) -> bool {
        let before = (self.probability, self.delay_before, self.burst_left);
        let mut step = ALPHA * (delay - self.target) + BETA * (delay - self.delay_before);
        step /= match self.probability {
            p if p < 0.000_001 => 2048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if delay == 0.0 && self.delay_before == 0.0 {
            self.probability *= 0.98;
            if self.probability < NEGLIGIBLE {
                self.probability = 0.0;
            }
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        let half = self.target / 2.0;
        self.burst_left = self.burst_left.saturating_sub(nanos(UPDATE));
        if self.probability == 0.0 && delay < half && self.delay_before < half {
            self.burst_left = self.burst;
            self.accumulated = 0.0;
        }
        self.delay_before = delay;
        (self.probability, self.delay_before, self.burst_left) != before
    }

    /// `drop_early`: whether a packet that arrives is to be dropped or marked.
    fn is_chosen(&mut self, queue: Count, unit: f64) -> bool {
        if self.burst_left > 0
            || self.delay_before < self.target / 2.0 && self.probability < 0.2
            || queue.packets <= 2
        {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < 0.85 {
            return false;
        }
        let is_chosen = self.accumulated >= 8.5 || unit < self.probability;
        if is_chosen {
            self.accumulated = 0.0;
        }
        is_chosen
    }
}

/// A FIFO queue with PIE.
#[derive(Debug)]
pub(crate) struct PieQueue<T> {
    fifo: Fifo<T>,
    limit: ResolvedLimit,
    has_ecn: bool,
    control: Control,
    updates: Updates,
    random: Random,
}

impl<T> PieQueue<T> {
    pub(super) fn new(config: &Pie, nominal: Rate, seed: u64) -> Self {
        Self {
            fifo: Fifo::new(),
            limit: ResolvedLimit::new(config.limit, nominal),
            has_ecn: config.ecn,
            control: Control::new(config),
            updates: Updates::new(UPDATE),
            random: Random::new(seed, Component::Aqm, 0),
        }
    }

    fn update(&mut self, now: Time) {
        let head = self.fifo.head().map(|item| item.queued_at);
        let control = &mut self.control;
        self.updates
            .on_delay(now, head, |delay| control.update(delay));
    }

    pub(super) fn enqueue<O: Observer<T>>(
        &mut self,
        now: Time,
        mut item: Item<T>,
        is_idle: bool,
        sink: &mut Sink<'_, O>,
    ) {
        self.update(now);
        let depth = self.fifo.depth();
        if !is_idle {
            if !self.limit.holds_with(depth, item.packet.bytes) {
                return sink.drop(now, DropReason::QueueFull, &item, depth);
            }
            if self.control.is_chosen(depth, self.random.unit(item.tag)) {
                let may_mark = self.has_ecn && self.control.probability < 0.1;
                if !(may_mark && item.packet.ecn.is_capable()) {
                    return sink.drop(now, DropReason::Aqm, &item, depth);
                }
                sink.mark(now, &mut item, depth);
            }
        }
        let mut after = depth;
        after.add(item.packet.bytes);
        sink.emit(now, Event::Queued, &item, after);
        self.fifo.push(item);
    }

    pub(super) fn dequeue(&mut self, now: Time) -> Option<Item<T>> {
        self.update(now);
        self.fifo.pop()
    }

    pub(super) const fn depth(&self) -> Count {
        self.fifo.depth()
    }
}

#[cfg(test)]
mod tests;
