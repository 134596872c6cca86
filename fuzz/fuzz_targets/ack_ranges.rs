//! Packet numbers in any order: the ranges that are acknowledged are those of a plain set.

#![no_main]

#[path = "../../crates/quic/tests/corpus/ranges.rs"]
mod ranges;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ranges::play(bytes));
