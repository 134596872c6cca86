//! Any text for a spec: it parses or says why not, and what parses builds.

#![no_main]

#[path = "../../crates/congestion/tests/suite/spec_text.rs"]
mod spec_text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| spec_text::play(bytes));
