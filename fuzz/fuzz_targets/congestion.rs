//! Any sequence of what may happen to a controller: nothing panics, and the window keeps its bounds.

#![no_main]

#[path = "../../crates/congestion/tests/suite/actions.rs"]
mod actions;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| actions::play(bytes));
