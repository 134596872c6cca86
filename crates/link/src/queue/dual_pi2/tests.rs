//! Steps computed by hand, and whole timelines at one byte per microsecond.

use super::*;
use crate::{
    Capacity, Config, Limit, Link, Packet, Queue,
    testing::{BYTE_A_MICROSECOND, Bench, at_us},
};

fn config(queue: DualPi2) -> Config {
    Config {
        capacity: Capacity::Constant(BYTE_A_MICROSECOND),
        queue: Queue::DualPi2(queue),
        ..Config::default()
    }
}

fn packet(ecn: Ecn) -> Packet<()> {
    Packet::new(1000, ()).with_ecn(ecn)
}

#[test]
fn rfc9332_a_1_the_base_probability_follows_the_classic_delay() {
    let mut control = Control {
        target: 0.015,
        base: 0.0,
        delay_before: 0.0,
    };
    assert!(control.update(0.020));
    let expected = 0.15 * 0.005 + 3.0 * 0.020;
    assert!((control.base - expected).abs() < 1e-12);
    assert!((control.coupled() - 2.0 * expected).abs() < 1e-12);
    assert!((control.classic() - expected * expected).abs() < 1e-12);
    control.update(0.0);
    assert!(control.base < 1e-9);
    control.update(0.0);
    assert!(!control.update(0.0));
}

#[test]
fn rfc9332_a_1_l4s_packets_are_marked_on_a_ramp() {
    let us = Duration::from_micros;
    assert!(ramp(us(800)).abs() < 1e-12);
    assert!((ramp(us(1000)) - 0.5).abs() < 1e-9);
    assert!((ramp(us(1200)) - 1.0).abs() < 1e-12);
    // Ten L4S packets at once; those that waited for 1 ms and more have others behind them, but the last.
    let mut bench = Bench::new(&config(DualPi2::default()), 1);
    for _ in 0..10 {
        bench.send(Time::ZERO, packet(Ecn::Ect1));
    }
    bench.run();
    let marked: Vec<u64> = bench
        .events
        .of(|e| e == Event::Marked)
        .iter()
        .map(|(_, number)| *number)
        .collect();
    // The half mark of the second one becomes whole with the third.
    assert_eq!(marked, [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(bench.link.statistics().dropped_total().packets, 0);
}

#[test]
fn recurrence_has_the_given_probability() {
    let mut recurrence = Recurrence::default();
    let count = (0..1000).filter(|_| recurrence.happens(0.3)).count();
    assert!((299..=300).contains(&count), "{count}");
}

/// A classic overload of 10 % and an L4S flow of 5 % of the link, for 60 s.
fn mixed() -> Bench<()> {
    let mut bench = Bench::new(&config(DualPi2::default()), 1);
    for index in 0..60_000 {
        bench.send(at_us(index * 1000), packet(Ecn::NotEct));
        if index % 10 == 5 {
            bench.send(at_us(index * 1000 + 500), packet(Ecn::NotEct));
        }
        if index % 20 == 0 {
            bench.send(at_us(index * 1000 + 700), packet(Ecn::Ect1));
        }
    }
    bench
}

#[test]
fn rfc9332_2_4_l4s_marks_are_twice_the_root_of_classic_drops() {
    let bench = mixed();
    let settled = at_us(20_000_000);
    let count = |event: Event| {
        bench
            .events
            .of(|e| e == event)
            .iter()
            .filter(|e| e.0 > settled)
            .count() as f64
    };
    let dropped = count(Event::Dropped(DropReason::Aqm)) / (40_000.0 * 1.1);
    let marked = count(Event::Marked) / 2000.0;
    assert!(dropped > 0.1, "{dropped}");
    assert!(
        (marked / (2.0 * dropped.sqrt()) - 1.0).abs() < 0.1,
        "{marked} {dropped}"
    );
}

#[test]
fn rfc9332_l4s_packets_have_little_delay_beside_a_classic_queue() {
    let mut bench = mixed();
    bench.run();
    let waited = bench
        .arrived
        .iter()
        .filter(|delivery| matches!(delivery.packet.ecn, Ecn::Ect1 | Ecn::Ce))
        .map(|delivery| delivery.at)
        .zip((0..3000).map(|index| at_us(index * 20_000 + 700)))
        .map(|(at, sent)| at.since(sent))
        .max();
    // The packet in service, and its own transmission.
    assert!(
        waited.is_some_and(|waited| waited <= Duration::from_millis(2)),
        "{waited:?}"
    );
}

#[test]
fn an_overload_of_l4s_packets_leaves_a_tenth_to_the_classic_queue() {
    let limited = DualPi2 {
        limit: Limit::Packets(100),
        ..DualPi2::default()
    };
    let mut link = Link::new(&config(limited), 1).expect("valid configuration");
    let (mut classic, mut all) = (0, 0);
    for index in 0..30_000 {
        let now = at_us(index * 500);
        link.send(now, packet(Ecn::Ect1), &mut ());
        if index % 2 == 0 {
            link.send(now, packet(Ecn::Ect0), &mut ());
        }
        while let Some(delivery) = link.poll(now, &mut ()) {
            all += 1;
            // Classic packets may be marked, so the order of sending identifies them.
            classic += u64::from(delivery.number % 3 == 1);
        }
    }
    let share = classic as f64 / f64::from(all);
    assert!(share > 0.08, "{share}");
}
