//! A connection that sends allocates nothing for each packet, and neither does one that receives: from handing in a
//! datagram to asking for the next, with acknowledgments, losses, pacing and sealing between. One that is idle holds little.

#![expect(unsafe_code, reason = "an allocator that counts must be an allocator")]

#[path = "../examples/transfer/pair.rs"]
mod pair;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use crate::pair::{End, Pair, Protection};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator; counting touches a thread-local without a destructor, which does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get().wrapping_add(layout.size()));
        // SAFETY: the caller's obligations are passed on as they are.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's obligations are passed on as they are.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
            let allocations = ALLOCATIONS.get();
            work();
            counts[usize::from(end == End::Client)] += ALLOCATIONS.get() - allocations;
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
        let before = LIVE_BYTES.get();
        let own = size_of_val(&connection);
        drop(connection);
        own + before - LIVE_BYTES.get()
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
