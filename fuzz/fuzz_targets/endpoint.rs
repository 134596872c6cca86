//! Any datagrams, at any time, for a server endpoint: it stays within its limits, and forgets them all in the end.

#![no_main]

#[path = "../../crates/quic/tests/corpus/datagrams.rs"]
mod datagrams;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| datagrams::play(bytes));
