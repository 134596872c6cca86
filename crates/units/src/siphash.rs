//! `SipHash`, a keyed hash for inputs that untrusted peers choose (Aumasson and Bernstein, 2012).
//!
//! Not for authentication.
//!
//! Decision: our own forty lines, since the standard library's implementation cannot be seeded.

use core::fmt;

#[cfg(test)]
mod tests;

/// The key: random and secret, so that no peer can choose colliding inputs.
#[derive(Clone, Copy)]
pub struct SipHash {
    key: [u64; 2],
}

impl SipHash {
    /// The hash with this key.
    #[must_use]
    pub const fn new(key: [u64; 2]) -> Self {
        Self { key }
    }

    /// The hash with a key of 16 bytes, as the paper writes it.
    #[must_use]
    pub const fn from_bytes(key: &[u8; 16]) -> Self {
        let key = u128::from_le_bytes(*key);
        Self::new([key as u64, (key >> 64) as u64])
    }

    /// `SipHash`-1-3, with one round per block and three at the end, as in the standard library's tables.
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        self.rounds::<1, 3>(bytes)
    }

    /// `SipHash`-2-4, the paper's recommendation, for hashes that several programs have in common.
    pub fn hash_2_4(&self, bytes: &[u8]) -> u64 {
        self.rounds::<2, 4>(bytes)
    }

    fn rounds<const BLOCK: u8, const END: u8>(&self, bytes: &[u8]) -> u64 {
        let [low, high] = self.key;
        let mut state = State([
            low ^ 0x736f_6d65_7073_6575,
            high ^ 0x646f_7261_6e64_6f6d,
            low ^ 0x6c79_6765_6e65_7261,
            high ^ 0x7465_6462_7974_6573,
        ]);
        let (words, rest) = bytes.as_chunks();
        for word in words {
            state.absorb::<BLOCK>(u64::from_le_bytes(*word));
        }
        // The last word contains the remaining bytes, and the length in its highest byte.
        let mut last = (bytes.len() as u64) << 56;
        for (at, byte) in rest.iter().enumerate() {
            last |= u64::from(*byte) << (8 * at);
        }
        state.absorb::<BLOCK>(last);
        state.finish::<END>()
    }
}

/// The key is secret.
impl fmt::Debug for SipHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SipHash(..)")
    }
}

struct State([u64; 4]);

impl State {
    const fn round(&mut self) {
        let [mut a, mut b, mut c, mut d] = self.0;
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        d = d.rotate_left(21) ^ a;
        b = b.rotate_left(17) ^ c;
        self.0 = [a, b, c.rotate_left(32), d];
    }

    fn absorb<const ROUNDS: u8>(&mut self, word: u64) {
        self.0[3] ^= word;
        for _ in 0..ROUNDS {
            self.round();
        }
        self.0[0] ^= word;
    }

    fn finish<const ROUNDS: u8>(mut self) -> u64 {
        self.0[2] ^= 0xff;
        for _ in 0..ROUNDS {
            self.round();
        }
        self.0.into_iter().fold(0, |hash, word| hash ^ word)
    }
}
