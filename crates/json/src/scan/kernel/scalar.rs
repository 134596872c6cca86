//! Eight bytes at once in a 64-bit word: for any CPU, and the reference for the other kernels.

use super::{BLOCK, Block, Kernel, Marks, Run, STRETCH, Stretch};

#[derive(Clone, Copy, Debug)]
pub(in crate::scan) struct Scalar;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks zero bytes in their high bits. The lowest mark is true; those above it may be a borrow's.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// A bit for each byte of a word that is not zero.
#[inline(always)]
fn gather(word: u64) -> u64 {
    let some = (((word & !HIGH) + !HIGH) | word) & HIGH;
    // The multiplication moves each bit to its place in the highest byte.
    (some >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The first marked byte of a word.
#[inline(always)]
fn first(block: &Block, marks: impl Fn(u64) -> u64) -> usize {
    let (words, _) = block.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let marks = marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return at * 8 + marks.trailing_zeros() as usize / 8;
        }
    }
    BLOCK
}

#[inline(always)]
pub(super) fn parity(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32]
        .iter()
        .fold(bits, |bits, shift| bits ^ bits << shift)
}

impl Kernel for Scalar {
    #[inline(always)]
    fn are_equal(self, stretches: &[Stretch], others: &[Stretch]) -> bool {
        stretches == others
    }

    #[inline(always)]
    fn first_difference(self, stretch: &Stretch, other: &Stretch) -> usize {
        let (words, _) = stretch.as_chunks::<8>();
        let (others, _) = other.as_chunks::<8>();
        for (at, (word, other)) in words.iter().zip(others).enumerate() {
            let differs = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
            if differs != 0 {
                return at * 8 + differs.trailing_zeros() as usize / 8;
            }
        }
        STRETCH
    }

    #[inline(always)]
    fn first_non_digit(self, block: &Block) -> usize {
        first(block, |word| {
            // A digit is 0x30 to 0x39: the high half is 3, and six more do not change it.
            let low = (word & (ONES * 0x7f)).wrapping_add(ONES * 6);
            ((word ^ (ONES * 0x30)) | (low ^ (ONES * 0x30))) & (ONES * 0xf0)
        })
    }

    #[inline(always)]
    fn first_special(self, block: &Block) -> usize {
        first(block, |word| {
            zeros(word ^ (ONES * 0x22))
                | zeros(word ^ (ONES * 0x5c))
                | word.wrapping_sub(ONES * 0x20) & !word & HIGH
                | word & HIGH
        })
    }

    #[inline(always)]
    fn marks(self, stretch: &Stretch) -> Marks {
        let mut marks = Marks::default();
        let (words, _) = stretch.as_chunks::<8>();
        for (at, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let place = at * 8;
            let are = |word: u64, byte: u64| (gather(word ^ (ONES * byte)) ^ 0xff) << place;
            // With this added, bytes of at least 0x20 reach the high bit.
            let text = ((word & !HIGH) + ONES * 0x60) | word;
            let other = gather((!text | word) & HIGH) << place;
            marks.specials |= are(word, 0x22) | are(word, 0x5c) | other;
            // As in `first_non_digit`.
            let low = (word & (ONES * 0x7f)).wrapping_add(ONES * 6);
            let other = ((word ^ (ONES * 0x30)) | (low ^ (ONES * 0x30))) & (ONES * 0xf0);
            marks.digits |= (gather(other) ^ 0xff) << place;
        }
        marks
    }

    #[inline(always)]
    fn equal(self, stretch: &Stretch, byte: u8) -> u64 {
        let (words, _) = stretch.as_chunks::<8>();
        let differ = |word: &[u8; 8]| gather(u64::from_le_bytes(*word) ^ (ONES * u64::from(byte)));
        let words = words.iter().enumerate();
        !words.fold(0, |bits, (at, word)| bits | differ(word) << (at * 8))
    }

    #[inline(always)]
    fn parity(self, bits: u64) -> u64 {
        parity(bits)
    }

    #[inline(never)]
    fn call<R: Run>(self, task: R) -> R::Output {
        task.run(self)
    }
}
