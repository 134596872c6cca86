//! Controlled delay: RFC 8289, with its pseudocode of §5 as the model.
//!
//! While packets stay in the queue for longer than `target` for all of an `interval`, one is dropped at the head; and if
//! that does not help, the next `interval / √count` later, sooner each time (§5.6, the control law). A queue with no more
//! than one packet of the largest size is let be.
//!
//! With ECN, a packet that is capable is marked where another would be dropped (RFC 8289 is silent; RFC 8290 §3 says so).
//! As Linux does it, a mark takes the place of the drop in the control law, and at most one packet is marked at a time.

use alloc::collections::VecDeque;
use core::mem;

use super::{CoDel, Room, Sink};
use crate::{Count, DropReason, Event, Observer, Rate, Time, packet::Item, time::nanos};

/// What `CoDel` needs of a queue.
pub(super) trait Source<T> {
    /// The packet at the head.
    fn head(&self) -> Option<&Item<T>>;
    /// Takes it off.
    fn pop(&mut self) -> Option<Item<T>>;
    /// Bytes in this queue.
    fn bytes(&self) -> u64;
    /// All that waits before the bottleneck, for reports.
    fn depth(&self) -> Count;
}

/// The control of one queue: the variables of RFC 8289 §5.3.
#[derive(Clone, Debug)]
pub(super) struct Control {
    target: u64,
    interval: u64,
    has_ecn: bool,
    /// When the delay will have been above target for an interval; if it is above.
    first_above: Option<Time>,
    is_dropping: bool,
    drop_next: Time,
    /// Drops since dropping began.
    count: u32,
    /// What `count` was when dropping last began.
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

    /// Whether the packet at the head, if there is one, may be dropped: RFC 8289 §5.5, `dodequeue`.
    fn judge<T>(&mut self, now: Time, queue: &impl Source<T>) -> Option<bool> {
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

    /// The next packet to send: RFC 8289 §5.4, `deque`.
    pub(super) fn dequeue<T, O: Observer<T>>(
        &mut self,
        now: Time,
        queue: &mut impl Source<T>,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        let may_drop = self.judge(now, queue) == Some(true);
        if !may_drop {
            self.is_dropping = false;
        } else if self.is_dropping {
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let spared = self.mark_or_drop(now, queue, sink);
                if spared.is_some() {
                    self.drop_next = self.control_law(self.drop_next);
                    return spared;
                }
                self.is_dropping = self.judge(now, queue) == Some(true);
                if self.is_dropping {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else {
            let spared = self.mark_or_drop(now, queue, sink);
            if spared.is_none() {
                self.judge(now, queue);
            }
            self.is_dropping = true;
            // What held the queue last time is a good beginning, if that was not long ago.
            let before = mem::replace(&mut self.count, 1).saturating_sub(self.last_count);
            if before > 1 && now.nanos_since(self.drop_next) < self.interval.saturating_mul(16) {
                self.count = before;
            }
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
            if spared.is_some() {
                return spared;
            }
        }
        queue.pop()
    }

    /// Takes the packet at the head off the queue. If it may be marked, it is marked and returned; if not, dropped.
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

#[derive(Debug)]
struct Fifo<T> {
    items: VecDeque<Item<T>>,
    depth: Count,
}

impl<T> Source<T> for Fifo<T> {
    fn head(&self) -> Option<&Item<T>> {
        self.items.front()
    }

    fn pop(&mut self) -> Option<Item<T>> {
        let item = self.items.pop_front()?;
        self.depth.take(item.packet.bytes);
        Some(item)
    }

    fn bytes(&self) -> u64 {
        self.depth.bytes
    }

    fn depth(&self) -> Count {
        self.depth
    }
}

/// One queue under control.
#[derive(Debug)]
pub(crate) struct CoDelQueue<T> {
    fifo: Fifo<T>,
    room: Room,
    control: Control,
}

impl<T> CoDelQueue<T> {
    pub(super) fn new(config: &CoDel, nominal: Rate) -> Self {
        Self {
            fifo: Fifo {
                items: VecDeque::new(),
                depth: Count::default(),
            },
            room: Room::new(config.limit, nominal),
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
        if !is_idle && !self.room.holds_with(self.fifo.depth, bytes) {
            return sink.drop(now, DropReason::QueueFull, &item, self.fifo.depth);
        }
        self.fifo.depth.add(bytes);
        self.control.on_enqueued(bytes);
        sink.tell(now, Event::Queued, &item, self.fifo.depth);
        self.fifo.items.push_back(item);
    }

    pub(super) fn dequeue<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        self.control.dequeue(now, &mut self.fifo, sink)
    }

    pub(super) const fn depth(&self) -> Count {
        self.fifo.depth
    }
}

#[cfg(test)]
mod tests;
