//! Any bytes for a datagram, a payload, transport parameters: what decodes can be encoded again, and nothing panics.

#![no_main]

#[path = "../../crates/wire/tests/corpus/bytes.rs"]
mod bytes;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bytes::play(input));
