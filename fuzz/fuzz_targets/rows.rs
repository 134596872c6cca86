//! Any bytes for a file: queries give the same on any number of threads.

#![no_main]

#[path = "../../crates/query/tests/corpus/rows.rs"]
mod rows;

libfuzzer_sys::fuzz_target!(|input: &[u8]| rows::play(input));
