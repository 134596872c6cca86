//! Any bytes on any streams, for a server and a client: nothing panics, and what is live stays bounded.

#![no_main]

#[path = "../../crates/http3/tests/suite/pair.rs"]
mod pair;
#[path = "../../crates/http3/tests/corpus/streams.rs"]
mod streams;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| streams::play(bytes));
