//! The chance in BBR: how long to wait between bandwidth probes (draft-ietf-ccwg-bbr-06 §5.3.3.8).
//!
//! A `SplitMix64` generator (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014): eight
//! bytes of state, any seed is a good one, and the same seed gives the same waits.

use core::time::Duration;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Zero or one.
    pub(super) const fn bit(&mut self) -> u64 {
        self.next() >> 63
    }

    /// Less than a second, by the nanosecond.
    pub(super) const fn below_one_second(&mut self) -> Duration {
        // The bias of the remainder, 2⁻³⁴, is far below the resolution of any timer.
        Duration::from_nanos(self.next() % NANOS_PER_SECOND)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_of_seed_zero_are_those_of_the_paper() {
        let mut random = Random::new(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn waits_spread_over_the_second() {
        let mut random = Random::new(7);
        let mean = (0..1000)
            .map(|_| random.below_one_second().as_secs_f64())
            .sum::<f64>()
            / 1000.0;
        assert!((0.45..0.55).contains(&mean), "{mean}");
        let ones = (0..1000).map(|_| random.bit()).sum::<u64>();
        assert!((450..550).contains(&ones), "{ones}");
    }
}
