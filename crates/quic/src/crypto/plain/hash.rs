//! A checksum of 16 bytes, fast and without secrets.
//!
//! Four lanes of 64 bits, so that their multiplications overlap; each step xors a word in and multiplies by an odd
//! number, which is a bijection of the lane. Two inputs of the same length that differ in one lane therefore differ in
//! that lane's state, and the lanes are combined by the same kind of step. It offers no protection against deliberate
//! manipulation.

/// Odd numbers with well distributed bits: the fractions of the golden ratio and of the roots of 2, 3 and 5.
const ODD: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0x6a09_e667_f3bc_c909,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
];

/// A bijection of either argument, the other given. The state is stirred first, so that the two cannot cancel out.
#[inline]
pub(super) const fn mix(state: u64, word: u64) -> u64 {
    let stirred = state.wrapping_mul(ODD[2]).rotate_left(23);
    let mixed = (stirred ^ word).wrapping_mul(ODD[0]);
    (mixed ^ mixed >> 29).wrapping_add(ODD[1])
}

/// A checksum being computed. The same bytes added in different portions give a different checksum.
#[derive(Clone, Debug)]
pub(super) struct Checksum {
    lanes: [u64; 4],
}

impl Checksum {
    pub(super) const fn new(secret: u64, number: u64) -> Self {
        Self {
            lanes: [
                mix(secret, number),
                mix(secret, ODD[1]),
                mix(secret, ODD[2]),
                mix(secret, ODD[3]),
            ],
        }
    }

    #[inline]
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<32>();
        for block in blocks {
            self.add_block(block);
        }
        let mut last = [0; 32];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        self.add_block(&last);
        let [first, ..] = &mut self.lanes;
        *first = mix(*first, bytes.len() as u64);
    }

    #[inline]
    fn add_block(&mut self, block: &[u8; 32]) {
        let (words, _) = block.as_chunks();
        for ((lane, word), odd) in self.lanes.iter_mut().zip(words).zip(ODD) {
            let mixed = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(odd);
            *lane = mixed.rotate_left(31);
        }
    }

    /// 8 bytes of it.
    pub(super) fn word(&self) -> u64 {
        self.lanes.iter().copied().fold(ODD[2], mix)
    }

    pub(super) fn finish(&self) -> [u8; 16] {
        let one = self.word();
        let other = self.lanes.iter().rev().copied().fold(one, mix);
        (u128::from(one) << 64 | u128::from(other)).to_be_bytes()
    }
}
