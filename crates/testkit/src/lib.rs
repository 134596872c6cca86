//! Helpers for the tests of several crates: skipping a test that the machine cannot run, a network of its own for a test, replaying
//! a fuzzing corpus and reading its inputs, seeds on the command line, and counting allocations.
//!
//! ```
//! use lastbyte_testkit::{CountingAllocator, allocation_count};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! let before = allocation_count();
//! let numbers = std::hint::black_box(vec![1, 2, 3]);
//! assert_eq!(allocation_count() - before, 1);
//! # drop(numbers);
//! ```
//!
//! Only tests depend on this crate.

#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "implements a global allocator")]
mod allocations;
mod alone;
mod input;
mod seeds;

pub use allocations::{CountingAllocator, allocation_count, live_bytes};
pub use alone::{alone, alone_or_skipped};
pub use input::Input;
pub use seeds::Seeds;

/// Skips a test, or the part of it that follows: prints what the machine lacks, and returns. With `CI` set, where everything
/// that tests need is installed (`.ci/run`), the test fails instead.
///
/// # Panics
///
/// The environment variable `CI` is set and not empty.
#[expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test reports to the person who runs it, and asks how it is run"
)]
pub fn skip(missing: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|value| value.is_empty()),
        "cannot run here: {missing} (with `CI` set, tests are not skipped)"
    );
    eprintln!("skipped: {missing}");
}

/// Passes each file of `fuzz/corpus/TARGET` to `play`, which the fuzz target calls too.
///
/// # Panics
///
/// The corpus cannot be read, or has fewer than `files_min` files.
#[expect(clippy::disallowed_methods, reason = "the corpus is in files")]
pub fn replay_corpus(target: &str, files_min: usize, play: impl Fn(&[u8])) {
    let corpus = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let entries = match std::fs::read_dir(&corpus) {
        Ok(entries) => entries,
        Err(error) => panic!("{corpus}: {error}"),
    };
    let mut replayed = 0;
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        play(&std::fs::read(path).expect("a readable file"));
        replayed += 1;
    }
    assert!(
        replayed >= files_min,
        "{corpus}: {replayed} files (expected at least {files_min})"
    );
}
