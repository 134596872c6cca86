//! Links whose behavior is known in closed form.

use core::time::Duration;

use proptest::{collection::vec, prelude::*};

use crate::{
    Capacity, Config, Count, DropReason, Event, Limit, Packet, Rate, Time, Trace,
    random::{Component, Random},
    testing::{Bench, at_ms, at_us, drop_tail, ms},
};

#[test]
fn a_train_takes_its_bits_divided_by_the_rate() {
    // 1500 bytes at 7 Mb/s take 1 714 285.714… ns. If each were rounded, a million of them would be 286 µs late.
    let rate = Rate::from_bits_per_second(7_000_000);
    let mut bench = Bench::new(&drop_tail(rate, Limit::Unlimited), 1);
    let packets = 100_000;
    for _ in 0..packets {
        bench.send(Time::ZERO, Packet::new(1500, ()));
    }
    bench.run();
    for (index, delivery) in bench.arrived.iter().enumerate() {
        let bits = (index as u128 + 1) * 1500 * 8;
        let exact = (bits * 1_000_000_000).div_ceil(7_000_000);
        assert_eq!(u128::from(delivery.at.as_nanos()), exact);
    }
    let elapsed = bench.arrived[packets - 1].at.since(Time::ZERO);
    assert_eq!(bench.link.statistics().busy, elapsed);
    assert_eq!(elapsed, rate.time_for(1500 * packets as u64));
}

#[test]
fn random_arrivals_wait_as_in_an_m_d_1_queue() {
    // Pollaczek–Khinchine: at load ρ and service time s, the mean wait is s ρ / (2 (1 − ρ)), here 1 ms × 2.
    let load = 0.8;
    let random = Random::new(1, Component::Hash, 0);
    let rate = Rate::from_bits_per_second(8_000_000);
    let mut bench = Bench::new(&drop_tail(rate, Limit::Unlimited), 1);
    let mut now = 0.0;
    let packets = 400_000;
    for index in 0..packets {
        now += random.exponential(index) * 1e6 / load;
        bench.send(Time::from_nanos(now as u64), Packet::new(1000, ()));
    }
    bench.run();
    let waited = bench.events.0.iter().filter_map(|entry| match entry.2 {
        Event::ServiceStarted { waited } => Some(waited),
        _ => None,
    });
    let mean = waited.sum::<Duration>().as_secs_f64() / packets as f64;
    assert!((mean / 0.002 - 1.0).abs() < 0.05, "{mean}");
    let utilisation = bench.link.statistics().busy.as_secs_f64() / (now / 1e9);
    assert!((utilisation / load - 1.0).abs() < 0.01, "{utilisation}");
}

#[test]
fn a_fluid_overload_fills_the_queue_and_loses_the_rest() {
    // 12 Mb/s into 8 Mb/s with a queue of 100 kB: full after 200 ms, then a third is lost.
    let rate = Rate::from_bits_per_second(8_000_000);
    let mut bench = Bench::new(&drop_tail(rate, Limit::Time(ms(100))), 1);
    for index in 0..3000 {
        bench.send(at_us(index * 1000 * 2 / 3), Packet::new(1000, ()));
    }
    let full = Event::Dropped(DropReason::QueueFull);
    let drops = bench.events.of(|event| event == full);
    assert!((at_ms(198)..at_ms(202)).contains(&drops[0].0));
    // The excess of 4 Mb/s during 2 s − 200 ms.
    assert!((895..=905).contains(&drops.len()), "{}", drops.len());
    assert_eq!(bench.link.statistics().queue_peak_bytes, 100_000);
}

#[test]
fn a_trace_delivers_its_mean_rate() {
    let trace = Trace::from_millis(&[1, 1, 4, 9, 9, 9, 10]).expect("valid trace");
    let mean = trace.nominal();
    assert_eq!(mean, Rate::from_bits_per_second(8_400_000));
    let config = Config {
        capacity: Capacity::Trace(trace),
        ..Config::default()
    };
    let mut bench = Bench::new(&config, 1);
    // 700 bytes do not divide an opportunity, so partial packets must be counted.
    for _ in 0..20_000 {
        bench.send(Time::ZERO, Packet::new(700, ()));
    }
    bench.run_until(at_ms(10_000));
    let delivered = bench.link.statistics().delivered.bytes;
    let expected = mean.bytes_in(ms(10_000));
    assert!(expected - delivered < 700, "{delivered} of {expected}");
}

proptest! {
    /// Compares drop-tail with Lindley's recursion: a packet starts when it has arrived and its predecessor has ended,
    /// and it fits if the earlier packets that have not started leave enough space.
    #[test]
    fn any_drop_tail_matches_lindleys_recursion(
        packets in vec((0u64..3000, 0u32..3000), 1..200),
        rate in 1_000_000u64..100_000_000,
        limit in 0u64..20_000,
        in_packets: bool,
        delay in 0u64..50,
    ) {
        let rate = Rate::from_bits_per_second(rate);
        let limit = if in_packets { Limit::Packets(limit / 1000) } else { Limit::Bytes(limit) };
        let mut bench = Bench::new(&Config { delay: ms(delay), ..drop_tail(rate, limit) }, 1);
        // Start times and sizes of accepted packets; the work since the link was last idle, and when that was.
        let mut begun: Vec<(Time, u64)> = Vec::new();
        let (mut ends, mut idle_until, mut work) = (Time::ZERO, Time::ZERO, 0u128);
        let mut expected = Vec::new();
        let mut now = 0;
        for (number, (gap, bytes)) in packets.into_iter().enumerate() {
            now += gap;
            let at = at_us(now);
            bench.send(at, Packet::new(bytes, ()));
            let waiting: Vec<u64> = begun.iter().filter(|(begin, _)| *begin > at).map(|(_, bytes)| *bytes).collect();
            let room = match limit {
                Limit::Bytes(limit) => waiting.iter().sum::<u64>() + u64::from(bytes) <= limit,
                Limit::Packets(limit) => (waiting.len() as u64) < limit,
                _ => true,
            };
            if ends <= at {
                (idle_until, work, ends) = (at, 0, at);
            } else if !room {
                continue;
            }
            begun.push((ends, u64::from(bytes)));
            work += u128::from(bytes) * 8_000_000_000;
            let nanos = work.div_ceil(u128::from(rate.bits_per_second()));
            ends = idle_until + Duration::from_nanos(nanos as u64);
            expected.push((ends + ms(delay), number as u64));
            let depth = Count { packets: bench.link.queue_packets(), bytes: bench.link.queue_bytes() };
            match limit {
                Limit::Bytes(limit) => prop_assert!(depth.bytes <= limit),
                Limit::Packets(limit) => prop_assert!(depth.packets <= limit),
                _ => {}
            }
        }
        bench.run();
        let arrived: Vec<(Time, u64)> = bench.arrived.iter().map(|d| (d.at, d.number)).collect();
        prop_assert_eq!(arrived, expected);
    }

    #[test]
    fn any_span_carries_no_more_than_the_rate_and_a_packet(
        packets in vec((0u64..2000, 1u32..3000), 2..150),
        rate in 100_000u64..1_000_000_000,
    ) {
        let rate = Rate::from_bits_per_second(rate);
        let mut bench = Bench::new(&drop_tail(rate, Limit::Unlimited), 1);
        let mut now = 0;
        for (gap, bytes) in packets {
            now += gap;
            bench.send(at_us(now), Packet::new(bytes, ()));
        }
        bench.run();
        for (from, first) in bench.arrived.iter().enumerate() {
            let mut sum = 0;
            for next in &bench.arrived[from + 1..] {
                sum += u64::from(next.packet.bytes);
                // One nanosecond of rounding.
                let span = next.at.since(first.at) + Duration::from_nanos(1);
                prop_assert!(rate.time_for(sum) <= span);
            }
        }
    }

    /// Compares a trace with a naive model: the bytes of each opportunity go to the queued packets in order.
    #[test]
    fn any_trace_matches_a_naive_model(
        mut timestamps in vec(0u64..20, 1..8),
        packets in vec((0u64..4000, 0u32..4000), 1..80),
    ) {
        timestamps.sort_unstable();
        *timestamps.last_mut().expect("one") += 1;
        let period = *timestamps.last().expect("one");
        let config = Config {
            capacity: Capacity::Trace(Trace::from_millis(&timestamps).expect("valid trace")),
            ..Config::default()
        };
        let mut bench = Bench::new(&config, 1);
        let mut now = 0;
        let mut sent = Vec::new();
        for (gap, bytes) in packets {
            now += gap;
            bench.send(at_us(now), Packet::new(bytes, ()));
            sent.push((now, bytes));
        }
        bench.run();
        let mut expected = Vec::new();
        let mut head = 0;
        let mut carried = 0;
        'all: for turn in 0.. {
            for timestamp in &timestamps {
                let at = (turn * period + timestamp) * 1000;
                let mut left = 1500;
                while head < sent.len() && sent[head].0 < at {
                    let part = left.min(sent[head].1 - carried);
                    carried += part;
                    left -= part;
                    if carried < sent[head].1 {
                        break;
                    }
                    expected.push((at_us(at), head as u64));
                    head += 1;
                    carried = 0;
                    if left == 0 {
                        break;
                    }
                }
                if head == sent.len() {
                    break 'all;
                }
            }
        }
        let arrived: Vec<(Time, u64)> = bench.arrived.iter().map(|d| (d.at, d.number)).collect();
        prop_assert_eq!(arrived, expected);
    }
}
