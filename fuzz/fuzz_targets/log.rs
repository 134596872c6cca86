//! Any lines for a report: its numbers are numbers, and its page is markup.

#![no_main]

#[path = "../../crates/report/tests/corpus/log.rs"]
mod log;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| log::play(bytes));
