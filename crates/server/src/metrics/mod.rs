//! What is counted, for people who watch servers.

pub(crate) mod histogram;
