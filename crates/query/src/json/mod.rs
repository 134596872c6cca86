//! JSON: parsing rows, printing values, and values as plain data.

pub(crate) mod export;
pub(crate) mod parse;
pub(crate) mod print;
pub(crate) mod tsv;
