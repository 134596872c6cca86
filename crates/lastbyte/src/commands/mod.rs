//! The commands, each with its arguments.

pub(crate) mod sim;
