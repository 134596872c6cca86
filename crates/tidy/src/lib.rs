//! The rules of the house that no compiler keeps, checked by the tests of this crate: `cargo test -p lastbyte-tidy`.
//!
//! Each rule is one test. A failure lists the places, and what to do there. `ARCHITECTURE.md` says why each rule is.

#![forbid(unsafe_code)]

#[cfg(test)]
mod rules;
#[cfg(test)]
mod tree;
