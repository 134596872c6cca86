//! Flow queueing with controlled delay (RFC 8290).
//!
//! Flows are hashed to queues, which are served by deficit round robin with a quantum of bytes per round. A queue that
//! was empty goes before those with a backlog for one quantum (§4.2). Each queue has its own `CoDel` state. When the
//! total limit is exceeded, the queue with the most bytes drops half of them from its head, but at most 64 packets at a
//! time (§4.1.1; 64 is the value of Linux).
//!
//! The same scheduler with COBALT in place of `CoDel` is CAKE's.
//!
//! Packets of all queues are nodes of one slab, so no allocations occur once it has grown to the maximum queue length.

use alloc::{vec, vec::Vec};

use super::{FqCoDel, ResolvedLimit, Sink, cobalt::Cobalt, codel::Control, fifo::Source};
use lastbyte_units::mix;

use crate::{
    Count, DropReason, Event, Observer, Rate, Time,
    packet::Item,
    random::{Component, Random},
};

/// The AQM of one queue: that of FQ-CoDel or that of CAKE.
#[derive(Clone, Debug)]
enum FlowAqm {
    CoDel(Control),
    Cobalt(Cobalt),
}

impl FlowAqm {
    const fn on_enqueued(&mut self, bytes: u32) {
        match self {
            Self::CoDel(control) => control.on_enqueued(bytes),
            Self::Cobalt(_) => {}
        }
    }

    fn dequeue<T, O: Observer<T>>(
        &mut self,
        now: Time,
        queue: &mut impl Source<T>,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        match self {
            Self::CoDel(control) => control.dequeue(now, queue, sink),
            Self::Cobalt(cobalt) => cobalt.dequeue(now, queue, sink),
        }
    }

    /// The queue exceeded the limit. Returns the most packets that it drops at once: CAKE drops one.
    fn on_overflow(&mut self, now: Time) -> u32 {
        match self {
            Self::CoDel(_) => DROP_BATCH,
            Self::Cobalt(cobalt) => {
                cobalt.on_overflow(now);
                1
            }
        }
    }
}

/// The maximum number of packets dropped from a queue at once.
const DROP_BATCH: u32 = 64;

/// The absence of a node or flow.
const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Node<T> {
    item: Option<Item<T>>,
    next: u32,
}

/// The nodes of all flows and the list of free nodes.
#[derive(Debug)]
struct Slab<T> {
    nodes: Vec<Node<T>>,
    free: u32,
}

impl<T> Slab<T> {
    fn insert(&mut self, item: Item<T>) -> u32 {
        let node = Node {
            item: Some(item),
            next: NONE,
        };
        if self.free == NONE {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }

    /// Frees a node, and returns its item and successor.
    fn remove(&mut self, index: u32) -> (Option<Item<T>>, u32) {
        let node = &mut self.nodes[index as usize];
        let item = node.item.take();
        let next = core::mem::replace(&mut node.next, self.free);
        self.free = index;
        (item, next)
    }
}

/// The ends of a linked list of flows, or of the packets of a flow.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

const EMPTY: List = List {
    head: NONE,
    tail: NONE,
};

#[derive(Debug)]
struct Flow {
    packets: List,
    bytes: u64,
    /// The number of bytes that the flow may still send in this round. The round is over when it is 0 or less.
    deficit: i64,
    aqm: FlowAqm,
    /// Whether the flow is in the list of new or old flows.
    is_listed: bool,
    /// The next flow in the list.
    next: u32,
}

/// The packets of one flow, for `CoDel`.
struct FlowQueue<'a, T> {
    slab: &'a mut Slab<T>,
    depth: &'a mut Count,
    packets: &'a mut List,
    bytes: &'a mut u64,
}

impl<T> Source<T> for FlowQueue<'_, T> {
    fn head(&self) -> Option<&Item<T>> {
        if self.packets.head == NONE {
            return None;
        }
        self.slab.nodes[self.packets.head as usize].item.as_ref()
    }

    fn pop(&mut self) -> Option<Item<T>> {
        if self.packets.head == NONE {
            return None;
        }
        let (item, next) = self.slab.remove(self.packets.head);
        self.packets.head = next;
        let item = item?;
        self.depth.take(item.packet.bytes);
        *self.bytes -= u64::from(item.packet.bytes);
        Some(item)
    }

    fn bytes(&self) -> u64 {
        *self.bytes
    }

    fn depth(&self) -> Count {
        *self.depth
    }
}

#[derive(Debug)]
pub(crate) struct FqCoDelQueue<T> {
    slab: Slab<T>,
    depth: Count,
    limit: ResolvedLimit,
    /// The index of the flow for each hash value. Flows are created when their first packet arrives.
    buckets: Vec<u32>,
    flows: Vec<Flow>,
    new: List,
    old: List,
    quantum: i64,
    /// The initial AQM state of each flow.
    aqm: FlowAqm,
    /// Makes hash collisions depend on the seed (RFC 8290 §5.1).
    perturbation: u64,
}

impl<T> FqCoDelQueue<T> {
    pub(super) fn new(config: &FqCoDel, nominal: Rate, seed: u64) -> Self {
        let aqm = FlowAqm::CoDel(Control::new(&config.codel));
        Self::with_aqm(config, nominal, seed, aqm)
    }

    /// The same with COBALT.
    pub(super) fn cake(config: &FqCoDel, nominal: Rate, seed: u64) -> Self {
        let random = Random::new(seed, Component::Aqm, 0);
        let aqm = FlowAqm::Cobalt(Cobalt::new(&config.codel, random));
        Self::with_aqm(config, nominal, seed, aqm)
    }

    fn with_aqm(config: &FqCoDel, nominal: Rate, seed: u64, aqm: FlowAqm) -> Self {
        Self {
            slab: Slab {
                nodes: Vec::new(),
                free: NONE,
            },
            depth: Count::default(),
            limit: ResolvedLimit::new(config.codel.limit, nominal),
            buckets: vec![NONE; config.flows as usize],
            flows: Vec::new(),
            new: EMPTY,
            old: EMPTY,
            quantum: i64::from(config.quantum),
            aqm,
            perturbation: Random::new(seed, Component::Hash, 0).at(0),
        }
    }

    /// The index of the queue of a flow.
    fn classify(&mut self, flow: u32) -> u32 {
        let hash = mix(u64::from(flow) ^ self.perturbation);
        let bucket = ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize;
        if self.buckets[bucket] == NONE {
            self.buckets[bucket] = self.flows.len() as u32;
            self.flows.push(Flow {
                packets: EMPTY,
                bytes: 0,
                deficit: 0,
                aqm: self.aqm.clone(),
                is_listed: false,
                next: NONE,
            });
        }
        self.buckets[bucket]
    }

    /// RFC 8290 §4.1.
    pub(super) fn enqueue<O: Observer<T>>(
        &mut self,
        now: Time,
        item: Item<T>,
        is_idle: bool,
        sink: &mut Sink<'_, O>,
    ) {
        let bytes = item.packet.bytes;
        let index = self.classify(item.packet.flow);
        self.depth.add(bytes);
        sink.emit(now, Event::Queued, &item, self.depth);
        let node = self.slab.insert(item);
        let flow = &mut self.flows[index as usize];
        flow.aqm.on_enqueued(bytes);
        flow.bytes += u64::from(bytes);
        if flow.packets.head == NONE {
            flow.packets.head = node;
        } else {
            self.slab.nodes[flow.packets.tail as usize].next = node;
        }
        flow.packets.tail = node;
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = self.quantum;
            append(&mut self.new, &mut self.flows, index);
        }
        while !is_idle && !self.limit.holds(self.depth) {
            self.drop_from_largest_flow(now, sink);
        }
    }

    fn drop_from_largest_flow<O: Observer<T>>(&mut self, now: Time, sink: &mut Sink<'_, O>) {
        // Of flows with equally many bytes, the first one with packets: a flow can be empty, and packets can have zero
        // bytes.
        let Some(flow) = self
            .flows
            .iter_mut()
            .filter(|flow| flow.packets.head != NONE)
            .reduce(|largest, flow| {
                if flow.bytes > largest.bytes {
                    flow
                } else {
                    largest
                }
            })
        else {
            return;
        };
        let half = flow.bytes / 2;
        let batch = flow.aqm.on_overflow(now);
        let mut queue = FlowQueue {
            slab: &mut self.slab,
            depth: &mut self.depth,
            packets: &mut flow.packets,
            bytes: &mut flow.bytes,
        };
        for _ in 0..batch {
            let Some(item) = queue.pop() else { break };
            sink.drop(now, DropReason::QueueFull, &item, queue.depth());
            if queue.bytes() <= half {
                break;
            }
        }
    }

    /// RFC 8290 §4.2.
    pub(super) fn dequeue<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
    ) -> Option<Item<T>> {
        loop {
            let is_new = self.new.head != NONE;
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = list.head;
            if index == NONE {
                return None;
            }
            let flow = &mut self.flows[index as usize];
            if flow.deficit > 0 {
                let mut queue = FlowQueue {
                    slab: &mut self.slab,
                    depth: &mut self.depth,
                    packets: &mut flow.packets,
                    bytes: &mut flow.bytes,
                };
                if let Some(item) = flow.aqm.dequeue(now, &mut queue, sink) {
                    flow.deficit -= i64::from(item.packet.bytes);
                    return Some(item);
                }
                list.head = flow.next;
                if is_new {
                    // Moved to the old flows first, so that a flow is not new again with each packet and does not
                    // starve the others.
                    append(&mut self.old, &mut self.flows, index);
                } else {
                    flow.is_listed = false;
                }
            } else {
                flow.deficit += self.quantum;
                list.head = flow.next;
                append(&mut self.old, &mut self.flows, index);
            }
        }
    }

    pub(super) const fn depth(&self) -> Count {
        self.depth
    }
}

/// Appends a flow that is in no list.
fn append(list: &mut List, flows: &mut [Flow], index: u32) {
    flows[index as usize].next = NONE;
    if list.head == NONE {
        list.head = index;
    } else {
        flows[list.tail as usize].next = index;
    }
    list.tail = index;
}

#[cfg(test)]
mod tests;
