//! Rows as values of the language, and values as JSON, tables and plain data.

pub(crate) mod build;
pub(crate) mod condition;
pub(crate) mod csv;
pub(crate) mod export;
pub(crate) mod print;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod tsv;
