//! What happens to servers: killed and started again, disks that fill, files that change, clients that vanish, no descriptor
//! left, certificates swapped and shutdowns under load, clocks that jump. Nothing may leak, hang or lie, and the log has to
//! say what happened.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "what happens to a process happens to its files and its sockets"
)]

#[path = "../common/serving.rs"]
mod serving;
#[path = "../common/trust.rs"]
mod trust;

mod ending;
mod files;
mod killed;
mod machine;
mod stalled;
