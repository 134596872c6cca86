//! A link does not allocate per packet once its queues have grown.

use std::time::Duration;

use lastbyte_link::{
    Capacity, CoDel, Config, Contention, DropTail, DualPi2, Ecn, FqCoDel, GilbertElliott, Jitter,
    Limit, Link, Loss, Packet, Pie, Policer, Queue, Rate, Reordering, Schedule, Shaper, Spacing,
    Spread, Time, Trace, WakeUp, Wifi,
};
use lastbyte_testkit::{CountingAllocator, allocation_count};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Sends packets of 1500 bytes every millisecond, in bursts of up to 60, at an overload of a fifth, in 16 flows.
fn drive(link: &mut Link<u64>, milliseconds: std::ops::Range<u64>) -> u64 {
    let mut arrived = 0;
    for millis in milliseconds {
        let now = Time::ZERO + Duration::from_millis(millis);
        let burst = if millis % 50 == 0 { 60 } else { 0 };
        for number in 0..burst {
            let packet = Packet::new(1500, number).with_ecn(Ecn::Ect0);
            link.send(now, packet.with_flow((number % 16) as u32), &mut ());
        }
        while link.poll(now, &mut ()).is_some() {
            arrived += 1;
        }
    }
    arrived
}

fn assert_allocates_nothing(name: &str, config: &Config) {
    let mut link = Link::new(config, 1).expect("valid configuration");
    drive(&mut link, 0..30_000);
    let before = allocation_count();
    let arrived = drive(&mut link, 30_000..60_000);
    assert_eq!(allocation_count() - before, 0, "{name}");
    assert!(arrived > 25_000, "{name}: {arrived}");
}

#[test]
fn a_link_does_not_allocate_once_its_queues_have_grown() {
    let limit = Limit::Packets(100);
    let base = Config {
        capacity: Capacity::Constant(Rate::from_bits_per_second(12_000_000)),
        queue: Queue::DropTail(DropTail {
            limit,
            mark_above: Some(Limit::Packets(20)),
        }),
        delay: Duration::from_millis(20),
        ..Config::default()
    };
    assert_allocates_nothing("drop-tail", &base);
    let codel = CoDel {
        ecn: true,
        limit,
        ..CoDel::default()
    };
    let codel_config = Config {
        queue: Queue::CoDel(codel),
        ..base.clone()
    };
    assert_allocates_nothing("CoDel", &codel_config);
    let fq = Config {
        queue: Queue::FqCoDel(FqCoDel {
            codel,
            ..FqCoDel::default()
        }),
        ..base.clone()
    };
    assert_allocates_nothing("FQ-CoDel", &fq);
    let trace = Config {
        capacity: Capacity::Trace(Trace::from_millis(&[1]).expect("valid trace")),
        ..base.clone()
    };
    assert_allocates_nothing("trace", &trace);
    let rate = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
    let steps = [
        (Duration::ZERO, rate(14)),
        (Duration::from_millis(30), rate(10)),
    ];
    let all = Config {
        policer: Some(Policer {
            rate: rate(14),
            burst: 100_000,
        }),
        loss: vec![
            Loss::Bernoulli(0.001),
            Loss::GilbertElliott(GilbertElliott::simple(0.001, 4.0)),
        ],
        duplication: 0.01,
        capacity: Capacity::Schedule(
            Schedule::new(&steps, Some(Duration::from_millis(60))).expect("valid steps"),
        ),
        jitter: Some(Jitter {
            spread: Spread::Uniform(Duration::from_millis(3)),
            may_reorder: true,
        }),
        reordering: Some(Reordering {
            probability: 0.01,
            extra: Duration::from_millis(2),
        }),
        contention: Some(Contention {
            share: 0.2,
            busy: Duration::from_millis(2),
        }),
        wake_up: Some(WakeUp {
            after: Duration::from_millis(30),
            delay: Duration::from_millis(10),
        }),
        release: Some(Spacing::Fixed(Duration::from_millis(2))),
        ..fq
    };
    assert_allocates_nothing("all pieces", &all);
    let series = Config {
        further: vec![all, base.clone()],
        ..base
    };
    assert_allocates_nothing("several hops", &series);
}

#[test]
fn other_disciplines_and_a_shaper_do_not_allocate_either() {
    let limit = Limit::Packets(100);
    let base = Config {
        capacity: Capacity::Constant(Rate::from_bits_per_second(12_000_000)),
        queue: Queue::DropTail(DropTail {
            limit,
            mark_above: None,
        }),
        delay: Duration::from_millis(20),
        ..Config::default()
    };
    let codel = CoDel {
        ecn: true,
        limit,
        ..CoDel::default()
    };
    let cake = Config {
        queue: Queue::Cake(FqCoDel {
            codel,
            ..FqCoDel::default()
        }),
        ..base.clone()
    };
    assert_allocates_nothing("CAKE", &cake);
    let pie = Config {
        queue: Queue::Pie(Pie {
            ecn: true,
            limit,
            ..Pie::default()
        }),
        ..base.clone()
    };
    assert_allocates_nothing("PIE", &pie);
    let dual = Config {
        // A burst takes 60 ms to send: with a shorter target, drops would leave the link idle between bursts.
        queue: Queue::DualPi2(DualPi2 {
            limit,
            target: Duration::from_millis(100),
        }),
        ..base.clone()
    };
    assert_allocates_nothing("DualPI2", &dual);
    let shaped = Config {
        capacity: Capacity::Shaper(Shaper {
            rate: Rate::from_bits_per_second(12_000_000),
            burst: 50_000,
            peak: Rate::from_bits_per_second(50_000_000),
        }),
        ..base.clone()
    };
    assert_allocates_nothing("shaper", &shaped);
    let wifi = Config {
        capacity: Capacity::Wifi(Wifi {
            rate: Rate::from_bits_per_second(13_000_000),
            packets: 64,
            airtime: Duration::from_millis(20),
        }),
        ..base.clone()
    };
    assert_allocates_nothing("Wi-Fi", &wifi);
}
