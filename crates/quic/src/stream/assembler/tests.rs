use proptest::{collection::vec, prelude::*};

use super::*;

const GAPS_MAX: usize = 64;

/// The byte of the stream at an offset.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9) >> 7) as u8
}

fn bytes(start: u64, len: u64) -> Vec<u8> {
    (start..start + len).map(byte).collect()
}

proptest! {
    /// The model is a map from offset to whether the byte arrived, and a read offset.
    #[test]
    fn assembler_matches_a_map_of_bytes(
        segments in vec((0..20_000_u64, 0..3000_u64, 0..6000_usize), 1..120),
    ) {
        let mut assembler = Assembler::default();
        let mut pool = RingPool::default();
        let mut arrived = vec![false; 24_000];
        let mut read = 0;
        for (offset, len, take) in segments {
            // Segments near the front are what makes progress.
            let offset = if offset % 3 == 0 { offset } else { offset % 1500 + read as u64 / 2 };
            assembler.insert(offset, &bytes(offset, len), usize::MAX, &mut pool).expect("within the limits");
            arrived.iter_mut().skip(offset as usize).take(len as usize).for_each(|a| *a = true);
            let mut left = take;
            while left > 0 && !assembler.peek().is_empty() {
                let taken = assembler.peek().len().min(left);
                prop_assert_eq!(&assembler.peek()[..taken], &bytes(read as u64, taken as u64)[..]);
                assembler.consume(taken, &mut pool);
                read += taken;
                left -= taken;
            }
            let to = arrived.iter().position(|arrived| !arrived).unwrap_or(arrived.len());
            prop_assert_eq!(assembler.received_to(), to as u64);
            prop_assert_eq!(assembler.read_offset(), read as u64);
            let held = arrived.iter().rposition(|arrived| *arrived).map_or(0, |last| last + 1);
            if held <= read {
                prop_assert_eq!(assembler.memory(), 0);
            }
            prop_assert!(assembler.memory() <= 2 * RING_MIN.max(held.saturating_sub(read)).max(1 << 15));
        }
    }
}

#[test]
fn in_order_data_consumed_at_once_needs_no_ring() {
    let (mut assembler, mut pool) = (Assembler::default(), RingPool::default());
    for _ in 0..100 {
        assembler.consume(1200, &mut pool);
    }
    assert_eq!(assembler.read_offset(), 120_000);
    assert_eq!(assembler.memory(), 0);
}

#[test]
fn data_consumed_directly_supersedes_buffered_data() {
    let (mut assembler, mut pool) = (Assembler::default(), RingPool::default());
    assembler
        .insert(5, &bytes(5, 10), GAPS_MAX, &mut pool)
        .expect("within the limits");
    assembler.consume(8, &mut pool);
    assert_eq!(assembler.peek(), &bytes(8, 7)[..]);
}

#[test]
fn rfc9000_21_7_gaps_are_bounded() {
    let (mut assembler, mut pool) = (Assembler::default(), RingPool::default());
    let insert = |assembler: &mut Assembler, pool: &mut RingPool, index: u64| {
        assembler.insert(2 * index + 1, &[0], GAPS_MAX, pool)
    };
    for index in 0..GAPS_MAX as u64 {
        assert_eq!(insert(&mut assembler, &mut pool, index), Ok(()));
    }
    assert_eq!(insert(&mut assembler, &mut pool, 10), Ok(()), "a duplicate");
    assert_eq!(
        insert(&mut assembler, &mut pool, GAPS_MAX as u64),
        Err(TooManyGaps)
    );
}

#[test]
fn discarded_data_still_counts_as_received() {
    let (mut assembler, mut pool) = (Assembler::default(), RingPool::default());
    assembler
        .insert(0, &bytes(0, 10), GAPS_MAX, &mut pool)
        .expect("within the limits");
    assembler
        .insert(20, &bytes(20, 10), GAPS_MAX, &mut pool)
        .expect("within the limits");
    assembler.discard(&mut pool);
    assert_eq!((assembler.memory(), assembler.received_to()), (0, 10));
    assembler
        .insert(10, &bytes(10, 10), GAPS_MAX, &mut pool)
        .expect("within the limits");
    assert_eq!((assembler.memory(), assembler.received_to()), (0, 30));
    assert!(assembler.peek().is_empty());
}

#[test]
fn rings_are_reused() {
    let (mut first, mut second) = (Assembler::default(), Assembler::default());
    let mut pool = RingPool::default();
    first
        .insert(1, &bytes(1, 1200), GAPS_MAX, &mut pool)
        .expect("within the limits");
    first.consume(1201, &mut pool);
    assert_eq!(pool.bytes, RingPool::KEPT_MIN);
    second
        .insert(1, &bytes(1, 1200), GAPS_MAX, &mut pool)
        .expect("within the limits");
    assert_eq!(pool.bytes, 0);
    second.discard(&mut pool);
    assert_eq!(pool.bytes, RingPool::KEPT_MIN);
    for _ in 0..2 {
        first
            .insert(1 << 21, &[0], GAPS_MAX, &mut pool)
            .expect("within the limits");
    }
    first.discard(&mut pool);
    assert!(
        pool.bytes <= RingPool::BYTES_MAX,
        "large rings are not kept"
    );
    pool.clear();
    assert_eq!((pool.bytes, pool.free.len()), (0, 0));
}

#[test]
fn small_rings_are_small_and_not_kept() {
    let (mut assembler, mut pool) = (Assembler::default(), RingPool::default());
    assembler
        .insert(0, &bytes(0, 40), GAPS_MAX, &mut pool)
        .expect("within the limits");
    assert_eq!(assembler.memory(), RING_MIN);
    assembler.consume(40, &mut pool);
    assert_eq!((assembler.memory(), pool.bytes), (0, 0));
}

/// Such as those of requests: each took an allocation.
#[test]
fn small_rings_are_used_again_and_few_are_kept() {
    let mut pool = RingPool::default();
    let short = |pool: &mut RingPool, len: u64| {
        let mut assembler = Assembler::default();
        assembler
            .insert(0, &bytes(0, len), GAPS_MAX, pool)
            .expect("within the limits");
        let place = assembler.peek().as_ptr();
        assert_eq!(assembler.peek(), bytes(0, len));
        assembler.consume(len as usize, pool);
        place
    };
    let first = short(&mut pool, 100);
    for len in [1, 256, 30] {
        assert_eq!(short(&mut pool, len), first);
    }
    assert_eq!((pool.small.len(), pool.free.len()), (1, 0));
    let mut all: Vec<Assembler> = (0..10).map(|_| Assembler::default()).collect();
    for assembler in &mut all {
        assembler
            .insert(0, &bytes(0, 500), GAPS_MAX, &mut pool)
            .expect("within the limits");
    }
    for assembler in &mut all {
        assembler.consume(500, &mut pool);
    }
    // Larger ones take the place of smaller ones.
    let lens: Vec<usize> = pool.small.iter().map(|ring| ring.len()).collect();
    assert_eq!(lens, [512; RingPool::SMALL_MAX]);
    assert_eq!((pool.free.len(), pool.bytes), (0, 0));
}
