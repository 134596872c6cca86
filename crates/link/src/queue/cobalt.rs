//! COBALT: the AQM of CAKE (`net/sched/sch_cake.c` of Linux), `CoDel` beside BLUE.
//!
//! The `CoDel` half drops or marks at decreasing intervals of `interval / √count` while the delay is above `target`, as RFC
//! 8289 does, but lets `count` fall one by one afterwards. The BLUE half reacts to overflow of the queue, which an
//! unresponsive flow causes: its drop probability rises with each overflow, and falls when the flow's queue runs empty.

use lastbyte_units::nanos;

use super::{CoDel, Sink, fifo::Source};
use crate::{DropReason, Observer, Time, packet::Item, random::Random};

/// `p_inc` and `p_dec` of `sch_cake.c`.
const BLUE_STEP_UP: f64 = 1.0 / 256.0;
const BLUE_STEP_DOWN: f64 = 1.0 / 4096.0;

/// The COBALT state of one queue: `struct cobalt_vars`.
#[derive(Clone, Debug)]
pub(super) struct Cobalt {
    target: u64,
    interval: u64,
    has_ecn: bool,
    random: Random,
    count: u32,
    is_dropping: bool,
    drop_next: Time,
    blue_probability: f64,
    blue_changed: Time,
}

impl Cobalt {
    pub(super) const fn new(config: &CoDel, random: Random) -> Self {
        Self {
            target: nanos(config.target),
            interval: nanos(config.interval),
            has_ecn: config.ecn,
            random,
            count: 0,
            is_dropping: false,
            drop_next: Time::ZERO,
            blue_probability: 0.0,
            blue_changed: Time::ZERO,
        }
    }

    /// `cobalt_control`. The inverse square roots of 0 and 1 are both 1.
    fn control_law(&self, from: Time) -> Time {
        let count = f64::from(self.count.max(1));
        from.plus((self.interval as f64 / libm::sqrt(count)) as u64)
    }

    /// `cobalt_queue_full`: a packet was dropped because the queue was full.
    pub(super) fn on_overflow(&mut self, now: Time) {
        if now.nanos_since(self.blue_changed) > self.target {
            self.blue_probability = (self.blue_probability + BLUE_STEP_UP).min(1.0);
            self.blue_changed = now;
        }
        self.is_dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// `cobalt_queue_empty`: the queue was served, and is empty.
    fn on_empty(&mut self, now: Time) {
        if self.blue_probability > 0.0 && now.nanos_since(self.blue_changed) > self.target {
            self.blue_probability = (self.blue_probability - BLUE_STEP_DOWN).max(0.0);
            self.blue_changed = now;
        }
        self.is_dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = self.control_law(self.drop_next);
        }
    }

    /// `cobalt_should_drop`: marks the packet if it is to be marked; returns whether it is to be dropped.
    fn judge<T, O: Observer<T>>(
        &mut self,
        now: Time,
        item: &mut Item<T>,
        queue: &impl Source<T>,
        sink: &mut Sink<'_, O>,
    ) -> bool {
        let is_above = now.nanos_since(item.queued_at) > self.target;
        let mut is_due = self.count > 0 && now >= self.drop_next;
        let mut is_dropped = false;
        if is_above {
            if !self.is_dropping {
                self.is_dropping = true;
                self.drop_next = self.control_law(now);
            }
            self.count = self.count.max(1);
        } else {
            self.is_dropping = false;
        }
        if is_due && self.is_dropping {
            if self.has_ecn && item.packet.ecn.is_capable() {
                sink.mark(now, item, queue.depth());
            } else {
                is_dropped = true;
            }
            self.count = self.count.saturating_add(1);
            self.drop_next = self.control_law(self.drop_next);
        } else {
            while is_due {
                self.count -= 1;
                self.drop_next = self.control_law(self.drop_next);
                is_due = self.count > 0 && now >= self.drop_next;
            }
        }
        if self.blue_probability > 0.0 {
            is_dropped |= self.random.happens(item.tag, self.blue_probability);
        }
        if self.count == 0 {
            self.drop_next = now.plus(self.interval);
        } else if now > self.drop_next && !is_dropped {
            self.drop_next = now;
        }
        is_dropped
    }

    /// Dequeues the next packet to send. The last packet of a queue may be marked, but is not dropped.
    pub(super) fn dequeue<T, O: Observer<T>>(
        &mut self,
        now: Time,
        queue: &mut impl Source<T>,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        loop {
            let Some(mut item) = queue.pop() else {
                self.on_empty(now);
                return None;
            };
            let is_dropped = self.judge(now, &mut item, queue, sink);
            if !is_dropped || queue.head().is_none() {
                return Some(item);
            }
            sink.drop(now, DropReason::Aqm, &item, queue.depth());
        }
    }
}

#[cfg(test)]
mod tests;
