//! Any bytes for a QPACK decoder and encoder: nothing panics or grows, and what decodes comes through our own encoder.

#![no_main]

#[path = "../../crates/http3/tests/corpus/compression.rs"]
mod compression;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| compression::play(bytes));
