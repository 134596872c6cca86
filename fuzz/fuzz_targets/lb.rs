//! Any configuration and any packets for a load balancer: each reaches the right server, and flows stay within limits.

#![no_main]

#[path = "../../crates/balancer/tests/corpus/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| packets::play(bytes));
