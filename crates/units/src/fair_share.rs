//! Shares of a limited resource that is not taken back from its holders.

/// Binary digits of the largest count.
const DIGITS: usize = usize::BITS as usize;
/// Holders of fewer do not limit others, so that many small ones can have all of the resource.
const SMALL: usize = 4;

/// Decides which holder of a limited resource may have more of it, so that a few that take all they can leave some to others.
///
/// A holder may have one more while what it has, times the number of holders that have about as much or more, is less than
/// what is left. So one leaves half. If k leave one part in k + 1, the next has that divided by k + 2, and leaves one part in
/// k + 2. The order does not matter. Each holder may have one, as long as there is any.
///
/// This holds while shares are larger than 4: for up to 50 holders of 10,000, and 150 of 100,000. Holders of fewer
/// than 4 are limited only by larger ones.
///
/// ```
/// use lastbyte_units::FairShare;
///
/// let (mut shares, mut left) = (FairShare::new(), 100);
/// for mut count in [0, 0, 0] {
///     while shares.permits(count, left) {
///         shares.on_change(count, count + 1);
///         (count, left) = (count + 1, left - 1);
///     }
/// }
/// // After 50, 17 and 8 or 9.
/// assert!((24..=25).contains(&left));
/// ```
#[derive(Clone, Debug)]
pub struct FairShare {
    /// The number of holders, by the number of binary digits of their counts.
    holders: [usize; DIGITS + 1],
}

impl FairShare {
    /// Without holders.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            holders: [0; DIGITS + 1],
        }
    }

    /// Whether a holder of `count` may have one more, if `left` are left.
    #[must_use]
    pub fn permits(&self, count: usize, left: usize) -> bool {
        let competing: usize = self.holders.iter().skip(digits(count.max(SMALL))).sum();
        count.saturating_mul(competing.max(1)) < left
    }

    /// A holder of `from` has `to` now.
    pub const fn on_change(&mut self, from: usize, to: usize) {
        let before = &mut self.holders[digits(from)];
        *before = before.saturating_sub(1);
        self.holders[digits(to)] += 1;
    }
}

impl Default for FairShare {
    fn default() -> Self {
        Self::new()
    }
}

/// The number of binary digits.
const fn digits(count: usize) -> usize {
    (usize::BITS - count.leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
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
}
