//! The operations on blocks of bytes that the scanner spends its time in, with the instructions that the CPU has. Each
//! kernel gives the same results as [`Scalar`], the portable one. A kernel's type exists only where its instructions do.
//!
//! This is the only module of the crate with `unsafe` code: vector loads, and calls of functions compiled for CPU features.

/// A kernel whose functions are compiled for certain features of a CPU, and all that is built on it, too. The type can
/// only be made by its `detect`.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $features:literal, $has:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(in crate::scan) struct $name(());

        impl $name {
            pub(super) fn detect() -> Option<$name> {
                ($has).then_some($name(()))
            }

            #[inline]
            pub(super) fn run<R: Run>(self, task: R) -> R::Output {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { run(self, task) }
            }
        }

        impl Kernel for $name {
            #[inline(always)]
            fn are_equal(self, stretches: &[Stretch], others: &[Stretch]) -> bool {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { are_equal(stretches, others) }
            }

            #[inline(always)]
            fn first_difference(self, stretch: &Stretch, other: &Stretch) -> usize {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { first_difference(stretch, other) }
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
            fn marks(self, stretch: &Stretch) -> Marks {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { marks(stretch) }
            }

            #[inline(always)]
            fn equal(self, stretch: &Stretch, byte: u8) -> u64 {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { equal(stretch, byte) }
            }

            #[inline(always)]
            fn parity(self, bits: u64) -> u64 {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { parity(bits) }
            }

            #[inline(always)]
            fn call<R: Run>(self, task: R) -> R::Output {
                // SAFETY: `self` proves that the CPU has these features.
                unsafe { call(self, task) }
            }
        }

        #[target_feature(enable = $features)]
        fn run<R: Run>(kernel: $name, task: R) -> R::Output {
            task.run(kernel)
        }

        #[inline(never)]
        #[target_feature(enable = $features)]
        fn call<R: Run>(kernel: $name, task: R) -> R::Output {
            task.run(kernel)
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

use scalar::Scalar;

/// Size of a block, in bytes.
pub(super) const BLOCK: usize = 32;

/// Bytes processed at once.
pub(super) type Block = [u8; BLOCK];

/// Size of a stretch, in bytes: marks have a bit for each.
pub(super) const STRETCH: usize = 64;

/// Bytes processed at once.
pub(super) type Stretch = [u8; STRETCH];

/// Classes of the bytes in a stretch, with the first byte in the lowest bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Bytes that are not plain text within a JSON string, as in [`Kernel::first_special`].
    pub(super) specials: u64,
    pub(super) digits: u64,
}

impl Marks {
    /// Of a stretch, from those of its two halves.
    #[inline(always)]
    fn of(stretch: &Stretch, half: impl Fn(&Block) -> Marks) -> Marks {
        let [low, high] = halves(stretch);
        let (low, high) = (half(low), half(high));
        Marks {
            specials: low.specials | high.specials << BLOCK,
            digits: low.digits | high.digits << BLOCK,
        }
    }
}

/// The blocks of a stretch.
#[inline(always)]
fn halves(stretch: &Stretch) -> [&Block; 2] {
    let (halves, _) = stretch.as_chunks();
    [&halves[0], &halves[1]]
}

/// Operations on a block. A search returns [`BLOCK`] if there is no such byte.
pub(super) trait Kernel: Copy {
    /// Whether two texts of the same length are equal.
    fn are_equal(self, stretches: &[Stretch], others: &[Stretch]) -> bool;
    /// The first byte that differs; [`STRETCH`] if there is none.
    fn first_difference(self, stretch: &Stretch, other: &Stretch) -> usize;
    /// The first byte that is not a digit.
    fn first_non_digit(self, block: &Block) -> usize;
    /// The first byte that is not plain text within a JSON string: a quote, a backslash, a control character, or not
    /// ASCII.
    fn first_special(self, block: &Block) -> usize;
    /// The classes of the bytes.
    fn marks(self, stretch: &Stretch) -> Marks;
    /// A bit for each byte that equals this one.
    fn equal(self, stretch: &Stretch, byte: u8) -> u64;
    /// For each bit the parity of the bits up to it.
    fn parity(self, bits: u64) -> u64;

    /// Runs a task as a function that is not inlined.
    fn call<R: Run>(self, task: R) -> R::Output;
}

/// A task that is generic over the kernel.
pub(super) trait Run {
    type Output;

    /// Runs the task. It must be inlined, with all callees except large ones.
    fn run(self, kernel: impl Kernel) -> Self::Output;
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
    /// The kernels that this CPU can run, the fastest last.
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

    /// Runs a task in code compiled for the features of this CPU.
    #[inline]
    pub(super) fn run<R: Run>(self, task: R) -> R::Output {
        match self {
            Simd::Scalar(kernel) => task.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2(kernel) => kernel.run(task),
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512(kernel) => kernel.run(task),
            #[cfg(target_arch = "aarch64")]
            Simd::Neon(kernel) => kernel.run(task),
        }
    }
}

/// Runs the same for whichever kernel it is.
#[cfg(test)]
macro_rules! with_kernel {
    ($simd:expr, $kernel:ident => $run:expr) => {
        match $simd {
            Simd::Scalar($kernel) => $run,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2($kernel) => $run,
            #[cfg(target_arch = "x86_64")]
            Simd::Avx512($kernel) => $run,
            #[cfg(target_arch = "aarch64")]
            Simd::Neon($kernel) => $run,
        }
    };
}
#[cfg(test)]
pub(super) use with_kernel;

#[cfg(test)]
mod tests;
