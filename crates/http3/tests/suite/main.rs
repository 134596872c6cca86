//! Both ends of HTTP/3 over a transport in memory; and either end against what a test writes.

mod exchange;
mod pair;
mod rules;
