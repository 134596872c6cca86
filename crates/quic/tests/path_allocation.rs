//! A connection that sends allocates nothing for each packet, and neither does one that receives: from handing in a
//! datagram to asking for the next, with acknowledgments, losses, pacing and sealing between. One that is idle holds little.

use lastbyte_testkit::{CountingAllocator, allocation_count, live_bytes};

#[path = "../examples/transfer/pair.rs"]
mod pair;

use crate::pair::{End, Pair, Protection};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const WARM_UP: u64 = 100_000_000;
const MEASURED: u64 = 20_000_000;

/// Allocations of the sender and of the receiver while 20 MB arrive, and how many packets the two sent.
fn allocations(protection: Protection, spec: &str, lose_one_in: u64) -> ([u64; 2], [u64; 2]) {
    let mut pair = Pair::new(&protection.crypto(), 1200, spec, lose_one_in);
    pair.start(2 * (WARM_UP + MEASURED));
    while pair.arrived() < WARM_UP {
        pair.step(&mut |_, work| work());
    }
    let before = pair.packets_sent();
    let mut counts = [0; 2];
    while pair.arrived() < WARM_UP + MEASURED {
        pair.step(&mut |end, work| {
            let allocations = allocation_count();
            work();
            counts[usize::from(end == End::Client)] += allocation_count() - allocations;
        });
    }
    let after = pair.packets_sent();
    (counts, [after.0 - before.0, after.1 - before.1])
}

#[test]
fn a_connection_allocates_nothing_for_a_packet() {
    for protection in [Protection::Aes128Gcm, Protection::Plain] {
        for (spec, lose_one_in) in [("cubic", 0), ("rapid-start", 211), ("bbr", 997)] {
            let (allocations, packets) = allocations(protection, spec, lose_one_in);
            assert!(packets[0] > 15_000, "{packets:?}");
            assert_eq!(allocations, [0, 0], "{protection:?} {spec} {packets:?}");
        }
    }
}

/// What an idle connection of each end holds, itself included: server, then client.
fn idle_bytes(protection: Protection) -> [usize; 2] {
    let crypto = protection.crypto();
    let mut pair = Pair::new(&crypto, 1200, "cubic", 0);
    pair.start(1000);
    while pair.arrived() < 1000 {
        pair.step(&mut |_, work| work());
    }
    pair.into_idle_ends().map(|connection| {
        let before = live_bytes();
        let own = size_of_val(&connection);
        drop(connection);
        own + before - live_bytes()
    })
}

#[test]
fn an_idle_connection_is_small() {
    for (protection, most) in [
        (Protection::Plain, 10 << 10),
        (Protection::Aes128Gcm, 16 << 10),
    ] {
        let bytes = idle_bytes(protection);
        assert!(
            bytes.iter().all(|bytes| *bytes <= most),
            "{protection:?} {bytes:?}"
        );
    }
}
