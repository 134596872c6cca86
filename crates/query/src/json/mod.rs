//! JSON: rows in, values out.

pub(crate) mod parse;
pub(crate) mod print;
pub(crate) mod tsv;
