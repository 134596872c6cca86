//! What the integration tests share: a script that drives one controller by hand, a bottleneck that many share, and
//! random actions.

pub mod actions;
pub mod path;
pub mod script;
