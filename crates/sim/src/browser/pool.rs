//! Which request goes on which connection, and when.
//!
//! HTTP/2 and 3 have one connection to a group of hosts, which takes all requests at once. HTTP/1.1 has up to six connections to
//! a host, with one request on each at a time; others wait in a queue, by priority. Chromium also holds back requests of low
//! priority that go over HTTP/1.1 (`services/network/resource_scheduler`): while requests that may delay the first render are in
//! flight at most one, and ten in all.

use super::HttpVersion;

/// What connections belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// Those of HTTP/1.1 to a host.
    Host(u16),
    /// That of HTTP/2 or 3 to a group of hosts.
    Group(u16, HttpVersion),
}

/// The connections of a key, and the requests that wait for one.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// The connections, with the request that each is busy with.
    pub(super) connections: Vec<(usize, Use)>,
    /// Requests that wait, in order of discovery.
    queue: Vec<Queued>,
}

/// What a connection of HTTP/1.1 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is not ready for requests.
    Connecting,
    /// It has no request.
    Idle,
    /// It has this request.
    Busy(u16),
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    resource: u16,
    urgency: u8,
}

/// The requests over HTTP/1.1 in flight, in all pools.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlight {
    low: usize,
    /// Requests that may delay the first render.
    blocking: usize,
}

impl InFlight {
    /// A request was sent.
    pub(super) fn add(&mut self, urgency: u8) {
        *self.count(urgency) += 1;
    }

    /// A response is complete.
    pub(super) fn remove(&mut self, urgency: u8) {
        let count = self.count(urgency);
        *count = count.saturating_sub(1);
    }

    /// Whether a request may be sent.
    pub(super) const fn permits(&self, urgency: u8, has_rendered: bool) -> bool {
        let limit = if has_rendered || self.blocking == 0 {
            LOW_MAX
        } else {
            LOW_MAX_WHILE_BLOCKING
        };
        !is_low(urgency) || self.low < limit
    }

    const fn count(&mut self, urgency: u8) -> &mut usize {
        if is_low(urgency) {
            &mut self.low
        } else {
            &mut self.blocking
        }
    }
}

/// Whether Chromium may hold a request back: its priority is lower than "high".
const fn is_low(urgency: u8) -> bool {
    urgency > 1
}

impl Pool {
    /// Connections to a host (Chromium: `max_sockets_per_group`).
    pub(super) const CONNECTIONS_MAX: usize = 6;

    /// A request waits for a connection.
    pub(super) fn push(&mut self, resource: u16, urgency: u8) {
        self.queue.push(Queued { resource, urgency });
    }

    /// The next request to be sent, if one may be: by urgency, then in order of discovery.
    pub(super) fn pop(&mut self, in_flight: &InFlight, has_rendered: bool) -> Option<u16> {
        let permitted = self.queue.iter().enumerate();
        let permitted = permitted.filter(|(_, one)| in_flight.permits(one.urgency, has_rendered));
        let (place, _) = permitted.min_by_key(|(place, one)| (one.urgency, *place))?;
        Some(self.queue.remove(place).resource)
    }

    /// An idle connection: its place among the connections.
    pub(super) fn idle(&self) -> Option<usize> {
        self.connections
            .iter()
            .position(|(_, used)| *used == Use::Idle)
    }

    /// How many connections to open for the requests that wait.
    pub(super) fn wanted(&self, in_flight: &InFlight, has_rendered: bool) -> usize {
        let waiting = self.queue.iter();
        let waiting = waiting
            .filter(|one| in_flight.permits(one.urgency, has_rendered))
            .count();
        let coming = self.connections.iter();
        let coming = coming
            .filter(|(_, used)| !matches!(used, Use::Busy(_)))
            .count();
        let room = Self::CONNECTIONS_MAX.saturating_sub(self.connections.len());
        waiting.saturating_sub(coming).min(room)
    }
}

/// `kMaxNumDelayableRequestsPerClient`.
const LOW_MAX: usize = 10;
/// `kMaxNumDelayableWhileLayoutBlockingPerClient`.
const LOW_MAX_WHILE_BLOCKING: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_leave_by_urgency_then_in_order() {
        let mut pool = Pool::default();
        for (resource, urgency) in [(1, 3), (2, 1), (3, 0), (4, 1)] {
            pool.push(resource, urgency);
        }
        let free = InFlight::default();
        let order: Vec<u16> = std::iter::from_fn(|| pool.pop(&free, true)).collect();
        assert_eq!(order, [3, 2, 4, 1]);
    }

    #[test]
    fn one_image_passes_while_a_script_is_in_flight_and_ten_afterwards() {
        let mut in_flight = InFlight::default();
        in_flight.add(1);
        assert!(in_flight.permits(3, false));
        in_flight.add(3);
        assert!(!in_flight.permits(3, false), "before the first render");
        assert!(in_flight.permits(3, true), "after it");
        in_flight.remove(1);
        for _ in 1..LOW_MAX {
            assert!(in_flight.permits(3, false));
            in_flight.add(3);
        }
        assert!(!in_flight.permits(3, false));
        assert!(
            in_flight.permits(0, false),
            "urgent requests are never held back"
        );
    }

    #[test]
    fn a_host_gets_a_connection_per_request_up_to_six() {
        let mut pool = Pool::default();
        let free = InFlight::default();
        pool.push(1, 0);
        assert_eq!(pool.wanted(&free, true), 1);
        pool.connections.push((0, Use::Connecting));
        assert_eq!(pool.wanted(&free, true), 0, "one is on its way");
        for resource in 2..20 {
            pool.push(resource, 0);
        }
        assert_eq!(pool.wanted(&free, true), 5);
        pool.connections.extend([(1, Use::Busy(9)); 5]);
        assert_eq!(pool.wanted(&free, true), 0);
    }
}
