//! A policer: packets above a rate are dropped immediately, without a queue.

use crate::{Rate, Time, rate::work_of};

/// A token bucket. It is initially full and refills at `rate` up to `burst`. A packet passes and takes tokens if there
/// are enough for all its bytes; otherwise it is dropped and takes none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Policer {
    /// The rate at which the bucket refills.
    pub rate: Rate,
    /// The size of the bucket in bytes. Packets larger than it never pass.
    pub burst: u64,
}

/// The state of a policer.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    rate: Rate,
    /// In nanobits, like `tokens`: a rate of *r* bit/s adds exactly *r* nanobits per nanosecond.
    size: u128,
    tokens: u128,
    filled_at: Time,
}

impl TokenBucket {
    pub(crate) const fn new(config: &Policer) -> Self {
        let size = config.burst as u128 * work_of(1);
        Self {
            rate: config.rate,
            size,
            tokens: size,
            filled_at: Time::ZERO,
        }
    }

    /// Whether a packet passes. Takes its tokens if so.
    pub(crate) fn admits(&mut self, now: Time, bytes: u32) -> bool {
        let span = u128::from(now.nanos_since(self.filled_at));
        let fill = u128::from(self.rate.bits_per_second()) * span;
        self.tokens = self.tokens.saturating_add(fill).min(self.size);
        self.filled_at = now;
        let passes = work_of(bytes) <= self.tokens;
        if passes {
            self.tokens -= work_of(bytes);
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn bucket(bits: u64, burst: u64) -> TokenBucket {
        TokenBucket::new(&Policer {
            rate: Rate::from_bits_per_second(bits),
            burst,
        })
    }

    #[test]
    fn a_burst_passes_then_the_rate_applies() {
        // 8 Mb/s is one byte per microsecond.
        let mut bucket = bucket(8_000_000, 3000);
        assert!(bucket.admits(Time::ZERO, 1500));
        assert!(bucket.admits(Time::ZERO, 1500));
        assert!(!bucket.admits(Time::ZERO, 1));
        assert!(!bucket.admits(Time::from_nanos(1_499_999), 1500));
        assert!(bucket.admits(Time::from_nanos(1_500_000), 1500));
        assert!(!bucket.admits(Time::from_nanos(1_500_000), 1));
        // The bucket holds no more than its size.
        assert!(bucket.admits(Time::from_nanos(9_000_000), 3000));
        assert!(!bucket.admits(Time::from_nanos(9_000_000), 1));
    }

    proptest! {
        #[test]
        fn any_span_passes_no_more_than_rate_and_burst(
            rate in 0u64..1 << 30,
            burst in 0u64..100_000,
            packets in vec((0u64..10_000_000, 0u32..3000), 1..100),
        ) {
            let mut bucket = bucket(rate, burst);
            let mut now = Time::ZERO;
            let mut passed = Vec::new();
            for (pause, bytes) in packets {
                now = now.plus(pause);
                if bucket.admits(now, bytes) {
                    passed.push((now, u64::from(bytes)));
                }
            }
            for from in 0..passed.len() {
                let mut sum = 0;
                for (at, bytes) in &passed[from..] {
                    sum += bytes;
                    let span = u128::from(at.nanos_since(passed[from].0));
                    let bound = u128::from(burst) * work_of(1) + span * u128::from(rate);
                    prop_assert!(u128::from(sum) * work_of(1) <= bound);
                }
            }
        }

        #[test]
        fn any_values_neither_overflow_nor_panic(rate: u64, burst: u64, at: u64, bytes: u32) {
            let mut bucket = bucket(rate, burst);
            prop_assert_eq!(bucket.admits(Time::from_nanos(at), bytes), u64::from(bytes) <= burst);
            bucket.admits(Time::MAX, bytes);
        }
    }
}
