//! Several hops in series, compared with a naive model.

use proptest::{collection::vec, prelude::*};

use crate::{
    Capacity, Config, ConfigError, DropReason, DropTail, Event, HOPS_MAX, Limit, Link, Loss,
    Packet, Queue, Rate, Statistics, Time,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, drop_tail, ms},
};

/// A rate at which a byte takes this many microseconds.
fn microseconds_a_byte(microseconds: u64) -> Rate {
    Rate::from_bits_per_second(BYTE_A_MICROSECOND.bits_per_second() / microseconds)
}

fn hop(microseconds: u64, queue_bytes: u64, delay_ms: u64) -> Config {
    let rate = microseconds_a_byte(microseconds);
    Config {
        delay: ms(delay_ms),
        ..drop_tail(rate, Limit::Bytes(queue_bytes))
    }
}

fn in_series(mut hops: Vec<Config>) -> Config {
    let further = hops.split_off(1);
    Config {
        further,
        ..hops.remove(0)
    }
}

/// The counters of a hop.
fn of_hop<T: Clone>(bench: &Bench<T>, hop: usize) -> &Statistics {
    bench.link.hop_statistics(hop).expect("a hop")
}

#[test]
fn a_train_of_packets_leaves_each_hop_at_the_computed_time() {
    let mut bench = Bench::new(&in_series(vec![hop(1, 10_000, 5), hop(2, 10_000, 7)]), 1);
    for number in 0..3 {
        bench.send(Time::ZERO, Packet::new(1000, number));
    }
    bench.run();
    // The packets leave the first hop at 1, 2 and 3 ms and are at the second 5 ms later, which sends them in 2 ms each.
    let ends = |event| matches!(event, Event::ServiceEnded { .. });
    let ends = bench.events.of(ends).into_iter().map(|(at, _)| at);
    assert!(ends.eq([1, 2, 3, 8, 10, 12].map(at_ms)));
    assert_eq!(bench.arrivals_ms(), [(15, 0), (17, 1), (19, 2)]);
}

#[test]
fn a_queue_builds_at_the_narrowest_hop_only_whose_rate_is_that_of_the_link() {
    let hops = vec![hop(2, 9000, 1), hop(4, 9000, 1), hop(1, 9000, 1)];
    let mut bench = Bench::new(&in_series(hops), 1);
    // At the rate of the first hop.
    for number in 0..1000 {
        bench.send(at_ms(2 * number), Packet::new(1000, number));
    }
    bench.run_until(at_ms(2000));
    assert_eq!(of_hop(&bench, 0).queue_peak_bytes, 0);
    assert_eq!(of_hop(&bench, 2).queue_peak_bytes, 0);
    let all = bench.link.statistics();
    assert_eq!(of_hop(&bench, 1).queue_peak_bytes, 9000);
    assert_eq!((all.queue_peak_bytes, all.queue_peak_packets), (9000, 9));
    assert_eq!(
        (bench.link.queue_bytes(), bench.link.queue_packets()),
        (9000, 9)
    );
    // The first packet is at the second hop after 3 ms, the last that has left it is one delay and 1 ms of service away.
    let served = (2000 - 3) / 4;
    assert_eq!((all.served.packets, all.busy), (served, ms(4 * served)));
    let arrived = (2000 - 3 - 1 - 1 - 1) / 4;
    assert_eq!(all.delivered.packets, arrived);
    assert_eq!(bench.arrived.len() as u64, arrived);
    let dropped = all.dropped(DropReason::QueueFull);
    assert_eq!(dropped, of_hop(&bench, 1).dropped(DropReason::QueueFull));
    assert_eq!(dropped, all.dropped_total());
}

#[test]
fn a_packet_passes_the_hops_that_it_names() {
    let config = in_series(vec![hop(1, 9000, 10), hop(1, 9000, 20), hop(1, 9000, 40)]);
    for ((enters, leaves), sum_of_delays, passed) in [
        ((0, u8::MAX), 70, [1, 1, 1]),
        ((0, 0), 10, [1, 0, 0]),
        ((1, 1), 20, [0, 1, 0]),
        ((1, 2), 60, [0, 1, 1]),
        ((2, 2), 40, [0, 0, 1]),
        // Hops that do not exist count as the last, and one hop is the least.
        ((9, 9), 40, [0, 0, 1]),
        ((2, 0), 40, [0, 0, 1]),
    ] {
        let mut bench = Bench::new(&config, 1);
        let length = passed.iter().sum::<u64>();
        bench.send(Time::ZERO, Packet::new(1000, ()).through(enters..=leaves));
        assert_eq!(bench.link.inside().packets, 1);
        bench.run();
        assert_eq!(bench.arrivals_ms(), [(sum_of_delays + length, 0)]);
        let counts = [0, 1, 2].map(|hop| of_hop(&bench, hop).sent.packets);
        assert_eq!(counts, passed);
        assert_eq!(bench.link.statistics().sent.packets, 1);
    }
}

#[test]
fn hops_with_the_same_settings_draw_different_numbers() {
    let lossy = || Config {
        loss: vec![Loss::Bernoulli(0.5)],
        ..Config::default()
    };
    let mut bench = Bench::new(&in_series(vec![lossy(), lossy()]), 1);
    for number in 0..4000 {
        bench.send(Time::ZERO, Packet::new(1000, number));
    }
    bench.run();
    let second = of_hop(&bench, 1);
    let share = second.dropped_total().packets as f64 / second.sent.packets as f64;
    assert!((share - 0.5).abs() < 0.04, "{share}");
}

#[test]
fn the_bottleneck_is_the_first_hop_with_the_lowest_rate() {
    let unlimited = Config::default;
    let of = |hops| in_series(hops).bottleneck().0;
    assert_eq!(of(vec![unlimited()]), 0);
    assert_eq!(of(vec![unlimited(), unlimited()]), 0);
    assert_eq!(of(vec![unlimited(), hop(1, 0, 0)]), 1);
    assert_eq!(of(vec![hop(1, 0, 0), unlimited()]), 0);
    assert_eq!(of(vec![hop(4, 0, 0), hop(8, 0, 0), hop(8, 0, 0)]), 1);
}

#[test]
fn the_number_of_hops_has_a_bound() {
    let config = |hops| in_series(vec![Config::default(); hops]);
    assert_eq!(config(HOPS_MAX).check(), Ok(()));
    let hops = HOPS_MAX + 1;
    assert_eq!(config(hops).check(), Err(ConfigError::Hops { hops }));
    let nested = in_series(vec![Config::default(), config(2)]);
    assert_eq!(nested.check(), Err(ConfigError::NestedHops));
    let wrong = in_series(vec![
        Config::default(),
        Config {
            duplication: 2.0,
            ..Config::default()
        },
    ]);
    assert!(wrong.check().is_err());
    assert!(Link::<()>::new(&wrong, 1).is_err());
}

/// A packet of the model: when it is at the next hop, its number and size, and the hops that it passes.
#[derive(Clone, Debug)]
struct Model {
    at: u64,
    number: u64,
    bytes: u64,
    hops: core::ops::RangeInclusive<u8>,
}

/// Sends packets through a hop, given in order of time. Each starts when it and the medium are ready, unless those that
/// wait then fill the queue.
fn through(hop: &Config, packets: Vec<Model>) -> Vec<Model> {
    let (
        Capacity::Constant(rate),
        Queue::DropTail(DropTail {
            limit: Limit::Bytes(limit),
            ..
        }),
    ) = (&hop.capacity, &hop.queue)
    else {
        unreachable!("hops of the model")
    };
    let nanos_a_byte = 8_000_000_000 / rate.bits_per_second();
    let mut accepted: Vec<(u64, u64)> = Vec::new();
    let mut free = 0;
    let mut passed = Vec::new();
    for packet in packets {
        let waiting = accepted.iter().filter(|(start, _)| *start > packet.at);
        let waiting: u64 = waiting.map(|(_, bytes)| bytes).sum();
        if free > packet.at && waiting + packet.bytes > *limit {
            continue;
        }
        let start = free.max(packet.at);
        accepted.push((start, packet.bytes));
        free = start + packet.bytes * nanos_a_byte;
        passed.push(Model {
            at: free + hop.delay.as_nanos() as u64,
            ..packet
        });
    }
    passed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn packets_leave_when_the_model_says(
        hops in vec((prop::sample::select(vec![1u64, 2, 4, 5, 8]), 0u64..8000, 0u64..20), 1..=HOPS_MAX),
        packets in vec((0u64..2000, 1u32..1500, prop_oneof![Just((0, u8::MAX)), (0u8..8, 0u8..8)]), 1..200),
    ) {
        let hops: Vec<Config> = hops.into_iter().map(|(rate, queue, delay)| hop(rate, queue, delay)).collect();
        let mut link = Link::new(&in_series(hops.clone()), 1).expect("valid configuration");
        let last = hops.len() as u8 - 1;
        let mut sent = Vec::new();
        let mut at = 0;
        for ((gap, bytes, (enters, leaves)), number) in packets.into_iter().zip(0..) {
            // Each packet has a fraction of a microsecond of its own, so that no two are at a hop at the same time.
            at = (at / 1000 + 1 + gap) * 1000 + number;
            let packet = Packet::new(bytes, ()).through(enters..=leaves);
            link.send(Time::from_nanos(at), packet, &mut ());
            let enters = enters.min(last);
            sent.push(Model { at, number, bytes: bytes.into(), hops: enters..=leaves.clamp(enters, last) });
        }
        let mut expected = Vec::new();
        let mut inside: Vec<Model> = Vec::new();
        for (hop, index) in hops.iter().zip(0u8..) {
            inside.extend(sent.iter().filter(|packet| *packet.hops.start() == index).cloned());
            inside.sort_by_key(|packet| packet.at);
            let (left, on): (Vec<_>, Vec<_>) = through(hop, inside)
                .into_iter()
                .partition(|packet| *packet.hops.end() == index);
            expected.extend(left.into_iter().map(|packet| (packet.at, packet.number)));
            inside = on;
        }
        expected.sort_unstable();
        let mut arrived = Vec::new();
        while let Some(delivery) = link.poll(Time::MAX, &mut ()) {
            arrived.push((delivery.at.as_nanos(), delivery.number));
        }
        prop_assert!(arrived.is_sorted_by_key(|(at, _)| *at));
        arrived.sort_unstable();
        prop_assert_eq!(arrived, expected);
    }
}
