//! Counters of a worker.

use std::time::Duration;

/// The counters of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Turns of the loop.
    pub turns: u64,
    /// Receiving system calls that returned at least one datagram.
    pub receives: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Sending system calls that succeeded.
    pub sends: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Sending system calls that found the kernel's send buffer full.
    pub sends_blocked: u64,
    /// Datagrams larger than the interface's MTU, such as probes for a larger datagram size.
    pub too_large: u64,
    /// Datagrams that the system had no room for, which are lost.
    pub datagrams_dropped: u64,
    /// Sending system calls that failed for another reason.
    pub send_errors: u64,
    /// Datagrams received here that belong to another worker.
    pub forwarded: u64,
    /// Of those, datagrams dropped because the other worker's queue was full.
    pub forwards_dropped: u64,
    /// Datagrams that other workers forwarded to this one.
    pub forwards_received: u64,
    /// Datagrams of unknown connections that were forwarded to an earlier process.
    pub relayed: u64,
    /// Of those, datagrams dropped because the link to that process was full.
    pub relays_dropped: u64,
    /// Time spent waiting.
    pub idle: Duration,
}
