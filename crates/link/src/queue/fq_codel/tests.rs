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
fn rfc8290_4_2_a_sparse_flow_has_priority_over_a_bulk_flow() {
    let mut bench = Bench::new(&config(FqCoDel::default()), 1);
    for _ in 0..50 {
        bench.send(Time::ZERO, packet(1000, 1));
    }
    // A packet every 10 ms never exceeds the quantum, so it waits only for the packet in service.
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
    // In the middle of a packet of the bulk flow, which has been delayed by the earlier sparse packets.
    assert_eq!(sparse, [11_100, 21_200, 31_300, 41_400]);
}

#[test]
fn rfc8290_4_2_flows_are_served_a_quantum_per_round() {
    // Quantum 1500: after its first 1000 bytes a flow has 500 left and sends another packet, which leaves a deficit of
    // −500. Then it sends one packet (deficit 1000 to 0), then two, and so on.
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
fn rfc8290_4_2_an_emptied_flow_is_not_immediately_new_again() {
    // Two flows with a backlog, and a third that sends at half of the rate, one packet at a time, which is more than
    // its fair third. If it counted as new with each packet, it would get its half.
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
fn flows_share_bytes_regardless_of_packet_size() {
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
fn rfc8290_4_1_overflow_drops_half_of_the_largest_flow() {
    let fq = FqCoDel {
        codel: CoDel {
            limit: Limit::Packets(10),
            ..CoDel::default()
        },
        ..FqCoDel::default()
    };
    let mut bench = Bench::new(&config(fq), 1);
    // Packet 0 is in service and 1 to 9 are queued. A packet of another flow fills the queue, and one more exceeds the
    // limit.
    for _ in 0..10 {
        bench.send(Time::ZERO, packet(1000, 1));
    }
    bench.send(Time::ZERO, packet(100, 2));
    let full = |bench: &Bench<()>| -> Vec<u64> {
        let full = Event::Dropped(DropReason::QueueFull);
        let dropped = bench.events.of(|event| event == full);
        dropped.into_iter().map(|(_, number)| number).collect()
    };
    assert_eq!(full(&bench), []);
    bench.send(Time::ZERO, packet(100, 2));
    // Packets are dropped from the head until at most half of the 9000 bytes are left.
    assert_eq!(full(&bench), [1, 2, 3, 4, 5]);
    bench.run();
    assert_eq!(bench.arrived.len(), 7);
}

#[test]
fn overflow_drops_at_most_64_packets_at_once() {
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
fn each_flow_has_its_own_codel_state() {
    // A flow that sends at half of its fair share loses nothing next to a flow that sends at twice the rate of the
    // link.
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
fn hash_collisions_depend_on_the_seed() {
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
    fn any_flow_keeps_its_order_and_loses_no_packet(
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
            statistics.delivered.bytes + statistics.dropped_total().bytes
        );
    }
}
