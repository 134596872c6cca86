//! Any bytes as a HAR file and as a corpus of pages: refused with a message, or valid pages.

#![no_main]

#[path = "../../crates/page/tests/corpus/page.rs"]
mod page;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| page::play(bytes));
