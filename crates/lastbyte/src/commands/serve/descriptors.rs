//! File descriptors: up to the system's limit, half for connections over TCP, half for responses.
//!
//! A connection over TCP is a descriptor, and so is a file that is being sent, or a connection to a server behind. Without a
//! share, clients that connect and do nothing would leave none for the requests of others.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[cfg(test)]
mod tests;

/// For sockets, logs, threads' own and what libraries open.
pub(in crate::commands) const RESERVED: u64 = 64;

/// Raises the limit on open files to the hard limit (`ulimit -Hn`), and returns it; `None` for no limit.
pub(in crate::commands) fn raise() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => limit.current,
    }
}

/// The limit on TCP connections: the wanted number, but at most half the descriptors.
pub(super) fn for_tcp(limit: Option<u64>, wanted: usize) -> usize {
    wanted.min(half(limit))
}

/// Maximum number of files that responses hold open: the other half, so that stalled clients leave descriptors for new connections.
pub(super) fn for_files(limit: Option<u64>) -> usize {
    half(limit)
}

fn half(limit: Option<u64>) -> usize {
    let Some(limit) = limit else {
        return usize::MAX;
    };
    let half = limit.saturating_sub(RESERVED) / 2;
    usize::try_from(half).unwrap_or(usize::MAX).max(1)
}

/// The limit on upstream connections: the wanted number, but at most a quarter of the descriptors.
pub(super) fn for_upstream(limit: Option<u64>, wanted: usize) -> usize {
    for_tcp(limit, wanted.saturating_mul(2)).div_ceil(2)
}
