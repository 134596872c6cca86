//! A small hasher with a fixed seed, so that nothing depends on chance: multiply and fold, eight bytes a step.

use std::hash::{BuildHasherDefault, Hasher};

/// A map with this hasher, which is never iterated.
#[expect(
    clippy::disallowed_types,
    reason = "the hasher is seeded, and the map is never iterated"
)]
pub type FastMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<FastHasher>>;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hasher.
#[derive(Debug, Default)]
pub struct FastHasher(u64);

impl FastHasher {
    fn mix(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word ^ 0x51_7cc1_b727_220a) * u128::from(FACTOR);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ ((bytes.len() as u64) << 56));
    }

    fn write_u8(&mut self, it: u8) {
        self.mix(u64::from(it));
    }

    fn write_u32(&mut self, it: u32) {
        self.mix(u64::from(it));
    }

    fn write_u64(&mut self, it: u64) {
        self.mix(it);
    }

    fn write_usize(&mut self, it: usize) {
        self.mix(it as u64);
    }
}

/// The hash of a string of bytes.
pub fn of_bytes(bytes: &[u8]) -> u64 {
    let mut hasher = FastHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
