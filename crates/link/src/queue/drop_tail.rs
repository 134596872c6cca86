//! A FIFO queue with a limit and an optional threshold above which packets are marked.

use alloc::collections::VecDeque;

use super::{DropTail, ResolvedLimit, Sink};
use crate::{Count, DropReason, Event, Observer, Rate, Time, packet::Item};

#[derive(Debug)]
pub(crate) struct DropTailQueue<T> {
    items: VecDeque<Item<T>>,
    depth: Count,
    limit: ResolvedLimit,
    mark_above: Option<ResolvedLimit>,
}

impl<T> DropTailQueue<T> {
    pub(super) fn new(config: &DropTail, nominal: Rate) -> Self {
        Self {
            items: VecDeque::new(),
            depth: Count::default(),
            limit: ResolvedLimit::new(config.limit, nominal),
            mark_above: config
                .mark_above
                .map(|limit| ResolvedLimit::new(limit, nominal)),
        }
    }

    pub(super) fn enqueue<O: Observer<T>>(
        &mut self,
        now: Time,
        mut item: Item<T>,
        is_idle: bool,
        sink: &mut Sink<'_, O>,
    ) {
        if !is_idle && !self.limit.holds_with(self.depth, item.packet.bytes) {
            return sink.drop(now, DropReason::QueueFull, &item, self.depth);
        }
        self.depth.add(item.packet.bytes);
        if let Some(step) = self.mark_above
            && !is_idle
            && !step.holds(self.depth)
            && item.packet.ecn.is_capable()
        {
            sink.mark(now, &mut item, self.depth);
        }
        sink.emit(now, Event::Queued, &item, self.depth);
        self.items.push_back(item);
    }

    pub(super) fn dequeue(&mut self) -> Option<Item<T>> {
        let item = self.items.pop_front()?;
        self.depth.take(item.packet.bytes);
        Some(item)
    }

    pub(super) const fn depth(&self) -> Count {
        self.depth
    }
}
