//! Any values of `set-cookie`: what is kept comes back from its file, and goes to its own site only.

#![no_main]

#[path = "../../crates/client/tests/corpus/cookies.rs"]
mod cookies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| cookies::play(bytes));
