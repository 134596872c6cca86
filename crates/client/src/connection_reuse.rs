//! Choice between several idle connections: the one that is expected to complete the request soonest. Pure functions.
//!
//! A grown congestion window saves several round trips, so the window is compared first, then the round-trip time, then the
//! time of last use. For uploads the client knows its own window. For downloads it estimates the server's window by the
//! number of bytes received. Over TCP neither is known, and systems reset the window of a connection after a long idle
//! period (RFC 5681 §4.1), so the most recently used connection is chosen.

use core::{cmp::Reverse, time::Duration};

use lastbyte_quic::Time;

/// The state of a connection on which a request could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleConnection {
    /// The available congestion window in bytes; 0 if unknown.
    pub window_left: u64,
    /// Bytes received so far, as an estimate of the peer's congestion window; 0 if unknown.
    pub received: u64,
    /// The smoothed round-trip time, if there is a sample.
    pub rtt: Option<Duration>,
    /// When it last carried a request or the end of a response.
    pub last_used: Time,
}

/// The best of these connections for a request; `None` if there are none. `is_upload` means that the request is larger than
/// its response.
pub fn best_idle<K>(
    all: impl IntoIterator<Item = (K, IdleConnection)>,
    is_upload: bool,
) -> Option<K> {
    let rank = |connection: &IdleConnection| {
        let amount = if is_upload {
            connection.window_left
        } else {
            connection.received
        };
        // An unknown round-trip time ranks last.
        let rtt = connection.rtt.unwrap_or(Duration::MAX);
        (amount, Reverse(rtt), connection.last_used)
    };
    let best = all
        .into_iter()
        .max_by_key(|(_, connection)| rank(connection));
    best.map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(
        window_left: u64,
        received: u64,
        rtt_ms: u64,
        last_used_ms: u64,
    ) -> IdleConnection {
        IdleConnection {
            window_left,
            received,
            rtt: (rtt_ms > 0).then(|| Duration::from_millis(rtt_ms)),
            last_used: Time::ZERO + Duration::from_millis(last_used_ms),
        }
    }

    #[test]
    fn connections_rank_by_window_then_rtt_then_last_use() {
        let cold = connection(12_000, 9_000, 10, 900);
        let down = connection(12_000, 4_000_000, 80, 100);
        let up = connection(800_000, 9_000, 80, 100);
        let all = [("cold", cold), ("down", down), ("up", up)];
        assert_eq!(best_idle(all, false), Some("down"));
        assert_eq!(best_idle(all, true), Some("up"));
        let near = connection(12_000, 4_000_000, 20, 50);
        assert_eq!(
            best_idle([("down", down), ("near", near)], false),
            Some("near")
        );
        let unknown = connection(12_000, 4_000_000, 0, 990);
        assert_eq!(
            best_idle([("near", near), ("?", unknown)], false),
            Some("near")
        );
        let of_tcp = |last_used| connection(0, 0, 0, last_used);
        assert_eq!(
            best_idle([(1, of_tcp(5)), (2, of_tcp(7)), (3, of_tcp(6))], false),
            Some(2)
        );
        assert_eq!(best_idle([(); 0].map(|()| (0, cold)), false), None);
    }
}
