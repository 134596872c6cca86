//! File descriptors: up to the system's limit, half for connections over TCP, half for responses.
//!
//! A connection over TCP is a descriptor, and so is a file that is being sent, or a connection to a server behind. Without a
//! share, clients that connect and do nothing would leave none for the requests of others.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_unreserved_descriptors_are_for_tcp() {
        for (limit, wanted, granted) in [
            (None, 10_000, 10_000),
            (Some(1_048_576), 10_000, 10_000),
            (Some(20_064), 10_000, 10_000),
            (Some(20_063), 10_000, 9_999),
            (Some(1024), 10_000, 480),
            (Some(64), 10_000, 1),
            (Some(0), 10_000, 1),
        ] {
            assert_eq!(for_tcp(limit, wanted), granted, "{limit:?}");
            assert_eq!(for_files(limit).min(wanted), granted, "{limit:?}");
        }
    }

    #[test]
    fn a_quarter_of_the_descriptors_is_for_an_upstream() {
        for (limit, granted) in [
            (None, 1024),
            (Some(20_000), 1024),
            (Some(700), 159),
            (Some(0), 1),
        ] {
            assert_eq!(for_upstream(limit, 1024), granted, "{limit:?}");
        }
    }
}
