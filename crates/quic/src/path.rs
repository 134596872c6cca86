//! The parts of one path, a pair of addresses (RFC 9000 §8, §9, §14). They are independent of each other; the
//! connection has one set for each path it knows.
//!
//! | file | owns |
//! |---|---|
//! | `amplification.rs` | the anti-amplification limit (§8.1) |
//! | `validation.rs` | path validation (§8.2) |
//! | `failed.rs` | the limit on failed validations |
//! | `mtud.rs` | the datagram size (§14.3, RFC 8899) |

mod amplification;
mod failed;
mod mtud;
mod validation;

pub use amplification::Amplification;
pub use failed::FailedPaths;
pub use mtud::{MtuConfig, MtuDiscovery};
pub use validation::{ChallengeData, PathAnswer, PathValidation, ValidationState};
