//! AVX-512's comparisons give masks at once, which takes a step off each chain of dependent instructions. Blocks stay
//! 32 bytes, since few values are longer; literals are compared 64 bytes at a time.

#![expect(unsafe_code, reason = "loads, and calls into code for this CPU")]

use super::{Block, Kernel, Marks, Run, Stretch};
use std::arch::x86_64::{
    __m256i, __m512i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
    _mm256_cmpeq_epi8_mask, _mm256_cmplt_epi8_mask, _mm256_cmplt_epu8_mask, _mm256_loadu_si256,
    _mm256_set1_epi8, _mm256_sub_epi8, _mm512_cmpeq_epi8_mask, _mm512_cmpneq_epi8_mask,
    _mm512_cmpneq_epi64_mask, _mm512_loadu_si512, _mm512_set1_epi8,
};

kernel!(
    /// To have one proves that the CPU has AVX-512 F, BW and VL, BMI1, BMI2, POPCNT and PCLMULQDQ.
    Avx512,
    "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt,pclmulqdq",
    is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("pclmulqdq")
);

#[inline]
#[target_feature(enable = "sse2,pclmulqdq")]
fn parity(bits: u64) -> u64 {
    let bits = _mm_set_epi64x(0, bits.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(bits, _mm_set1_epi8(-1))).cast_unsigned()
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(block: &Block) -> __m256i {
    // SAFETY: a block is 32 bytes that may be read, and this load asks for no alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_stretch(stretch: &Stretch) -> __m512i {
    // SAFETY: a stretch is 64 bytes that may be read, and this load asks for no alignment.
    unsafe { _mm512_loadu_si512(stretch.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1")]
fn first_difference(stretch: &Stretch, other: &Stretch) -> usize {
    _mm512_cmpneq_epi8_mask(load_stretch(stretch), load_stretch(other)).trailing_zeros() as usize
}

#[inline]
#[target_feature(enable = "avx512f")]
fn are_equal(stretches: &[Stretch], others: &[Stretch]) -> bool {
    stretches.iter().zip(others).all(|(stretch, other)| {
        _mm512_cmpneq_epi64_mask(load_stretch(stretch), load_stretch(other)) == 0
    })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1")]
fn first_non_digit(block: &Block) -> usize {
    (!digits(load(block))).trailing_zeros() as usize
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1")]
fn first_special(block: &Block) -> usize {
    specials(load(block)).trailing_zeros() as usize
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn equal(stretch: &Stretch, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(load_stretch(stretch), _mm512_set1_epi8(byte.cast_signed()))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn marks(stretch: &Stretch) -> Marks {
    Marks::of(stretch, |half| {
        let text = load(half);
        Marks {
            specials: specials(text).into(),
            digits: digits(text).into(),
        }
    })
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn digits(text: __m256i) -> u32 {
    let digit = _mm256_sub_epi8(text, _mm256_set1_epi8(0x30));
    _mm256_cmplt_epu8_mask(digit, _mm256_set1_epi8(10))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn specials(text: __m256i) -> u32 {
    let quote = _mm256_cmpeq_epi8_mask(text, _mm256_set1_epi8(0x22));
    let slash = _mm256_cmpeq_epi8_mask(text, _mm256_set1_epi8(0x5c));
    // As signed numbers, control characters and bytes that are not ASCII are both below a blank.
    let other = _mm256_cmplt_epi8_mask(text, _mm256_set1_epi8(0x20));
    quote | slash | other
}
