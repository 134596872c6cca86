//! The parts of one path, a pair of addresses (RFC 9000 §8, §9, §14). Each is complete in itself; the connection
//! has one set of them for each path it knows.
//!
//! | file | owns |
//! |---|---|
//! | `amplification.rs` | how much may be sent to an address that has not been validated (§8.1) |
//! | `validation.rs` | challenges out, responses in, and the verdict (§8.2) |
//! | `failed.rs` | how many validations may fail |
//! | `mtud.rs` | the datagram size (§14.3, RFC 8899) |

mod amplification;
mod failed;
mod mtud;
mod validation;

pub use amplification::Amplification;
pub use failed::FailedPaths;
pub use mtud::{MtuConfig, MtuDiscovery};
pub use validation::{ChallengeData, PathAnswer, PathValidation, ValidationState};
