//! The bottleneck: dequeues packets one after the other and sends them at its rate.
//!
//! Each call catches up on everything that completed at or before `now`, in chronological order and with the original
//! times. A packet whose transmission ends at `now` has left before a packet that arrives at `now`.

use alloc::collections::VecDeque;

use crate::{
    Count, Event, Observer, Rate, Time, Trace, Wifi,
    packet::Item,
    propagation::Propagation,
    queue::{Discipline, Queue, Sink},
    rate::{nanos_for, work_of},
    schedule::{self, Schedule},
    shaper::{Shaper, ShaperBucket},
    trace::{self, OPPORTUNITY_BYTES},
    wifi,
};

/// The rate of the bottleneck. Default: [`Capacity::Unlimited`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Capacity {
    /// There is no bottleneck: packets never wait, and queue and departure settings have no effect.
    #[default]
    Unlimited,
    /// A constant rate.
    Constant(Rate),
    /// A rate that changes at specified times.
    Schedule(Schedule),
    /// A token bucket: a burst at a higher rate, then a sustained one.
    Shaper(Shaper),
    /// Recorded delivery opportunities.
    Trace(Trace),
    /// Transmissions of several packets each, with the medium's overhead.
    Wifi(Wifi),
}

impl Capacity {
    /// The nominal rate, which converts limits in milliseconds to bytes; `None` without a limit.
    pub fn nominal(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
            Self::Schedule(schedule) => Some(schedule.nominal()),
            Self::Shaper(shaper) => Some(shaper.rate),
            Self::Trace(trace) => Some(trace.nominal()),
            Self::Wifi(wifi) => Some(wifi.rate),
        }
    }

    /// The bytes that can be transmitted from `from` to `to`, inclusive; `None` without a limit. Of a token bucket: if it is full
    /// at first. Of Wi-Fi: at the rate of the data, without the time that the medium takes besides.
    pub fn bytes_between(&self, from: Time, to: Time) -> Option<f64> {
        let span = to.since(from).as_secs_f64();
        let at = |rate: Rate| rate.bits_per_second() as f64 / 8.0 * span;
        Some(match self {
            Self::Unlimited => return None,
            Self::Constant(rate) => at(*rate),
            Self::Schedule(schedule) => schedule.bytes_between(from, to),
            Self::Shaper(shaper) => at(shaper.peak).min(shaper.burst as f64 + at(shaper.rate)),
            Self::Trace(trace) => trace.bytes_between(from, to),
            Self::Wifi(wifi) => at(wifi.rate),
        })
    }
}

/// When a packet leaves the bottleneck and its propagation delay starts. Has no effect with a trace, where a packet
/// leaves at the opportunity that carries its last byte, and with Wi-Fi, where it leaves with the last bit of its aggregate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Departure {
    /// With its last bit, as with store-and-forward. The one-way delay is queueing delay + bytes / rate + propagation
    /// delay.
    #[default]
    LastBit,
    /// With its first bit, as in quicly's `t/simulator.c`: the transmission time delays the next packet, but not this
    /// one. Clones the payload.
    FirstBit,
}

#[derive(Debug)]
enum Server {
    Unlimited,
    Constant(Rate),
    Schedule(schedule::Cursor),
    Shaper(ShaperBucket),
    Trace(trace::Cursor),
    Wifi(wifi::Sender),
}

/// The packet in transmission.
#[derive(Debug)]
struct Service<T> {
    item: Item<T>,
    started: Time,
    /// When its last bit leaves. [`Time::MAX`] with a trace, where it is not known in advance.
    ends: Time,
    /// With a trace: the bytes not yet carried by an opportunity.
    bytes_left: u32,
}

#[derive(Debug)]
pub(crate) struct Bottleneck<T> {
    queue: Discipline<T>,
    server: Server,
    departure: Departure,
    service: Option<Service<T>>,
    /// With Wi-Fi: the packets that are transmitted together with the one in service.
    aggregate: VecDeque<Item<T>>,
    /// Unused capacity in the last nanosecond of the previous packet, in nanobits. Reset if no packet follows
    /// immediately.
    credit: u64,
    /// The time up to which busy time has been counted.
    counted_to: Time,
}

impl<T: Clone> Bottleneck<T> {
    pub(crate) fn new(capacity: &Capacity, queue: &Queue, departure: Departure, seed: u64) -> Self {
        Self {
            queue: Discipline::new(queue, capacity.nominal().unwrap_or(Rate::ZERO), seed),
            server: match capacity {
                Capacity::Unlimited => Server::Unlimited,
                Capacity::Constant(rate) => Server::Constant(*rate),
                Capacity::Schedule(schedule) => {
                    Server::Schedule(schedule::Cursor::new(schedule.clone()))
                }
                Capacity::Shaper(shaper) => Server::Shaper(ShaperBucket::new(shaper)),
                Capacity::Trace(trace) => Server::Trace(trace::Cursor::new(trace.clone())),
                Capacity::Wifi(wifi) => Server::Wifi(wifi::Sender::new(*wifi, seed)),
            },
            departure: match capacity {
                Capacity::Trace(_) | Capacity::Wifi(_) => Departure::LastBit,
                _ => departure,
            },
            service: None,
            aggregate: VecDeque::new(),
            credit: 0,
            counted_to: Time::ZERO,
        }
    }

    /// Enqueues a packet. Requires that [`Self::advance`] has been called for `now`.
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
                self.start_service(now, sink, out);
                return;
            }
        }
        let depth = self.queue.depth();
        let statistics = &mut *sink.statistics;
        statistics.queue_peak_bytes = statistics.queue_peak_bytes.max(depth.bytes);
        statistics.queue_peak_packets = statistics.queue_peak_packets.max(depth.packets);
    }

    /// Completes all transmissions that end at or before `now`.
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
            let Service { started, ends, .. } = service;
            self.finish_service(ends, service.item, started, sink, out);
            while let Some(item) = self.aggregate.pop_front() {
                self.finish_service(ends, item, started, sink, out);
            }
            self.start_service(ends, sink, out);
        }
    }

    /// Starts to transmit the next packet, if there is one.
    fn start_service<O: Observer<T>>(
        &mut self,
        now: Time,
        sink: &mut Sink<'_, O>,
        out: &mut Propagation<T>,
    ) {
        let Some(item) = self.dequeue(now, sink) else {
            self.credit = 0;
            return;
        };
        if matches!(self.server, Server::Wifi(_)) {
            return self.start_aggregate(now, item, sink);
        }
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
                Server::Shaper(bucket) => (bucket.end_of(now, work), 0),
                Server::Unlimited | Server::Trace(_) | Server::Wifi(_) => (Time::MAX, 0),
            };
            ends
        };
        if self.departure == Departure::FirstBit {
            out.depart(now, item.clone());
        }
        self.service = Some(Service {
            bytes_left: 0,
            item,
            started: now,
            ends,
        });
    }

    /// Starts to transmit this packet and those behind it that fit.
    fn start_aggregate<O: Observer<T>>(
        &mut self,
        now: Time,
        item: Item<T>,
        sink: &mut Sink<'_, O>,
    ) {
        let mut work = work_of(item.packet.bytes);
        while let Server::Wifi(sender) = &self.server
            && sender.takes_more(self.aggregate.len() + 1, work)
            && let Some(next) = self.dequeue(now, sink)
        {
            work += work_of(next.packet.bytes);
            self.aggregate.push_back(next);
        }
        let Server::Wifi(sender) = &mut self.server else {
            return;
        };
        self.service = Some(Service {
            bytes_left: 0,
            item,
            started: now,
            ends: sender
                .transmit(work)
                .map_or(Time::MAX, |time| now.plus(time)),
        });
    }

    fn dequeue<O: Observer<T>>(&mut self, now: Time, sink: &mut Sink<'_, O>) -> Option<Item<T>> {
        let item = self.queue.dequeue(now, sink)?;
        let waited = now.since(item.queued_at);
        let depth = self.queue.depth();
        sink.emit(now, Event::ServiceStarted { waited }, &item, depth);
        Some(item)
    }

    fn finish_service<O: Observer<T>>(
        &mut self,
        now: Time,
        item: Item<T>,
        started: Time,
        sink: &mut Sink<'_, O>,
        out: &mut Propagation<T>,
    ) {
        sink.statistics.served.add(item.packet.bytes);
        sink.statistics.busy += now.since(self.counted_to);
        self.counted_to = now;
        let depth = self.queue.depth();
        sink.emit(now, Event::ServiceEnded { started }, &item, depth);
        if self.departure == Departure::LastBit {
            out.depart(now, item);
        }
    }

    /// Uses the delivery opportunities of a trace up to `now`, with mahimahi's semantics.
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
                            started: at,
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
                self.finish_service(at, service.item, service.started, sink, out);
                if left == 0 {
                    break;
                }
            }
        }
    }

    /// Whether no packet is in service or queued.
    fn is_idle(&self) -> bool {
        self.service.is_none() && self.queue.depth().packets == 0
    }

    /// The time of the next event in the bottleneck.
    pub(crate) fn next_event(&self) -> Option<Time> {
        match &self.server {
            Server::Unlimited => None,
            Server::Trace(cursor) => (!self.is_idle()).then(|| cursor.peek()),
            _ => self.service.as_ref().map(|service| service.ends),
        }
    }

    /// The earliest time at which the next packet can leave the bottleneck.
    pub(crate) fn next_departure(&self) -> Option<Time> {
        if self.departure == Departure::FirstBit && self.queue.depth().packets == 0 {
            return None;
        }
        self.next_event()
    }

    pub(crate) const fn queue(&self) -> &Discipline<T> {
        &self.queue
    }

    /// The packets in service, unless they have already departed.
    pub(crate) fn in_service(&self) -> Count {
        let mut count = Count::default();
        if self.departure == Departure::LastBit {
            let first = self.service.as_ref().map(|service| &service.item);
            for item in first.into_iter().chain(&self.aggregate) {
                count.add(item.packet.bytes);
            }
        }
        count
    }
}
