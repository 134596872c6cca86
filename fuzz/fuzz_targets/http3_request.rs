//! Requests made of frames, in any pieces: what reaches a server's application is well-formed.

#![no_main]
#![expect(dead_code, reason = "what the other tests use of the pair")]

#[path = "../../crates/http3/tests/suite/pair.rs"]
mod pair;
#[path = "../../crates/http3/tests/corpus/requests.rs"]
mod requests;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| requests::play(bytes));
