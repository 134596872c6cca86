//! Shares of a limited resource that is not taken back from its holders.

#[cfg(test)]
mod tests;

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
