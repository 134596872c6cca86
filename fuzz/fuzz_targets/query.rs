//! Any text for a query: it is compiled or refused, and run if it is short.

#![no_main]

#[path = "../../crates/query/tests/corpus/text.rs"]
mod text;

libfuzzer_sys::fuzz_target!(|input: &[u8]| text::play(input));
