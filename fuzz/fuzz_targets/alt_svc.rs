//! Any values of `Alt-Svc`: what is kept comes back from its file.

#![no_main]

#[path = "../../crates/client/tests/corpus/alt_svc.rs"]
mod alt_svc;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| alt_svc::play(bytes));
