//! Any bytes for rows: the scanner and the parser take and give what `serde_json` does.

#![no_main]

#[path = "../../crates/query/tests/corpus/json.rs"]
mod json;

libfuzzer_sys::fuzz_target!(|input: &[u8]| json::play(input));
