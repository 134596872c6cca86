//! Any answers of a DNS server: what is believed has its bounds.

#![no_main]
#![expect(dead_code, reason = "what the client alone uses of these files")]

#[path = "../../crates/client/src/dns/corpus.rs"]
mod corpus;
#[path = "../../crates/client/src/dns/message.rs"]
mod message;
#[path = "../../crates/client/src/dns/service.rs"]
mod service;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| corpus::play(bytes));
