//! Benchmarks the cost per packet of a link: send, poll at the deadline, deliver.
//!
//! Bursts of eight packets arrive in the time that seven and a half can be sent, so the queue fills and eventually
//! drops. Run `cargo bench -p lastbyte-link`; times are per packet sent.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lastbyte_link::{
    Capacity, CoDel, Config, DropTail, FqCoDel, GilbertElliott, Jitter, Limit, Link, Loss, Packet,
    Policer, Queue, Rate, Reordering, Schedule, Spread, Time, Trace,
};

const BURST: u64 = 8;

struct Flow {
    link: Link<u32>,
    now: Time,
    number: u32,
}

impl Flow {
    fn new(config: &Config) -> Self {
        let mut flow = Self {
            link: Link::new(config, 1).expect("valid configuration"),
            now: Time::ZERO,
            number: 0,
        };
        for _ in 0..10_000 {
            flow.burst();
        }
        flow
    }

    fn burst(&mut self) -> u64 {
        // 1500 bytes at 100 Mb/s take 120 µs.
        self.now = self.now + Duration::from_micros(900);
        let mut arrived = 0;
        while let Some(at) = self.link.deadline().filter(|at| *at <= self.now) {
            while let Some(delivery) = self.link.poll(at, &mut ()) {
                arrived += u64::from(black_box(delivery.packet.payload) & 1);
            }
        }
        for _ in 0..BURST {
            self.number = self.number.wrapping_add(1);
            let packet = Packet::new(1500, self.number).with_flow(self.number % 8);
            self.link.send(self.now, packet, &mut ());
        }
        arrived
    }
}

fn packets(criterion: &mut Criterion) {
    let rate = Rate::from_bits_per_second(100_000_000);
    let drop_tail = Config {
        capacity: Capacity::Constant(rate),
        queue: Queue::DropTail(DropTail {
            limit: Limit::Time(Duration::from_millis(50)),
            mark_above: None,
        }),
        delay: Duration::from_millis(20),
        ..Config::default()
    };
    let queue = |queue| Config {
        queue,
        ..drop_tail.clone()
    };
    let steps: Vec<(Duration, Rate)> = (0..200)
        .map(|n| {
            let rate = Rate::from_bits_per_second(80_000_000 + n % 5 * 10_000_000);
            (Duration::from_millis(50 * n), rate)
        })
        .collect();
    let schedule = Schedule::new(&steps, Some(Duration::from_secs(10))).expect("valid steps");
    // 100 Mb/s is 25 opportunities per 3 ms.
    let timestamps: Vec<u64> = (1..=25).map(|n| (n * 3u64).div_ceil(25)).collect();
    let trace = Trace::from_millis(&timestamps).expect("valid trace");
    let capacity = |capacity| Config {
        capacity,
        ..drop_tail.clone()
    };
    let full = Config {
        policer: Some(Policer {
            rate,
            burst: 1_000_000,
        }),
        loss: vec![
            Loss::Bernoulli(0.001),
            Loss::GilbertElliott(GilbertElliott::simple(0.001, 4.0)),
        ],
        duplication: 0.001,
        jitter: Some(Jitter {
            spread: Spread::Exponential(Duration::from_millis(2)),
            may_reorder: true,
        }),
        reordering: Some(Reordering {
            probability: 0.01,
            extra: Duration::from_millis(2),
        }),
        ..queue(Queue::FqCoDel(FqCoDel::default()))
    };
    let mut group = criterion.benchmark_group("packet");
    group.throughput(Throughput::Elements(BURST));
    for (label, config) in [
        ("ideal", Config::default()),
        ("drop_tail_and_delay", drop_tail.clone()),
        ("codel", queue(Queue::CoDel(CoDel::default()))),
        ("fq_codel", queue(Queue::FqCoDel(FqCoDel::default()))),
        ("schedule", capacity(Capacity::Schedule(schedule))),
        ("trace", capacity(Capacity::Trace(trace))),
        ("all_pieces", full),
    ] {
        let mut flow = Flow::new(&config);
        group.bench_function(label, |bencher| bencher.iter(|| flow.burst()));
    }
    group.finish();
}

criterion_group!(benches, packets);
criterion_main!(benches);
