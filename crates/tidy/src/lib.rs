//! Source-tree lints that the compiler cannot check. Run them with `cargo test -p lastbyte-tidy`.
//!
//! Each lint is one test. A failure lists the offending lines and the remedy. `ARCHITECTURE.md` explains the lints.

#![forbid(unsafe_code)]

#[cfg(test)]
mod circles;
#[cfg(test)]
mod publication;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod tree;
