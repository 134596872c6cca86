//! A first-in-first-out queue of packets with its depth, and what an AQM needs of any queue.

use alloc::collections::VecDeque;

use crate::{Count, packet::Item};

/// The queue operations that an AQM needs.
pub(super) trait Source<T> {
    /// The packet at the head.
    fn head(&self) -> Option<&Item<T>>;
    /// Removes the packet at the head.
    fn pop(&mut self) -> Option<Item<T>>;
    /// The number of bytes in this queue.
    fn bytes(&self) -> u64;
    /// The total depth in front of the bottleneck, for events.
    fn depth(&self) -> Count;
}

#[derive(Debug)]
pub(super) struct Fifo<T> {
    items: VecDeque<Item<T>>,
    depth: Count,
}

impl<T> Fifo<T> {
    pub(super) const fn new() -> Self {
        Self {
            items: VecDeque::new(),
            depth: Count {
                packets: 0,
                bytes: 0,
            },
        }
    }

    pub(super) fn push(&mut self, item: Item<T>) {
        self.depth.add(item.packet.bytes);
        self.items.push_back(item);
    }

    pub(super) const fn depth(&self) -> Count {
        self.depth
    }
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
