//! Controlled delay (RFC 8289), following the pseudocode of §5.
//!
//! If packets have stayed in the queue for longer than `target` during an entire `interval`, one is dropped at the
//! head. As long as the delay persists, further drops follow at decreasing intervals of `interval / √count` (§5.6, the
//! control law). A queue of at most one maximum-size packet is exempt.
//!
//! With ECN, ECN-capable packets are marked where others are dropped (RFC 8290 §3; RFC 8289 does not mention it). As in
//! Linux, a mark counts as a drop in the control law, and at most one packet is marked per dequeue.

use core::mem;

use super::{
    CoDel, ResolvedLimit, Sink,
    fifo::{Fifo, Source},
};
use lastbyte_units::nanos;

use crate::{Count, DropReason, Event, Observer, Rate, Time, packet::Item};

/// The `CoDel` state of one queue: the variables of RFC 8289 §5.3.
#[derive(Clone, Debug)]
pub(super) struct Control {
    target: u64,
    interval: u64,
    has_ecn: bool,
    /// `first_above_time_`: when the delay will have been above target for an interval, if it is above target now.
    first_above: Option<Time>,
    is_dropping: bool,
    drop_next: Time,
    /// The number of drops since the dropping state was entered.
    count: u32,
    /// The value of `count` when the dropping state was last entered.
    last_count: u32,
    largest_packet: u32,
}

impl Control {
    pub(super) const fn new(config: &CoDel) -> Self {
        Self {
            target: nanos(config.target),
            interval: nanos(config.interval),
            has_ecn: config.ecn,
            first_above: None,
            is_dropping: false,
            drop_next: Time::ZERO,
            count: 0,
            last_count: 0,
            largest_packet: 0,
        }
    }

    pub(super) const fn on_enqueued(&mut self, bytes: u32) {
        if bytes > self.largest_packet {
            self.largest_packet = bytes;
        }
    }

    /// RFC 8289 §5.6.
    fn control_law(&self, from: Time) -> Time {
        from.plus((self.interval as f64 / libm::sqrt(f64::from(self.count))) as u64)
    }

    /// Whether the packet at the head, if there is one, may be dropped: `dodequeue` of RFC 8289 §5.5.
    fn ok_to_drop<T>(&mut self, now: Time, queue: &impl Source<T>) -> Option<bool> {
        let Some(head) = queue.head() else {
            self.first_above = None;
            return None;
        };
        let sojourn = now.nanos_since(head.queued_at);
        let behind = queue.bytes() - u64::from(head.packet.bytes);
        if sojourn < self.target || behind <= u64::from(self.largest_packet) {
            self.first_above = None;
            return Some(false);
        }
        let since = *self.first_above.get_or_insert(now.plus(self.interval));
        Some(now >= since)
    }

    /// Dequeues the next packet to send: `deque` of RFC 8289 §5.4.
    pub(super) fn dequeue<T, O: Observer<T>>(
        &mut self,
        now: Time,
        queue: &mut impl Source<T>,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        let may_drop = self.ok_to_drop(now, queue) == Some(true);
        if !may_drop {
            self.is_dropping = false;
        } else if self.is_dropping {
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let marked = self.mark_or_drop(now, queue, sink);
                if marked.is_some() {
                    self.drop_next = self.control_law(self.drop_next);
                    return marked;
                }
                self.is_dropping = self.ok_to_drop(now, queue) == Some(true);
                if self.is_dropping {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else {
            let marked = self.mark_or_drop(now, queue, sink);
            if marked.is_none() {
                self.ok_to_drop(now, queue);
            }
            self.is_dropping = true;
            // If the last dropping state was recent, resume with the drop rate that controlled the queue then.
            let before = mem::replace(&mut self.count, 1).saturating_sub(self.last_count);
            if before > 1 && now.nanos_since(self.drop_next) < self.interval.saturating_mul(16) {
                self.count = before;
            }
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
            if marked.is_some() {
                return marked;
            }
        }
        queue.pop()
    }

    /// Removes the packet at the head. If it can be marked, it is marked and returned; otherwise it is dropped.
    #[cold]
    fn mark_or_drop<T, O: Observer<T>>(
        &self,
        now: Time,
        queue: &mut impl Source<T>,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        let mut head = queue.pop()?;
        if self.has_ecn && head.packet.ecn.is_capable() {
            sink.mark(now, &mut head, queue.depth());
            return Some(head);
        }
        sink.drop(now, DropReason::CoDel, &head, queue.depth());
        None
    }
}

/// A single FIFO queue with `CoDel`.
#[derive(Debug)]
pub(crate) struct CoDelQueue<T> {
    fifo: Fifo<T>,
    limit: ResolvedLimit,
    control: Control,
}

impl<T> CoDelQueue<T> {
    pub(super) fn new(config: &CoDel, nominal: Rate) -> Self {
        Self {
            fifo: Fifo::new(),
            limit: ResolvedLimit::new(config.limit, nominal),
            control: Control::new(config),
        }
    }

    pub(super) fn enqueue<O: Observer<T>>(
        &mut self,
        now: Time,
        item: Item<T>,
        is_idle: bool,
        sink: &mut Sink<'_, O>,
    ) {
        let bytes = item.packet.bytes;
        let mut depth = self.fifo.depth();
        if !is_idle && !self.limit.holds_with(depth, bytes) {
            return sink.drop(now, DropReason::QueueFull, &item, depth);
        }
        depth.add(bytes);
        self.control.on_enqueued(bytes);
        sink.emit(now, Event::Queued, &item, depth);
        self.fifo.push(item);
    }

    pub(super) fn dequeue<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        self.control.dequeue(now, &mut self.fifo, sink)
    }

    pub(super) const fn depth(&self) -> Count {
        self.fifo.depth()
    }
}

#[cfg(test)]
mod tests;
