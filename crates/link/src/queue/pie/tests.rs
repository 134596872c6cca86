//! Steps computed by hand, and whole timelines at one byte per microsecond.

use core::time::Duration;

use super::*;
use crate::{
    Capacity, Config, Ecn, Limit, Packet, Queue,
    testing::{BYTE_A_MICROSECOND, Bench, at_us, ms},
};

fn control() -> Control {
    Control::new(&Pie::default())
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-12, "{found} {expected}");
}

#[test]
fn rfc8033_4_2_the_probability_follows_distance_and_growth_of_the_delay() {
    let mut control = control();
    control.update(0.030);
    // 0.125 x 15 ms + 1.25 x 30 ms, divided by 2048.
    near(control.probability, 0.039_375 / 2048.0);
    control.update(0.030);
    // No growth, and the next smaller divisor.
    near(control.probability, 0.039_375 / 2048.0 + 0.001_875 / 128.0);
    control.probability = 0.5;
    control.update(0.040);
    near(control.probability, 0.5 + 0.125 * 0.025 + 1.25 * 0.010);
    // At most 2 % at once.
    control.update(0.140);
    near(
        control.probability,
        0.5 + 0.125 * 0.025 + 1.25 * 0.010 + 0.02,
    );
    control.update(0.0);
    assert!(control.probability < 0.4);
    control.probability = 0.001;
    control.update(0.0);
    near(control.probability, (0.001 - 0.125 * 0.015 / 8.0) * 0.98);
}

#[test]
fn rfc8033_4_4_a_burst_is_spared() {
    let mut control = control();
    let full = Count {
        packets: 100,
        bytes: 100_000,
    };
    let mut spared = 0;
    while control.burst_left > 0 {
        assert!(!control.is_chosen(full, 0.0));
        control.update(0.1);
        spared += 1;
    }
    assert_eq!(spared, 10);
    control.probability = 0.5;
    // The accumulated probability has to reach 0.85 (§5.4).
    assert!(!control.is_chosen(full, 0.0));
    assert!(control.is_chosen(full, 0.0));
    assert!(!control.is_chosen(full, 0.9));
    assert!(!control.is_chosen(full, 0.9));
    // A queue of two packets is exempt.
    let short = Count {
        packets: 2,
        bytes: 2000,
    };
    control.accumulated = 8.0;
    assert!(!control.is_chosen(short, 0.0));
    // Beyond 8.5, one is dropped for certain.
    assert!(control.is_chosen(full, 0.99));
}

/// Packets of 1000 bytes, 20 % more than the link carries, for ten seconds.
fn overload(pie: Pie, ecn: Ecn) -> Bench<()> {
    let config = Config {
        capacity: Capacity::Constant(BYTE_A_MICROSECOND),
        queue: Queue::Pie(pie),
        ..Config::default()
    };
    let mut bench = Bench::new(&config, 1);
    for index in 0..12_000 {
        bench.send(at_us(index * 833), Packet::new(1000, ()).with_ecn(ecn));
    }
    bench
}

#[test]
fn an_overload_is_kept_near_the_target_after_the_burst() {
    let mut bench = overload(Pie::default(), Ecn::NotEct);
    let drops = bench.events.of(|e| e == Event::Dropped(DropReason::Aqm));
    assert!(drops[0].0 >= Time::ZERO + ms(150), "{:?}", drops[0]);
    bench.run();
    let waits: Vec<Duration> = bench
        .arrived
        .iter()
        .filter(|delivery| delivery.at > at_us(5_000_000))
        .map(|delivery| delivery.at.since(at_us(delivery.number * 833)))
        .collect();
    let mean = waits.iter().sum::<Duration>() / waits.len() as u32;
    assert!(mean > ms(12) && mean < ms(22), "{mean:?}");
    let late = drops
        .iter()
        .filter(|drop| drop.0 > at_us(5_000_000))
        .count() as f64;
    let share = late / 6000.0;
    assert!((share - 1.0 / 6.0).abs() < 0.01, "{share}");
}

#[test]
fn rfc8033_5_1_capable_packets_are_marked_below_a_tenth() {
    let pie = Pie {
        ecn: true,
        ..Pie::default()
    };
    let bench = overload(pie, Ecn::Ect0);
    let first_mark = bench.events.of(|e| e == Event::Marked)[0];
    let first_drop = bench.events.of(|e| e == Event::Dropped(DropReason::Aqm))[0];
    assert!(first_mark.0 < first_drop.0);
    // Packets that do not respond push the probability above a tenth, and the queue stays bounded.
    assert!(bench.link.queue_bytes() < 60_000);
    let bench = overload(pie, Ecn::NotEct);
    assert_eq!(bench.link.statistics().marked.packets, 0);
}

#[test]
fn the_limit_holds() {
    let pie = Pie {
        limit: Limit::Packets(10),
        ..Pie::default()
    };
    let bench = overload(pie, Ecn::NotEct);
    assert!(
        bench
            .link
            .statistics()
            .dropped(DropReason::QueueFull)
            .packets
            > 0
    );
    assert_eq!(bench.link.statistics().queue_peak_packets, 10);
}
