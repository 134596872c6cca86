//! Logarithmic buckets for durations in nanoseconds: each power of two is divided into buckets of equal width.

/// Values from 2 to this power on, 73 minutes in nanoseconds, are counted in the last bucket.
pub(crate) const VALUE_BITS: u32 = 42;

/// Buckets of this precision: each power of two has 2 to this power of them, and smaller values have a bucket each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets(pub(crate) u32);

impl Buckets {
    const fn steps(self) -> u64 {
        1 << self.0
    }

    /// Number of buckets.
    pub(crate) const fn count(self) -> usize {
        ((VALUE_BITS - self.0 + 1) as usize) << self.0
    }

    /// The bucket of a value below 2^[`VALUE_BITS`].
    pub(crate) const fn of(self, value: u64) -> usize {
        let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(self.0 + 1);
        ((exponent as u64 * self.steps()) + (value >> exponent)) as usize
    }

    /// The smallest value of a bucket, and the number of its values.
    const fn range(self, bucket: usize) -> (u64, u64) {
        let bucket = bucket as u64;
        if bucket < 2 * self.steps() {
            return (bucket, 1);
        }
        let exponent = bucket / self.steps() - 1;
        let mantissa = bucket % self.steps() + self.steps();
        (mantissa << exponent, 1 << exponent)
    }

    /// The largest value of a bucket.
    pub(crate) const fn highest(self, bucket: usize) -> u64 {
        let (lowest, width) = self.range(bucket);
        lowest + width - 1
    }

    /// The value in the middle of a bucket.
    pub(crate) const fn middle(self, bucket: usize) -> u64 {
        let (lowest, width) = self.range(bucket);
        lowest + width / 2
    }
}
