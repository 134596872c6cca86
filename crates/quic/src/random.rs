//! Random numbers of one connection, all derived from its seed.
//!
//! Unpredictable values, such as the data of a `PATH_CHALLENGE`, are generated with HMAC-SHA256, so that one reveals
//! nothing about the next; others come from a cheap generator.

use std::{fmt, iter};

use aws_lc_rs::digest::SHA256;
use lastbyte_units::SplitMix64;

use crate::crypto::hmac;

/// The size of a seed in bytes.
pub const SEED_LEN: usize = 32;

/// A seed: random, secret, and used for one connection only.
pub type Seed = [u8; SEED_LEN];

/// The random numbers of one connection.
#[derive(Clone)]
pub(crate) struct Random {
    seed: Seed,
    drawn: u64,
    cheap: SplitMix64,
}

impl Random {
    pub(crate) fn new(seed: Seed) -> Self {
        let mut random = Self {
            seed,
            drawn: 0,
            cheap: SplitMix64::new(0),
        };
        random.cheap = SplitMix64::new(random.number());
        random
    }

    /// Unpredictable bytes.
    pub(crate) fn bytes<const LEN: usize>(&mut self) -> [u8; LEN] {
        const { assert!(LEN <= 32, "one block") };
        let drawn = self.drawn.to_be_bytes();
        let block = hmac::sign(&SHA256, &self.seed, iter::once(&drawn[..]));
        self.drawn = self.drawn.wrapping_add(1);
        block.as_ref().first_chunk().copied().unwrap_or([0; LEN])
    }

    /// An unpredictable number.
    pub(crate) fn number(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes())
    }

    /// A random bit from the cheap generator: not for values that must be unpredictable.
    pub(crate) const fn bit(&mut self) -> bool {
        self.cheap.number() >> 63 == 1
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn same_seed_same_numbers_without_repetition() {
        let draw = |seed| {
            let mut random = Random::new([seed; 32]);
            let numbers: Vec<u64> = (0..100).map(|_| random.number()).collect();
            let heads = (0..1000).filter(|_| random.bit()).count();
            (numbers, heads)
        };
        let (mut numbers, heads) = draw(1);
        assert_eq!((numbers.clone(), heads), draw(1));
        assert!((400..600).contains(&heads), "{heads}");
        numbers.extend(draw(2).0);
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 200);
    }
}
