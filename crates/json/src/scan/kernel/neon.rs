//! Twice 16 bytes: every 64-bit ARM.

#![expect(unsafe_code, reason = "loads, and calls into code for this CPU")]

use super::{BLOCK, Block, Kernel, Marks, Run, Stretch, halves};
use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcgtq_u8, vcltq_u8, vdupq_n_u8, veorq_u8, vget_lane_u64,
    vgetq_lane_u64, vld1q_u8, vmaxvq_u8, vmvnq_u8, vorrq_u8, vpaddq_u8, vreinterpret_u64_u8,
    vreinterpretq_u16_u8, vreinterpretq_u64_u8, vshrn_n_u16, vsubq_u8,
};

kernel!(
    /// To have one proves that the CPU has NEON.
    Neon,
    "neon",
    std::arch::is_aarch64_feature_detected!("neon")
);

#[inline]
#[target_feature(enable = "neon")]
fn load(block: &Block) -> [uint8x16_t; 2] {
    // SAFETY: a block is 32 bytes that may be read: sixteen from its start, and sixteen from its middle.
    unsafe { [vld1q_u8(block.as_ptr()), vld1q_u8(block.as_ptr().add(16))] }
}

/// The first byte that is marked (all its bits set).
#[inline]
#[target_feature(enable = "neon")]
fn first(marks: [uint8x16_t; 2]) -> usize {
    // Each byte becomes four bits of a word.
    let word = |marks: uint8x16_t| {
        vget_lane_u64::<0>(vreinterpret_u64_u8(vshrn_n_u16::<4>(vreinterpretq_u16_u8(
            marks,
        ))))
    };
    let low = word(marks[0]);
    if low != 0 {
        return low.trailing_zeros() as usize / 4;
    }
    let high = word(marks[1]);
    if high != 0 {
        return 16 + high.trailing_zeros() as usize / 4;
    }
    BLOCK
}

#[inline]
#[target_feature(enable = "neon")]
fn first_difference(stretch: &Stretch, other: &Stretch) -> usize {
    let differences = halves(stretch).into_iter().zip(halves(other));
    let same = differences.map(|(block, other)| {
        let ([low, high], [other_low, other_high]) = (load(block), load(other));
        gather([vceqq_u8(low, other_low), vceqq_u8(high, other_high)])
    });
    let same = same
        .enumerate()
        .fold(0, |all, (at, same)| all | same << (at * BLOCK));
    same.trailing_ones() as usize
}

#[inline]
#[target_feature(enable = "neon")]
fn are_equal(stretches: &[Stretch], others: &[Stretch]) -> bool {
    let mut differences = vdupq_n_u8(0);
    for (stretch, other) in stretches.iter().zip(others) {
        for (block, other) in halves(stretch).into_iter().zip(halves(other)) {
            for (text, other) in load(block).into_iter().zip(load(other)) {
                differences = vorrq_u8(differences, veorq_u8(text, other));
            }
        }
    }
    vmaxvq_u8(differences) == 0
}

#[inline]
#[target_feature(enable = "neon")]
fn first_non_digit(block: &Block) -> usize {
    first(load(block).map(|text| vmvnq_u8(digits(text))))
}

#[inline]
#[target_feature(enable = "neon")]
fn first_special(block: &Block) -> usize {
    first(load(block).map(|text| specials(text)))
}

#[inline]
#[target_feature(enable = "neon")]
fn equal(stretch: &Stretch, byte: u8) -> u64 {
    let [low, high] =
        halves(stretch).map(|half| gather(load(half).map(|text| vceqq_u8(text, vdupq_n_u8(byte)))));
    low | high << BLOCK
}

#[inline]
#[target_feature(enable = "neon")]
fn marks(stretch: &Stretch) -> Marks {
    Marks::of(stretch, |half| {
        let text = load(half);
        Marks {
            specials: gather(text.map(|text| specials(text))),
            digits: gather(text.map(|text| digits(text))),
        }
    })
}

#[inline]
#[target_feature(enable = "neon")]
fn digits(text: uint8x16_t) -> uint8x16_t {
    vcltq_u8(vsubq_u8(text, vdupq_n_u8(0x30)), vdupq_n_u8(10))
}

#[inline]
#[target_feature(enable = "neon")]
fn specials(text: uint8x16_t) -> uint8x16_t {
    let quote = vceqq_u8(text, vdupq_n_u8(0x22));
    let slash = vceqq_u8(text, vdupq_n_u8(0x5c));
    let control = vcltq_u8(text, vdupq_n_u8(0x20));
    let wide = vcgtq_u8(text, vdupq_n_u8(0x7f));
    vorrq_u8(vorrq_u8(quote, slash), vorrq_u8(control, wide))
}

/// A bit for each byte that is marked (all its bits set).
#[inline]
#[target_feature(enable = "neon")]
fn gather(marks: [uint8x16_t; 2]) -> u64 {
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: sixteen bytes that may be read.
    let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
    let [low, high] = marks.map(|marks| vandq_u8(marks, bits));
    // Neighbours are added until eight bytes are one.
    let sums = vpaddq_u8(low, high);
    let sums = vpaddq_u8(sums, sums);
    let sums = vpaddq_u8(sums, sums);
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(sums)) & 0xffff_ffff
}

#[inline]
#[target_feature(enable = "neon")]
fn parity(bits: u64) -> u64 {
    super::scalar::parity(bits)
}
