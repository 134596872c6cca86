//! Two endpoints, and a path between them that drops, duplicates, reorders, corrupts, rewrites and forges packets.

#![no_main]

#[path = "../../crates/quic/tests/corpus/connection/mod.rs"]
mod connection;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| connection::play(bytes));
