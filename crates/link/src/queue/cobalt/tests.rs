//! Timelines computed by hand for a link of one byte per microsecond and packets of 1000 bytes.

use super::*;
use crate::{
    Capacity, Config, Event, FqCoDel, Limit, Packet, Queue,
    random::Component,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, at_us},
};

fn config(cake: FqCoDel) -> Config {
    Config {
        capacity: Capacity::Constant(BYTE_A_MICROSECOND),
        queue: Queue::Cake(cake),
        ..Config::default()
    }
}

#[test]
fn drops_follow_the_control_law_as_in_sch_cake() {
    let mut bench = Bench::new(&config(FqCoDel::default()), 1);
    for _ in 0..100 {
        bench.send(Time::ZERO, Packet::new(1000, ()));
    }
    for millis in 0..400 {
        bench.send(at_ms(millis), Packet::new(1000, ()));
    }
    // The packet that leaves at 6 ms is the first that waited longer than 5 ms. Then 100/√2 ms, 100/√3 ms, and so on.
    let mut due = 106_000.0;
    let mut expected = vec![106_000];
    for count in 2..6 {
        due += 100_000.0 / f64::from(count).sqrt();
        expected.push((due / 1000.0_f64).ceil() as u64 * 1000);
    }
    let drops: Vec<u64> = bench
        .events
        .of(|e| e == Event::Dropped(DropReason::Aqm))
        .iter()
        .map(|(at, _)| at.as_nanos() / 1000)
        .collect();
    assert_eq!(expected, [106_000, 177_000, 235_000, 285_000, 330_000]);
    assert_eq!(drops[..5], expected);
}

#[test]
fn blue_rises_with_each_overflow_and_falls_when_the_queue_is_empty() {
    let random = Random::new(1, Component::Aqm, 0);
    let mut cobalt = Cobalt::new(&FqCoDel::default().codel, random);
    // At most once in `target`.
    for at in [10, 11, 16, 17, 22] {
        cobalt.on_overflow(at_ms(at));
    }
    assert!((cobalt.blue_probability - 3.0 / 256.0).abs() < 1e-12);
    assert_eq!((cobalt.count, cobalt.is_dropping), (1, true));
    cobalt.on_empty(at_ms(23));
    assert!((cobalt.blue_probability - 3.0 / 256.0).abs() < 1e-12);
    cobalt.on_empty(at_ms(28));
    assert!((cobalt.blue_probability - (3.0 / 256.0 - 1.0 / 4096.0)).abs() < 1e-12);
    assert!(!cobalt.is_dropping);
}

#[test]
fn a_flood_does_not_affect_another_flow() {
    let mut cake = FqCoDel::default();
    cake.codel.limit = Limit::Packets(200);
    let mut bench = Bench::new(&config(cake), 1);
    for index in 0..20_000 {
        bench.send(at_us(index * 200), Packet::new(1000, ()).with_flow(1));
        if index % 50 == 0 {
            bench.send(at_us(index * 200), Packet::new(1000, ()).with_flow(2));
        }
    }
    bench.run();
    let sparse: Vec<Time> = bench
        .arrived
        .iter()
        .filter(|delivery| delivery.packet.flow == 2)
        .map(|delivery| delivery.at)
        .collect();
    assert_eq!(sparse.len(), 400);
    let slowest = sparse
        .iter()
        .zip(0..)
        .map(|(at, index)| at.since(at_us(index * 10_000)))
        .max()
        .expect("packets");
    assert!(slowest.as_millis() <= 4, "{slowest:?}");
    assert!(bench.link.statistics().dropped(DropReason::Aqm).packets > 0);
}
