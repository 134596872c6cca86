//! What tests of several crates share: how a test that needs something of the machine is skipped.
//!
//! Never: a dependency of anything but tests.

#![forbid(unsafe_code)]

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
