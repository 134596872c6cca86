//! A hostile client and a hostile upstream against the HTTP/3 server with its reverse proxy: what is kept for requests and the
//! connections to the upstream are bounded, and each request has one end.

#![no_main]
#![expect(dead_code, reason = "what the other tests use of the world")]

#[path = "../../crates/origin/tests/corpus/application.rs"]
mod application;
#[path = "../../crates/server/tests/corpus/proxied.rs"]
mod proxied;
#[path = "../../crates/origin/tests/suite/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| proxied::play(bytes));
