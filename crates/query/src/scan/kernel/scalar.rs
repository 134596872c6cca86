//! Eight bytes at once in a plain word: for any CPU, and what the others are measured against.

use super::{BLOCK, Block, Kernel, Next, Span, grammar};

#[derive(Clone, Copy, Debug)]
pub(in crate::scan) struct Scalar;

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Marks zero bytes in their high bits. The lowest mark is true; those above it may be a borrow's.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGH
}

/// The first byte that a word's marks show.
#[inline(always)]
fn first(block: &Block, marks: impl Fn(u64, usize) -> u64) -> usize {
    let (words, _) = block.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let marks = marks(u64::from_le_bytes(*word), at * 8);
        if marks != 0 {
            return at * 8 + marks.trailing_zeros() as usize / 8;
        }
    }
    BLOCK
}

impl Kernel for Scalar {
    #[inline(always)]
    fn first_difference(self, block: &Block, other: &Block) -> usize {
        let (others, _) = other.as_chunks::<8>();
        first(block, |word, at| word ^ u64::from_le_bytes(others[at / 8]))
    }

    #[inline(always)]
    fn first_non_digit(self, block: &Block) -> usize {
        first(block, |word, _| {
            // A digit is 0x30 to 0x39: the high half is 3, and six more do not change it.
            let low = (word & (ONES * 0x7f)).wrapping_add(ONES * 6);
            ((word ^ (ONES * 0x30)) | (low ^ (ONES * 0x30))) & (ONES * 0xf0)
        })
    }

    #[inline(always)]
    fn first_special(self, block: &Block) -> usize {
        first(block, |word, _| {
            zeros(word ^ (ONES * 0x22))
                | zeros(word ^ (ONES * 0x5c))
                | word.wrapping_sub(ONES * 0x20) & !word & HIGH
                | word & HIGH
        })
    }

    #[inline(never)]
    fn value(self, bytes: &[u8], at: usize) -> Option<Span> {
        grammar::value(self, bytes, at)
    }

    #[inline(never)]
    fn next(self, bytes: &[u8], at: usize, first: bool) -> Option<Next> {
        grammar::next(self, bytes, at, first)
    }
}
