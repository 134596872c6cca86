//! Timelines computed by hand for a link of one byte per microsecond and packets of 1000 bytes.

use core::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{
    Capacity, Config, Ecn, Limit, Packet, Queue,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, at_us},
};

fn config(codel: CoDel) -> Config {
    Config {
        capacity: Capacity::Constant(BYTE_A_MICROSECOND),
        queue: Queue::CoDel(codel),
        ..Config::default()
    }
}

/// The times of drops in microseconds.
fn drops_us(bench: &Bench<()>) -> Vec<u64> {
    let dropped = bench.events.of(|e| e == Event::Dropped(DropReason::CoDel));
    dropped
        .into_iter()
        .map(|(at, _)| at.as_nanos() / 1000)
        .collect()
}

/// One packet arrives for each one sent, in addition to `standing` packets at the start, so that only drops shorten the
/// queue.
fn overload(codel: CoDel, ecn: Ecn, standing: u64, millis: u64) -> Bench<()> {
    let mut bench = Bench::new(&config(codel), 1);
    for _ in 0..standing {
        bench.send(Time::ZERO, Packet::new(1000, ()).with_ecn(ecn));
    }
    for millis in 0..millis {
        bench.send(at_ms(millis), Packet::new(1000, ()).with_ecn(ecn));
    }
    bench
}

#[test]
fn rfc8289_5_6_drops_follow_the_control_law() {
    // The packet that leaves at 5 ms is the first that waited for 5 ms, so the first drop is at 105 ms. The next drop
    // is due 100 ms later, then 100/√2 ms, then 100/√3 ms, and so on. Packets leave at whole milliseconds.
    let bench = overload(CoDel::default(), Ecn::NotEct, 100, 700);
    let mut due = 205_000.0;
    let mut expected = vec![105_000];
    for count in 2..9 {
        expected.push((due / 1000.0_f64).ceil() as u64 * 1000);
        due += 100_000.0 / f64::from(count).sqrt();
    }
    let drops = drops_us(&bench);
    assert_eq!(&drops[..8], expected);
    assert_eq!(
        expected,
        [
            105_000, 205_000, 276_000, 334_000, 384_000, 429_000, 469_000, 507_000
        ]
    );
}

#[test]
fn rfc8289_5_5_nothing_is_dropped_before_an_interval_above_target() {
    // 90 packets at once: the last one leaves after 90 ms.
    let bench = overload(CoDel::default(), Ecn::NotEct, 90, 0);
    let mut bench = bench;
    bench.run();
    assert_eq!(drops_us(&bench), []);
    assert_eq!(bench.arrived.len(), 90);
    // With a standing queue of 4 packets, each has waited 4 ms when it leaves.
    let bench = overload(CoDel::default(), Ecn::NotEct, 4, 1000);
    assert_eq!(drops_us(&bench), []);
}

#[test]
fn rfc8289_5_5_a_queue_of_one_packet_is_exempt() {
    // At 8 kb/s a packet takes a second, far above target. One packet behind another is not a standing queue.
    let config = Config {
        capacity: Capacity::Constant(Rate::from_bits_per_second(8_000)),
        ..config(CoDel::default())
    };
    let mut bench = Bench::new(&config, 1);
    for second in 0..100 {
        bench.send(at_ms(second * 1000), Packet::new(1000, ()));
        if second == 0 {
            bench.send(at_ms(0), Packet::new(1000, ()));
        }
    }
    bench.run();
    assert_eq!(drops_us(&bench), []);
    assert_eq!(bench.arrived.len(), 101);
}

#[test]
fn rfc8289_5_4_dropping_ends_with_the_delay_and_resumes_at_its_rate() {
    // Ten drops in an overload, then the queue empties. A second overload soon after resumes at the rate of the first:
    // 10 drops − the initial count of 1.
    let mut bench = overload(CoDel::default(), Ecn::NotEct, 100, 510);
    bench.run();
    let first = drops_us(&bench).len();
    assert_eq!(first, 10);
    let idle = bench.arrived.last().expect("arrivals").at.as_nanos() / 1_000_000;
    for _ in 0..200 {
        bench.send(at_ms(idle + 10), Packet::new(1000, ()));
    }
    bench.run();
    let drops = drops_us(&bench);
    let gap = drops[first + 1] - drops[first];
    // 100 / √9 = 33.3 ms, rounded up to a millisecond. It would be 100 ms from scratch.
    assert_eq!(gap, 34_000);

    // After 16 intervals the count is reset.
    let idle = bench.arrived.last().expect("arrivals").at.as_nanos() / 1_000_000;
    for _ in 0..300 {
        bench.send(at_ms(idle + 2000), Packet::new(1000, ()));
    }
    let before = drops.len();
    bench.run();
    let drops = drops_us(&bench);
    assert_eq!(drops[before + 1] - drops[before], 100_000);
}

#[test]
fn rfc8290_3_ecn_capable_packets_are_marked_where_others_are_dropped() {
    let codel = CoDel {
        ecn: true,
        ..CoDel::default()
    };
    let bench = overload(codel, Ecn::Ect0, 100, 500);
    assert_eq!(drops_us(&bench), []);
    let marked: Vec<u64> = bench
        .events
        .of(|event| event == Event::Marked)
        .into_iter()
        .map(|(at, _)| at.as_nanos() / 1000)
        .collect();
    assert_eq!(
        marked,
        [
            105_000, 205_000, 276_000, 334_000, 384_000, 429_000, 469_000
        ]
    );
    // Packets that are not ECN-capable are dropped, and so are all if ECN is off.
    let drops = drops_us(&overload(codel, Ecn::NotEct, 100, 500));
    assert_eq!(drops, marked);
    let unmarked = overload(CoDel::default(), Ecn::Ect0, 100, 500);
    assert_eq!(drops_us(&unmarked), marked);
}

#[test]
fn packets_that_do_not_fit_are_dropped_at_the_tail() {
    let codel = CoDel {
        limit: Limit::Packets(3),
        ..CoDel::default()
    };
    let bench = overload(codel, Ecn::NotEct, 6, 0);
    let full = Event::Dropped(DropReason::QueueFull);
    assert_eq!(
        bench.events.of(|event| event == full),
        [(Time::ZERO, 4), (Time::ZERO, 5)]
    );
}

/// A queue with these packets, which can be dequeued at any time.
fn waiting(packets: &[(u32, u64)]) -> Fifo<()> {
    let mut fifo = Fifo::new();
    for (bytes, queued_at) in packets {
        fifo.push(Item {
            packet: Packet::new(*bytes, ()),
            tag: 0,
            queued_at: at_us(*queued_at),
        });
    }
    fifo
}

#[test]
fn a_long_pause_drops_many_packets_at_once() {
    let mut fifo = waiting(&[(1000, 0); 500]);
    let mut control = Control::new(&CoDel::default());
    control.on_enqueued(1000);
    let mut statistics = crate::Statistics::default();
    let mut sink = Sink {
        hop: 0,
        statistics: &mut statistics,
        observer: &mut (),
    };
    assert!(control.dequeue(at_ms(10), &mut fifo, &mut sink).is_some());
    assert!(control.dequeue(at_ms(110), &mut fifo, &mut sink).is_some());
    // At 1110 ms, the drops due from 210 ms on are caught up: n drops with 100 (1 + 1/√2 + … 1/√(n-1)) ≤ 1000.
    assert!(control.dequeue(at_ms(1110), &mut fifo, &mut sink).is_some());
    let due = (1..1_000_000)
        .scan(0.0, |sum, n| {
            *sum += 100.0 / f64::from(n).sqrt();
            Some(*sum)
        })
        .take_while(|due| *due <= 1000.0)
        .count() as u64;
    assert_eq!(sink.statistics.dropped(DropReason::CoDel).packets, 1 + due);
}

/// A second implementation of RFC 8289 §5, in floating point and without a queue: which packets of 1000 bytes are
/// dropped if they arrive at these microseconds at a link of one byte per microsecond.
struct NaiveCoDel<'a> {
    arrivals: &'a [f64],
    target: f64,
    interval: f64,
    first_above: f64,
    dropped: Vec<u64>,
}

impl NaiveCoDel<'_> {
    fn may_drop(&mut self, head: usize, now: f64) -> bool {
        let behind = self.arrivals[head + 1..].iter().filter(|at| **at < now);
        if now - self.arrivals[head] < self.target || behind.count() <= 1 {
            self.first_above = 0.0;
        } else if self.first_above == 0.0 {
            self.first_above = now + self.interval;
        } else {
            return now >= self.first_above;
        }
        false
    }

    fn run(mut self) -> Vec<u64> {
        let (mut is_dropping, mut drop_next, mut count, mut last_count) = (false, 0.0, 0.0, 0.0);
        let mut free_at = -1.0_f64;
        let mut head = 0;
        while head < self.arrivals.len() {
            let now = free_at.max(self.arrivals[head]);
            if self.arrivals[head] >= free_at {
                (self.first_above, is_dropping) = (0.0, false);
            }
            let may_drop = self.may_drop(head, now);
            if is_dropping {
                is_dropping = may_drop;
                while is_dropping && now >= drop_next {
                    self.dropped.push(head as u64);
                    head += 1;
                    count += 1.0;
                    is_dropping = self.may_drop(head, now);
                    if is_dropping {
                        drop_next += self.interval / f64::sqrt(count);
                    }
                }
            } else if may_drop {
                self.dropped.push(head as u64);
                head += 1;
                self.may_drop(head, now);
                is_dropping = true;
                let delta = count - last_count;
                let is_recent = now - drop_next < 16.0 * self.interval;
                count = if delta > 1.0 && is_recent { delta } else { 1.0 };
                last_count = count;
                drop_next = now + self.interval / f64::sqrt(count);
            }
            free_at = now + 1000.0;
            head += 1;
        }
        self.dropped
    }
}

proptest! {
    #[test]
    fn any_arrivals_match_a_naive_codel(
        trains in proptest::collection::vec((1u64..3000, 1u64..60_000, 1usize..150), 1..20),
    ) {
        // Trains of packets at a given pace with pauses in between. Neither the target nor any drop falls on a whole
        // microsecond, so that rounding does not matter.
        let target = Duration::from_nanos(4_999_700);
        let interval = Duration::from_nanos(20_000_300);
        let codel = CoDel { target, interval, ecn: false, limit: Limit::Unlimited };
        let mut arrivals = Vec::new();
        let mut now = 0;
        for (gap, pause, count) in trains {
            now += pause;
            for _ in 0..count {
                now += gap;
                arrivals.push(now);
            }
        }
        let mut bench = Bench::new(&config(codel), 1);
        for at in &arrivals {
            bench.send(at_us(*at), Packet::new(1000, ()));
        }
        bench.run();
        let dropped = bench.events.of(|e| e == Event::Dropped(DropReason::CoDel));
        let dropped: Vec<u64> = dropped.into_iter().map(|(_, number)| number).collect();
        let floats: Vec<f64> = arrivals.iter().map(|at| *at as f64).collect();
        let by_the_book = NaiveCoDel {
            arrivals: &floats,
            target: 4999.7,
            interval: 20_000.3,
            first_above: 0.0,
            dropped: Vec::new(),
        };
        prop_assert_eq!(dropped, by_the_book.run());
    }
}
