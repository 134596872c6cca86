//! Any text for a figure, a network, a trace, a population or an experiment: refused in words, or good for a simulation.

#![no_main]

#[path = "../../crates/sim/tests/corpus/files.rs"]
mod files;

libfuzzer_sys::fuzz_target!(|input: &[u8]| files::play(input));
