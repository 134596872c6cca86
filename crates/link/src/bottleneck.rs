//! The bottleneck: takes packets off the queue, one after the other, and carries them at its rate.
//!
//! It catches up when it is called: all that ended at or before `now` is done in the order of time, each at its own
//! instant. What ends at `now` has ended before a packet that arrives at `now`.

use crate::{
    Event, Observer, Rate, Time, Trace,
    packet::Item,
    propagation::Propagation,
    queue::{Discipline, Queue, Sink},
    rate::{nanos_for, work_of},
    schedule::{self, Schedule},
    trace::{self, OPPORTUNITY_BYTES},
};

/// How fast the bottleneck is. Default: there is none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Capacity {
    /// Packets take no time and never wait; queue and departure do not matter.
    #[default]
    Unlimited,
    /// Always the same rate.
    Constant(Rate),
    /// A rate that changes at given times.
    Schedule(Schedule),
    /// Recorded opportunities to deliver.
    Trace(Trace),
}

impl Capacity {
    /// The rate by which limits in milliseconds are turned into bytes.
    fn nominal(&self) -> Rate {
        match self {
            Self::Unlimited => Rate::ZERO,
            Self::Constant(rate) => *rate,
            Self::Schedule(schedule) => schedule.nominal(),
            Self::Trace(trace) => trace.nominal(),
        }
    }
}

/// When a packet leaves the bottleneck for the propagation delay. Does not matter over a trace, where a packet leaves with
/// the opportunity that carries its last byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Departure {
    /// With its last bit, as a packet that is stored and forwarded. A link's delay is waiting + bytes / rate + propagation.
    #[default]
    LastBit,
    /// With its first bit, as in quicly's `t/simulator.c`: the time it takes to send holds up the next packet, not this one.
    /// Clones the payload.
    FirstBit,
}

#[derive(Debug)]
enum Server {
    Unlimited,
    Constant(Rate),
    Schedule(schedule::Cursor),
    Trace(trace::Cursor),
}

/// The packet that is being sent.
#[derive(Debug)]
struct Service<T> {
    item: Item<T>,
    began: Time,
    /// When its last bit leaves. Not known over a trace, where it is [`Time::MAX`].
    ends: Time,
    /// Over a trace: the bytes that no opportunity has carried yet.
    bytes_left: u32,
}

#[derive(Debug)]
pub(crate) struct Bottleneck<T> {
    queue: Discipline<T>,
    server: Server,
    departure: Departure,
    service: Option<Service<T>>,
    /// Work that would have fit into the last nanosecond of the packet before, in nanobits. Lost if nothing follows.
    credit: u64,
    /// Up to when busy time is counted.
    counted_to: Time,
}

impl<T: Clone> Bottleneck<T> {
    pub(crate) fn new(capacity: &Capacity, queue: &Queue, departure: Departure, seed: u64) -> Self {
        Self {
            queue: Discipline::new(queue, capacity.nominal(), seed),
            server: match capacity {
                Capacity::Unlimited => Server::Unlimited,
                Capacity::Constant(rate) => Server::Constant(*rate),
                Capacity::Schedule(schedule) => {
                    Server::Schedule(schedule::Cursor::new(schedule.clone()))
                }
                Capacity::Trace(trace) => Server::Trace(trace::Cursor::new(trace.clone())),
            },
            departure,
            service: None,
            credit: 0,
            counted_to: Time::ZERO,
        }
    }

    /// Takes a packet. All that ends at or before `now` must have been done.
    pub(crate) fn offer<O: Observer<T>>(
        &mut self,
        now: Time,
        mut item: Item<T>,
        sink: &mut Sink<'_, O>,
        out: &mut Propagation<T>,
    ) {
        if matches!(self.server, Server::Unlimited) {
            return out.depart(now, item);
        }
        item.queued_at = now;
        let is_idle = self.is_idle();
        self.queue.enqueue(now, item, is_idle, sink);
        if is_idle {
            self.counted_to = now;
            if let Server::Trace(cursor) = &mut self.server {
                cursor.skip_past(now);
            } else {
                self.begin(now, sink, out);
                return;
            }
        }
        let depth = self.queue.depth();
        let statistics = &mut *sink.statistics;
        statistics.queue_peak_bytes = statistics.queue_peak_bytes.max(depth.bytes);
        statistics.queue_peak_packets = statistics.queue_peak_packets.max(depth.packets);
    }

    /// Does all that ends at or before `now`.
    #[inline]
    pub(crate) fn advance<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
        out: &mut Propagation<T>,
    ) {
        if let Server::Trace(_) = self.server {
            return self.use_opportunities(now, sink, out);
        }
        while let Some(service) = self.service.take_if(|service| service.ends <= now) {
            let ends = service.ends;
            self.finish(ends, service, sink, out);
            self.begin(ends, sink, out);
        }
    }

    /// Begins to send the next packet, if there is one.
    fn begin<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
        out: &mut Propagation<T>,
    ) {
        let Some(item) = self.dequeue(now, sink) else {
            self.credit = 0;
            return;
        };
        let credit = u128::from(self.credit);
        let work = work_of(item.packet.bytes);
        let ends = if work < credit {
            self.credit -= work as u64;
            now
        } else {
            let work = work - credit;
            let ends;
            (ends, self.credit) = match &mut self.server {
                Server::Constant(rate) => match nanos_for(work, *rate) {
                    Some((nanos, rest)) => (now.plus(nanos), rest),
                    None => (Time::MAX, 0),
                },
                Server::Schedule(cursor) => cursor.end_of(now, work),
                Server::Unlimited | Server::Trace(_) => (Time::MAX, 0),
            };
            ends
        };
        if self.departure == Departure::FirstBit {
            out.depart(now, item.clone());
        }
        self.service = Some(Service {
            bytes_left: 0,
            item,
            began: now,
            ends,
        });
    }

    fn dequeue<O: Observer<T>>(&mut self, now: Time, sink: &mut Sink<'_, O>) -> Option<Item<T>> {
        let item = self.queue.dequeue(now, sink)?;
        let waited = now.since(item.queued_at);
        let depth = self.queue.depth();
        sink.tell(now, Event::ServiceBegan { waited }, &item, depth);
        Some(item)
    }

    fn finish<O: Observer<T>>(
        &mut self,
        now: Time,
        service: Service<T>,
        sink: &mut Sink<'_, O>,
        out: &mut Propagation<T>,
    ) {
        let Service { item, began, .. } = service;
        sink.statistics.served.add(item.packet.bytes);
        sink.statistics.busy += now.since(self.counted_to);
        self.counted_to = now;
        let depth = self.queue.depth();
        sink.tell(now, Event::ServiceEnded { began }, &item, depth);
        let has_departed =
            self.departure == Departure::FirstBit && !matches!(self.server, Server::Trace(_));
        if !has_departed {
            out.depart(now, item);
        }
    }

    /// Uses the opportunities of a trace up to `now`, each at its instant, as mahimahi does.
    fn use_opportunities<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
        out: &mut Propagation<T>,
    ) {
        while !self.is_idle() {
            let Server::Trace(cursor) = &mut self.server else {
                return;
            };
            let at = cursor.peek();
            if at > now {
                return;
            }
            cursor.advance();
            let mut left = OPPORTUNITY_BYTES;
            loop {
                let mut service = match self.service.take() {
                    Some(service) => service,
                    None => match self.dequeue(at, sink) {
                        Some(item) => Service {
                            bytes_left: item.packet.bytes,
                            item,
                            began: at,
                            ends: Time::MAX,
                        },
                        None => break,
                    },
                };
                let carried = service.bytes_left.min(left);
                service.bytes_left -= carried;
                left -= carried;
                if service.bytes_left > 0 {
                    self.service = Some(service);
                    break;
                }
                self.finish(at, service, sink, out);
                if left == 0 {
                    break;
                }
            }
        }
    }

    /// Whether nothing is in service and nothing waits.
    fn is_idle(&self) -> bool {
        self.service.is_none() && self.queue.depth().packets == 0
    }

    /// When it has something to do next.
    pub(crate) fn next_event(&self) -> Option<Time> {
        match &self.server {
            Server::Unlimited => None,
            Server::Trace(cursor) => (!self.is_idle()).then(|| cursor.peek()),
            _ => self.service.as_ref().map(|service| service.ends),
        }
    }

    /// The earliest instant at which a packet can leave it next.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        let leaves_at_once =
            self.departure == Departure::FirstBit && !matches!(self.server, Server::Trace(_));
        if leaves_at_once && self.queue.depth().packets == 0 {
            return None;
        }
        self.next_event()
    }

    pub(crate) const fn queue(&self) -> &Discipline<T> {
        &self.queue
    }

    /// The bytes of the packet in service that has not departed yet.
    pub(crate) fn in_service(&self) -> Option<u32> {
        match (&self.server, self.departure) {
            (Server::Trace(_), _) | (_, Departure::LastBit) => self
                .service
                .as_ref()
                .map(|service| service.item.packet.bytes),
            _ => None,
        }
    }
}
