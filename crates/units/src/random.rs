//! Random numbers from a seed: `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA
//! 2014).
//!
//! The state is a counter, so a number can be computed without its predecessors. Any seed is a good one, and the same seed
//! gives the same numbers on every platform. Not for secrets: two numbers reveal all others.

/// The golden ratio times 2⁶⁴, rounded to an odd number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator, or a stream of numbers addressed by index.
#[derive(Clone, Copy, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator with this state.
    #[must_use]
    pub const fn new(state: u64) -> Self {
        Self(state)
    }

    /// The stream of this number of a seed. Mixed twice, so that adjacent seeds and streams are unrelated.
    #[must_use]
    pub const fn stream(seed: u64, stream: u64) -> Self {
        Self(mix(
            mix(seed.wrapping_add(GAMMA)) ^ mix(stream.wrapping_mul(GAMMA).wrapping_add(1))
        ))
    }

    /// The state.
    pub const fn state(self) -> u64 {
        self.0
    }

    /// The number at `index`, counted from the present state.
    pub const fn at(self, index: u64) -> u64 {
        mix(self
            .0
            .wrapping_add(index.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// The next number.
    pub const fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        mix(self.0)
    }
}

/// The finalizer of `SplitMix64`: a bijection whose every output bit depends on every input bit.
pub const fn mix(value: u64) -> u64 {
    let mixed = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_of_state_zero_match_the_paper() {
        let mut random = SplitMix64::new(0);
        assert_eq!(random.at(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.at(1), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(random.number(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.number(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn streams_of_adjacent_seeds_and_numbers_are_distinct() {
        let mut firsts: Vec<u64> = Vec::new();
        for seed in [0, 1, 2, u64::MAX] {
            firsts.extend((0..8).map(|stream| SplitMix64::stream(seed, stream).at(0)));
        }
        let count = firsts.len();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), count);
    }
}
