//! Any head for a proxy: it is refused, or what goes to the upstream cannot be taken for anything else.

#![no_main]

#[path = "../../crates/server/tests/corpus/rewriting.rs"]
mod rewriting;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rewriting::play(bytes));
