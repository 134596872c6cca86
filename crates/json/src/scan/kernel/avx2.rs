//! 32 bytes at once: any x86-64 server since 2013 (Intel) or 2017 (AMD).

#![expect(unsafe_code, reason = "loads, and calls into code for this CPU")]

use super::{BLOCK, Block, Kernel, Marks, Run, Stretch, halves};
use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_sub_epi8, _mm256_testz_si256, _mm256_xor_si256,
};

kernel!(
    /// To have one proves that the CPU has AVX2, BMI1, BMI2, POPCNT and PCLMULQDQ.
    Avx2,
    "avx2,bmi1,bmi2,popcnt,pclmulqdq",
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("pclmulqdq")
);

#[inline]
#[target_feature(enable = "sse2,pclmulqdq")]
fn parity(bits: u64) -> u64 {
    let bits = _mm_set_epi64x(0, bits.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(bits, _mm_set1_epi8(-1))).cast_unsigned()
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(block: &Block) -> __m256i {
    // SAFETY: a block is 32 bytes that may be read, and this load asks for no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

/// The first byte whose mark is not set.
#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn first_unset(marks: __m256i) -> usize {
    (!_mm256_movemask_epi8(marks)).trailing_zeros() as usize
}

#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn first_difference(stretch: &Stretch, other: &Stretch) -> usize {
    let same = |at: usize| {
        let (block, other) = (halves(stretch)[at], halves(other)[at]);
        gather(_mm256_cmpeq_epi8(load(block), load(other)))
    };
    (same(0) | same(1) << BLOCK).trailing_ones() as usize
}

#[inline]
#[target_feature(enable = "avx2")]
fn are_equal(stretches: &[Stretch], others: &[Stretch]) -> bool {
    let mut differences = _mm256_setzero_si256();
    for (stretch, other) in stretches.iter().zip(others) {
        for (block, other) in halves(stretch).into_iter().zip(halves(other)) {
            let here = _mm256_xor_si256(load(block), load(other));
            differences = _mm256_or_si256(differences, here);
        }
    }
    _mm256_testz_si256(differences, differences) == 1
}

#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn first_non_digit(block: &Block) -> usize {
    first_unset(digits(load(block)))
}

#[inline]
#[target_feature(enable = "avx2,bmi1")]
fn first_special(block: &Block) -> usize {
    _mm256_movemask_epi8(specials(load(block))).trailing_zeros() as usize
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal(stretch: &Stretch, byte: u8) -> u64 {
    let [low, high] = halves(stretch).map(|half| {
        gather(_mm256_cmpeq_epi8(
            load(half),
            _mm256_set1_epi8(byte.cast_signed()),
        ))
    });
    low | high << BLOCK
}

#[inline]
#[target_feature(enable = "avx2")]
fn marks(stretch: &Stretch) -> Marks {
    Marks::of(stretch, |half| {
        let text = load(half);
        Marks {
            specials: gather(specials(text)),
            digits: gather(digits(text)),
        }
    })
}

#[inline]
#[target_feature(enable = "avx2")]
fn digits(text: __m256i) -> __m256i {
    let digit = _mm256_sub_epi8(text, _mm256_set1_epi8(0x30));
    _mm256_cmpeq_epi8(_mm256_min_epu8(digit, _mm256_set1_epi8(9)), digit)
}

#[inline]
#[target_feature(enable = "avx2")]
fn specials(text: __m256i) -> __m256i {
    let quote = _mm256_cmpeq_epi8(text, _mm256_set1_epi8(0x22));
    let slash = _mm256_cmpeq_epi8(text, _mm256_set1_epi8(0x5c));
    let control = _mm256_cmpeq_epi8(_mm256_min_epu8(text, _mm256_set1_epi8(0x1f)), text);
    // Bytes that are not ASCII have the sign bit, which is gathered.
    _mm256_or_si256(
        _mm256_or_si256(quote, slash),
        _mm256_or_si256(control, text),
    )
}

/// The sign bits of all bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn gather(marks: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(marks).cast_unsigned())
}
