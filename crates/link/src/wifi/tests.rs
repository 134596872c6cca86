use super::*;
use crate::{
    Capacity, Config, Link, Packet, Time,
    testing::{Bench, ms},
};

/// 64 packets and 4 ms at 100 Mb/s.
fn wifi(mbit: u64) -> Config {
    Config {
        capacity: Capacity::Wifi(Wifi {
            rate: Rate::from_bits_per_second(mbit * 1_000_000),
            packets: 64,
            airtime: ms(4),
        }),
        ..Config::default()
    }
}

const BACKOFF_MEAN: f64 = (SLOT * BACKOFF_MAX) as f64 / 2.0;

#[test]
fn a_lone_packet_pays_for_the_contention_alone() {
    let mut bench = Bench::new(&wifi(100), 1);
    let count = 4000;
    let sent_at = |index: u64| Time::ZERO + ms(1) * index as u32;
    for index in 0..count {
        bench.send(sent_at(index), Packet::new(1250, ()));
    }
    bench.run();
    let mut total = 0;
    for delivery in &bench.arrived {
        let took = delivery.at.nanos_since(sent_at(delivery.number));
        let backoff = took - OVERHEAD - 100_000;
        assert_eq!(backoff % SLOT, 0, "{took}");
        assert!(backoff <= SLOT * BACKOFF_MAX, "{took}");
        total += backoff;
    }
    let mean = total as f64 / count as f64;
    assert!((mean / BACKOFF_MEAN - 1.0).abs() < 0.05, "{mean}");
}

/// The sizes of the batches in which packets arrive, and the rate over all, in Mb/s.
fn saturated(config: &Config, bytes: u32, count: u64) -> (Vec<usize>, f64) {
    let mut bench = Bench::new(config, 7);
    for _ in 0..count {
        bench.send(Time::ZERO, Packet::new(bytes, ()));
    }
    bench.run();
    let numbers: Vec<u64> = bench.arrived.iter().map(|it| it.number).collect();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    let batches = bench
        .arrived
        .chunk_by(|one, other| one.at == other.at)
        .map(<[_]>::len);
    let end = bench.arrived.last().expect("packets").at;
    let bits = (u64::from(bytes) * 8 * count) as f64;
    (
        batches.collect(),
        bits / end.since(Time::ZERO).as_secs_f64() / 1e6,
    )
}

/// The throughput of the model: of an aggregate of so many packets, with the mean of the backoff.
fn model(mbit: f64, bytes: u32, packets: f64) -> f64 {
    let data = f64::from(bytes) * 8.0 * packets / mbit;
    let overhead = (OVERHEAD as f64 + BACKOFF_MEAN) / 1e3;
    data / (data + overhead) * mbit
}

#[test]
fn a_full_queue_is_sent_in_the_largest_aggregates_at_the_rate_of_the_model() {
    // 64 packets last 3.84 ms at 200 Mb/s; at 50 Mb/s, the seventeenth of 240 us begins before 4 ms.
    for (mbit, packets) in [(200, 64), (50, 17)] {
        let (batches, rate) = saturated(&wifi(mbit), 1500, 1 + packets as u64 * 400);
        // The first packet finds the medium idle, and no other waits yet.
        assert_eq!((batches[0], batches.len()), (1, 401));
        assert!(batches[1..].iter().all(|batch| *batch == packets));
        let expected = model(mbit as f64, 1500, packets as f64);
        assert!((rate / expected - 1.0).abs() < 0.005, "{rate} {expected}");
    }
    // Without aggregation, as in 802.11a, half of the time is lost.
    let mut single = wifi(50);
    if let Capacity::Wifi(wifi) = &mut single.capacity {
        wifi.packets = 1;
    }
    let (_, rate) = saturated(&single, 1500, 4000);
    assert!((rate / model(50.0, 1500, 1.0) - 1.0).abs() < 0.01, "{rate}");
    assert!((26.0..29.0).contains(&rate), "{rate}");
}

#[test]
fn what_an_aggregate_contains_is_neither_queued_nor_lost() {
    let mut link: Link<()> = Link::new(&wifi(100), 1).expect("valid configuration");
    for _ in 0..100 {
        link.send(Time::ZERO, Packet::new(1000, ()), &mut ());
    }
    assert_eq!((link.queue_packets(), link.inside().packets), (99, 100));
    // The first transmission is over, and the second has begun: 50 packets are 4 ms.
    let first = link.next_event().expect("a transmission");
    assert!(link.poll(first, &mut ()).is_some() && link.poll(first, &mut ()).is_none());
    assert_eq!((link.queue_packets(), link.inside().packets), (49, 99));
    assert_eq!(link.inside().bytes, 99_000);
}

#[test]
fn a_rate_of_zero_sends_nothing() {
    let mut bench = Bench::new(&wifi(0), 1);
    bench.send(Time::ZERO, Packet::new(1000, ()));
    bench.run();
    assert_eq!(bench.arrived.len(), 0);
    assert_eq!(bench.link.deadline(), None);
}
