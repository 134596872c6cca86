//! Both ends of HTTP/3 over a transport in memory; and either end against what a test writes: a test for each rule.

mod abuse;
mod exchange;
mod extensions;
mod memory;
mod messages;
mod pair;
mod raw;
mod stalls;
mod streams;
