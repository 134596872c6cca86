//! The few questions about a block of bytes that the scanner asks a million times a second, answered by what the CPU
//! has. Each kernel answers as [`Scalar`], the plain one, does; a kernel can only be had where its instructions are.
//!
//! This is the only module of the crate with `unsafe` code: the loads and the calls into code for a certain CPU.

/// A kernel whose functions are compiled for certain features of a CPU, and all that is built on it, too. The type can
/// only be made by its `detect`.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $features:literal, $has:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(in crate::scan) struct $name(());

        impl $name {
            pub(super) fn detect() -> Option<$name> {
                ($has && !cfg!(miri)).then_some($name(()))
            }

            #[inline]
            pub(super) fn line(self, work: Work<'_>) -> Line {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { line(self, work) }
            }
        }

        impl Kernel for $name {
            #[inline(always)]
            fn first_difference(self, block: &Block, other: &Block) -> usize {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { first_difference(block, other) }
            }

            #[inline(always)]
            fn first_non_digit(self, block: &Block) -> usize {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { first_non_digit(block) }
            }

            #[inline(always)]
            fn first_special(self, block: &Block) -> usize {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { first_special(block) }
            }

            #[inline(always)]
            fn value(self, bytes: &[u8], at: usize) -> Option<Span> {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { value(self, bytes, at) }
            }

            #[inline(always)]
            fn next(self, bytes: &[u8], at: usize, first: bool) -> Option<Next> {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { next(self, bytes, at, first) }
            }
        }

        #[target_feature(enable = $features)]
        fn line(kernel: $name, work: Work<'_>) -> Line {
            work.run(kernel)
        }

        #[inline(never)]
        #[target_feature(enable = $features)]
        fn value(kernel: $name, bytes: &[u8], at: usize) -> Option<Span> {
            grammar::value(kernel, bytes, at)
        }

        #[inline(never)]
        #[target_feature(enable = $features)]
        fn next(kernel: $name, bytes: &[u8], at: usize, first: bool) -> Option<Next> {
            grammar::next(kernel, bytes, at, first)
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use super::grammar::{self, Next, Span};
use super::line::{Line, Work};
use scalar::Scalar;

/// How many bytes are looked at together.
pub(super) const BLOCK: usize = 32;

/// Such bytes.
pub(super) type Block = [u8; BLOCK];

/// What is asked of a block; [`BLOCK`] when there is no such byte.
pub(super) trait Kernel: Copy {
    /// The first byte that is not the other block's.
    fn first_difference(self, block: &Block, other: &Block) -> usize;
    /// The first byte that is no digit.
    fn first_non_digit(self, block: &Block) -> usize;
    /// The first byte that is not plain text within a JSON string: a quote, a backslash, a control character, or not
    /// ASCII.
    fn first_special(self, block: &Block) -> usize;

    /// [`grammar::value`], not inlined.
    fn value(self, bytes: &[u8], at: usize) -> Option<Span>;
    /// [`grammar::next`], not inlined.
    fn next(self, bytes: &[u8], at: usize, first: bool) -> Option<Next>;
}

/// A kernel that this CPU can run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Simd {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl Simd {
    /// All that this CPU can run, the fastest last.
    pub(super) fn all() -> impl Iterator<Item = Simd> {
        let kernels = [
            Some(Simd::Scalar(Scalar)),
            #[cfg(target_arch = "x86_64")]
            avx2::Avx2::detect().map(Simd::Avx2),
            #[cfg(target_arch = "x86_64")]
            avx512::Avx512::detect().map(Simd::Avx512),
            #[cfg(target_arch = "aarch64")]
            neon::Neon::detect().map(Simd::Neon),
        ];
        kernels.into_iter().flatten()
    }

    pub(super) fn best() -> Simd {
        Simd::all().last().unwrap_or(Simd::Scalar(Scalar))
    }

    /// Goes past a line, in code that is compiled for this CPU as a whole.
    #[inline]
    pub(super) fn line(self, work: Work<'_>) -> Line {
        match self {
            Simd::Scalar(kernel) => work.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2(kernel) => kernel.line(work),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512(kernel) => kernel.line(work),
            #[cfg(target_arch = "aarch64")]
            Simd::Neon(kernel) => kernel.line(work),
        }
    }
}

#[cfg(test)]
mod tests;
