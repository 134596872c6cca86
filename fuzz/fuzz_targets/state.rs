//! Any bytes for the values of a state of a query: they are refused or merged.

#![no_main]

#[path = "../../crates/query/tests/corpus/state.rs"]
mod state;

libfuzzer_sys::fuzz_target!(|input: &[u8]| state::play(input));
