//! The test cases of draft-ietf-ccwg-bbr-06, Appendix A, by topic, and further properties.

mod bandwidth;
mod hooks;
mod loss;
mod model;
mod path;
mod probing;
mod startup;

use core::time::Duration;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
