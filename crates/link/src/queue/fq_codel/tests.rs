use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    Capacity, CoDel, Config, Limit, Packet, Queue,
    testing::{BYTE_A_MICROSECOND, Bench, at_ms, at_us, ms},
};

fn config(fq: FqCoDel) -> Config {
    Config {
        capacity: Capacity::Constant(BYTE_A_MICROSECOND),
        queue: Queue::FqCoDel(fq),
        ..Config::default()
    }
}

fn packet(bytes: u32, flow: u32) -> Packet<()> {
    Packet::new(bytes, ()).with_flow(flow)
}

#[test]
fn rfc8290_4_2_a_sparse_flow_goes_before_a_bulk_one() {
    let mut bench = Bench::new(&config(FqCoDel::default()), 1);
    for _ in 0..50 {
        bench.send(Time::ZERO, packet(1000, 1));
    }
    // A packet each 10 ms: never more than the quantum, so it waits for the packet in service only.
    for n in 0..4 {
        bench.send(at_us(10_500 + n * 10_000), packet(100, 2));
    }
    bench.run();
    let sparse: Vec<u64> = bench
        .arrived
        .iter()
        .filter(|delivery| delivery.packet.flow == 2)
        .map(|delivery| delivery.at.as_nanos() / 1000)
        .collect();
    // In the middle of a packet of the bulk flow, which by then is late by the sparse packets before.
    assert_eq!(sparse, [11_100, 21_200, 31_300, 41_400]);
}

#[test]
fn rfc8290_4_2_flows_take_turns_of_a_quantum() {
    // Quantum 1500: after its first 1000 bytes, a flow has 500 left and sends another packet, and is 500 in debt; then
    // one packet (deficit 1000 to 0), then two, and so on.
    let fq = FqCoDel {
        quantum: 1500,
        ..FqCoDel::default()
    };
    let mut bench = Bench::new(&config(fq), 1);
    for flow in [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2] {
        bench.send(Time::ZERO, packet(1000, flow));
    }
    bench.run();
    let order: Vec<u32> = bench.arrived.iter().map(|d| d.packet.flow).collect();
    assert_eq!(order, [1, 1, 2, 2, 1, 2, 1, 1, 2, 2, 1, 2]);
}

#[test]
fn rfc8290_4_2_a_flow_that_runs_empty_is_not_new_again_at_once() {
    // Two flows with a backlog, and one that sends half of the rate, a packet at a time: more than its third. It would get
    // its half, were it a new flow with each packet.
    let mut bench = Bench::new(&config(FqCoDel::default()), 1);
    for _ in 0..200 {
        bench.send(Time::ZERO, packet(1000, 1));
        bench.send(Time::ZERO, packet(1000, 2));
    }
    for n in 0..140 {
        bench.send(at_us(20_500 + 2000 * n), packet(1000, 3));
    }
    bench.run_until(at_ms(300));
    let third = bench.arrived.iter().filter(|d| d.packet.flow == 3).count();
    assert!((90..=100).contains(&third), "{third}");
}

#[test]
fn flows_share_by_bytes_whatever_their_packets() {
    let mut bench = Bench::new(&config(FqCoDel::default()), 1);
    for n in 0..2000 {
        bench.send(at_us(n * 500), packet(1000, 1));
        for part in 0..5 {
            bench.send(at_us(n * 500 + part * 100), packet(200, 2));
        }
    }
    bench.run_until(at_ms(1000));
    let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
    for delivery in &bench.arrived {
        *bytes.entry(delivery.packet.flow).or_default() += u64::from(delivery.packet.bytes);
    }
    let share = bytes[&1] as f64 / (bytes[&1] + bytes[&2]) as f64;
    assert!((0.49..0.51).contains(&share), "{bytes:?}");
}

#[test]
fn rfc8290_4_1_the_largest_flow_gives_up_half_when_there_is_too_much() {
    let fq = FqCoDel {
        codel: CoDel {
            limit: Limit::Packets(10),
            ..CoDel::default()
        },
        ..FqCoDel::default()
    };
    let mut bench = Bench::new(&config(fq), 1);
    // Packet 0 is in service, 1 to 9 wait; a flow of its own fills the queue, and one more is too many.
    for _ in 0..10 {
        bench.send(Time::ZERO, packet(1000, 1));
    }
    bench.send(Time::ZERO, packet(100, 2));
    let full = |bench: &Bench<()>| -> Vec<u64> {
        let full = Event::Dropped(DropReason::QueueFull);
        let dropped = bench.notes.of(|event| event == full);
        dropped.into_iter().map(|(_, number)| number).collect()
    };
    assert_eq!(full(&bench), []);
    bench.send(Time::ZERO, packet(100, 2));
    // Of 9000 bytes, 5000 are more than half; they go from the head.
    assert_eq!(full(&bench), [1, 2, 3, 4, 5]);
    bench.run();
    assert_eq!(bench.arrived.len(), 7);
}

#[test]
fn a_flow_gives_up_no_more_than_64_packets_at_a_time() {
    let fq = FqCoDel {
        codel: CoDel {
            limit: Limit::Packets(200),
            ..CoDel::default()
        },
        ..FqCoDel::default()
    };
    let mut bench = Bench::new(&config(fq), 1);
    for _ in 0..202 {
        bench.send(Time::ZERO, packet(1000, 1));
    }
    let full = bench.link.statistics().dropped(DropReason::QueueFull);
    assert_eq!(full.packets, 64);
}

#[test]
fn each_flow_has_a_control_of_its_own() {
    // A flow that sends half of what it may is never dropped, next to one that sends twice as much as there is.
    let mut bench = Bench::new(&config(FqCoDel::default()), 1);
    for n in 0..2000 {
        bench.send(at_us(n * 500), packet(1000, 1));
        if n % 8 == 0 {
            bench.send(at_us(n * 500), packet(1000, 2));
        }
    }
    bench.run();
    let modest = bench.arrived.iter().filter(|d| d.packet.flow == 2).count();
    assert_eq!(modest, 250);
    assert!(bench.link.statistics().dropped(DropReason::CoDel).packets > 10);
}

#[test]
fn which_flows_collide_is_a_matter_of_the_seed() {
    let collisions = |seed| {
        let fq = FqCoDel {
            flows: 16,
            ..FqCoDel::default()
        };
        let mut queue = FqCoDelQueue::<()>::new(&fq, BYTE_A_MICROSECOND, seed);
        let indices: Vec<u32> = (0..12).map(|flow| queue.classify(flow)).collect();
        assert!(indices.iter().all(|index| *index < 12));
        indices
    };
    assert_eq!(collisions(1), collisions(1));
    assert!((2..5).any(|seed| collisions(seed) != collisions(1)));
}

proptest! {
    #[test]
    fn any_flow_keeps_its_order_and_nothing_is_forgotten(
        packets in vec((0u64..3000, 0u32..5, 0u32..3000), 1..300),
        limit in 0u64..40,
        quantum in 256u32..3000,
        flows in 1u32..8,
    ) {
        let codel = CoDel { limit: Limit::Packets(limit), target: ms(1), interval: ms(10), ..CoDel::default() };
        let mut bench = Bench::new(&config(FqCoDel { codel, flows, quantum }), 1);
        let mut now = 0;
        for (gap, flow, bytes) in packets {
            now += gap;
            bench.send(at_us(now), packet(bytes, flow));
            prop_assert!(bench.link.queue_packets() <= limit);
        }
        bench.run();
        prop_assert_eq!(bench.link.inside(), Count::default());
        let mut last = BTreeMap::new();
        for delivery in &bench.arrived {
            let before = last.insert(delivery.packet.flow, delivery.number);
            prop_assert!(before.is_none_or(|before| before < delivery.number));
        }
        let statistics = bench.link.statistics();
        prop_assert_eq!(
            statistics.sent.bytes,
            statistics.delivered.bytes + statistics.dropped_in_all().bytes
        );
    }
}
