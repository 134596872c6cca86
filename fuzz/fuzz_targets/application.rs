//! A hostile client against the whole HTTP/3 server: what is kept for requests is bounded, and each has one end.

#![no_main]
#![expect(dead_code, reason = "what the other tests use of the world")]

#[path = "../../crates/origin/tests/corpus/application.rs"]
mod application;
#[path = "../../crates/origin/tests/suite/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| application::play(bytes));
