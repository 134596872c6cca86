//! Compares each kernel of this CPU with a loop over single bytes.

use super::{BLOCK, Block, Kernel, Marks, STRETCH, Simd, Stretch};
use proptest::prelude::*;

/// Miri, which checks that the kernels read nothing but their blocks, takes a thousand times as long.
const STEP: usize = if cfg!(miri) { 51 } else { 1 };

fn by_bytes(block: &Block, is: impl Fn(u8) -> bool) -> usize {
    let found = block.iter().position(|byte| is(*byte));
    found.unwrap_or(BLOCK)
}

fn check(kernel: impl Kernel, block: &Block) {
    let special = |byte: u8| byte == b'"' || byte == b'\\' || !(0x20..0x80).contains(&byte);
    assert_eq!(
        kernel.first_non_digit(block),
        by_bytes(block, |byte| !byte.is_ascii_digit())
    );
    assert_eq!(kernel.first_special(block), by_bytes(block, special));
}

fn check_all(block: &Block) {
    for simd in Simd::all() {
        with_kernel!(simd, kernel => check(kernel, block));
    }
}

/// Compares texts of three stretches, and their stretches one by one.
fn check_difference(text: &[Stretch; 3], other: &[Stretch; 3]) {
    for simd in Simd::all() {
        let are_equal = with_kernel!(simd, kernel => kernel.are_equal(text, other));
        assert_eq!(are_equal, text == other, "{simd:?}: {text:?}, {other:?}");
        for (stretch, other) in text.iter().zip(other) {
            let first = with_kernel!(simd, kernel => kernel.first_difference(stretch, other));
            let same = stretch.iter().zip(other).take_while(|(a, b)| a == b);
            assert_eq!(first, same.count(), "{simd:?}: {stretch:?}, {other:?}");
        }
    }
}

fn marks_by_bytes(stretch: &Stretch) -> Marks {
    let bits = |is: fn(u8) -> bool| {
        let marked = stretch.iter().enumerate().filter(|(_, byte)| is(**byte));
        marked.fold(0, |bits, (at, _)| bits | 1 << at)
    };
    Marks {
        specials: bits(|byte| byte == b'"' || byte == b'\\' || !(0x20..0x80).contains(&byte)),
        digits: bits(|byte| byte.is_ascii_digit()),
    }
}

fn check_marks(stretch: &Stretch) {
    for simd in Simd::all() {
        let marks = with_kernel!(simd, kernel => kernel.marks(stretch));
        assert_eq!(marks, marks_by_bytes(stretch), "{simd:?}: {stretch:?}");
        let byte = stretch[STRETCH / 2];
        let equal = with_kernel!(simd, kernel => kernel.equal(stretch, byte));
        let mut odd = false;
        let parity = with_kernel!(simd, kernel => kernel.parity(equal));
        for (at, other) in stretch.iter().enumerate() {
            assert_eq!(
                equal >> at & 1 == 1,
                *other == byte,
                "{simd:?}: {stretch:?}"
            );
            odd ^= *other == byte;
            assert_eq!(parity >> at & 1 == 1, odd, "{simd:?}: {equal:064b}");
        }
    }
}

#[test]
fn every_byte_at_every_position_is_marked() {
    for background in [b'0', b'"', b',', 0, 0xff] {
        for byte in (0..=u8::MAX).step_by(STEP) {
            for at in 0..STRETCH {
                let mut stretch = [background; STRETCH];
                stretch[at] = byte;
                check_marks(&stretch);
            }
        }
    }
}

#[test]
fn every_byte_at_every_position_is_classified() {
    for background in [b'0', b'9', b'a', b' ', 0x7f] {
        let plain = [background; BLOCK];
        for byte in (0..=u8::MAX).step_by(STEP) {
            for at in 0..BLOCK {
                let mut block = plain;
                block[at] = byte;
                check_all(&block);
            }
        }
    }
}

#[test]
fn every_bit_at_every_position_is_a_difference() {
    let text = [[b'a'; STRETCH]; 3];
    check_difference(&text, &text);
    for bit in 0..8 {
        for at in 0..STRETCH * 3 {
            let mut other = text;
            other.as_flattened_mut()[at] ^= 1 << bit;
            check_difference(&text, &other);
        }
    }
}

proptest! {
    #[test]
    fn kernels_mark_the_same_bytes(low: [u8; 32], high: [u8; 32]) {
        let mut stretch = [0; STRETCH];
        stretch[..32].copy_from_slice(&low);
        stretch[32..].copy_from_slice(&high);
        check_marks(&stretch);
    }

    #[test]
    fn kernels_agree_on_any_bytes(block: [u8; BLOCK], digits in "[0-9]{0,32}") {
        check_all(&block);
        let mut number = block;
        number[..digits.len()].copy_from_slice(digits.as_bytes());
        check_all(&number);
    }
}
