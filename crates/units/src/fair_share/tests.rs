use super::*;
use crate::SplitMix64;

/// Units of `total` left when the holders, starting in this order, have taken all they may.
fn left(total: usize, holders: usize, order: impl Iterator<Item = usize>) -> usize {
    let (mut shares, mut left) = (FairShare::new(), total);
    let mut counts = vec![0; holders];
    let mut takes = |holder: usize| {
        let count = counts[holder];
        let is_permitted = shares.permits(count, left);
        if is_permitted {
            shares.on_change(count, count + 1);
            counts[holder] += 1;
            left -= 1;
        }
        is_permitted
    };
    for holder in order {
        takes(holder);
    }
    for holder in 0..holders {
        while takes(holder) {}
    }
    left
}

#[test]
fn holders_in_any_order_leave_one_part_to_others() {
    let mut random = SplitMix64::new(1);
    for holders in [1, 2, 3, 9, 20, 40, 50] {
        let total = 10_000;
        let least = total / (holders + 1);
        let in_turn = (0..total).map(|at| at % holders);
        let descending = (0..holders).rev().flat_map(|at| {
            let count = total / (holders - at) / 2;
            core::iter::repeat_n(at, count)
        });
        let bursts: Vec<_> = (0..100)
            .flat_map(|_| {
                let holder = (random.number() % holders as u64) as usize;
                core::iter::repeat_n(holder, (random.number() % 300) as usize)
            })
            .collect();
        for rest in [
            left(total, holders, core::iter::empty()),
            left(total, holders, in_turn),
            left(total, holders, descending),
            left(total, holders, bursts.into_iter()),
        ] {
            // Shares are whole numbers.
            assert!(rest + holders >= least, "{holders} leave {rest}");
            assert!(rest > 0, "{holders}");
        }
    }
}

#[test]
fn many_small_holders_can_have_all() {
    let in_turn = (0..3).flat_map(|_| 0..3333);
    assert!(left(10_000, 3333, in_turn) <= 3);
    // One of them takes more, and then fewer, and the others are not limited by it any more.
    let mut shares = FairShare::new();
    shares.on_change(0, 1);
    assert!(shares.permits(1, 2) && !shares.permits(1, 1));
    for count in 1..100 {
        shares.on_change(count, count + 1);
    }
    for _ in 0..10 {
        shares.on_change(0, 100);
    }
    assert!(shares.permits(100, 1101) && !shares.permits(100, 1100));
    for _ in 0..10 {
        shares.on_change(100, 0);
    }
    assert!(shares.permits(100, 101) && !shares.permits(100, 100));
}
