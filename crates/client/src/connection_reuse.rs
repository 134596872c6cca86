//! Which of several idle connections a request goes to: the one that can carry it soonest. Pure.
//!
//! A window that has grown is rank several round trips, so what a path is known to carry decides, then its round-trip time,
//! then which was used last. Of the sender's window a client sees only its own, which is for uploads; what comes is sent by
//! the server, whose window has grown with what it has sent. Over TCP neither is seen from here, and systems drop the window
//! of a connection that was idle for long (RFC 5681 §4.1): there the one that was used last is chosen.

use core::{cmp::Reverse, time::Duration};

use lastbyte_quic::Time;

/// What is known of a connection on which a request could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleConnection {
    /// How many bytes may be sent at once: what is left of the congestion window. 0 if it is not known.
    pub window_left: u64,
    /// How many bytes have come, which have opened the window of the other end. 0 if it is not known.
    pub received: u64,
    /// The round-trip time, smoothed, if there is one.
    pub rtt: Option<Duration>,
    /// When it last carried anything.
    pub last_used: Time,
}

/// The one of these that a request goes to; `is_upload` if it is larger than its response.
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
        // No round-trip time is worse than any.
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
    fn the_window_of_who_sends_decides_then_the_path_then_who_was_used_last() {
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
