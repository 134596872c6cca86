//! BBR's randomness: how long to wait between bandwidth probes (draft-ietf-ccwg-bbr-06 §5.3.3.8).

use core::time::Duration;

use lastbyte_units::SplitMix64;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[derive(Clone, Debug)]
pub(super) struct Random(SplitMix64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Zero or one.
    pub(super) const fn bit(&mut self) -> u64 {
        self.0.number() >> 63
    }

    /// Less than a second, in nanoseconds.
    pub(super) const fn below_one_second(&mut self) -> Duration {
        // The bias of the remainder, 2⁻³⁴, is far below the resolution of any timer.
        Duration::from_nanos(self.0.number() % NANOS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_distributed_over_one_second() {
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
