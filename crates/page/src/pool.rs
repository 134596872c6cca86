//! Which request goes on which connection of HTTP/1.1, and when.
//!
//! There are up to six connections to a host, with one request on each at a time; others wait in a queue, by priority. Chromium
//! also holds back requests of low priority (`services/network/resource_scheduler`): while requests that may delay the first
//! render are in flight at most one, and ten in all.

/// The connections to a host, and the requests that wait for one.
#[derive(Debug, Default)]
pub struct Pool {
    /// The numbers of the connections, and what each does.
    pub connections: Vec<(usize, Use)>,
    /// Requests that wait, in order of discovery.
    queue: Vec<Queued>,
}

/// What a connection of HTTP/1.1 does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is not ready for requests.
    Connecting,
    /// It has no request.
    Idle,
    /// It has the request of this resource.
    Busy {
        /// The index of the resource.
        resource: u16,
        /// The urgency of its request.
        urgency: u8,
    },
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    resource: u16,
    urgency: u8,
}

/// The requests in flight, in all pools of a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFlight {
    low: usize,
    /// Requests that may delay the first render.
    blocking: usize,
}

impl InFlight {
    /// A request was sent.
    fn add(&mut self, urgency: u8) {
        *self.count(urgency) += 1;
    }

    /// A response is complete.
    fn remove(&mut self, urgency: u8) {
        let count = self.count(urgency);
        *count = count.saturating_sub(1);
    }

    /// A request was sent over HTTP/2 or 3. It is not held back itself; if it may delay the first render, it holds others back.
    pub fn add_multiplexed(&mut self, urgency: u8) {
        self.blocking += usize::from(!is_low_priority(urgency));
    }

    /// A response over HTTP/2 or 3 is complete. Whether others may be sent now.
    pub fn remove_multiplexed(&mut self, urgency: u8) -> bool {
        let may_delay = !is_low_priority(urgency);
        self.blocking = self.blocking.saturating_sub(usize::from(may_delay));
        may_delay
    }

    /// Whether a request may be sent.
    const fn permits(&self, urgency: u8, has_rendered: bool) -> bool {
        let limit = if has_rendered || self.blocking == 0 {
            LOW_MAX
        } else {
            LOW_MAX_WHILE_BLOCKING
        };
        !is_low_priority(urgency) || self.low < limit
    }

    const fn count(&mut self, urgency: u8) -> &mut usize {
        if is_low_priority(urgency) {
            &mut self.low
        } else {
            &mut self.blocking
        }
    }
}

/// Whether Chromium may hold a request over HTTP/1.1 back: its priority is lower than "high".
#[must_use]
pub const fn is_low_priority(urgency: u8) -> bool {
    urgency > 1
}

impl Pool {
    /// Connections to a host (Chromium: `max_sockets_per_group`).
    pub const CONNECTIONS_MAX: usize = 6;

    /// The request of `resource` waits for a connection.
    pub fn push(&mut self, resource: u16, urgency: u8) {
        self.queue.push(Queued { resource, urgency });
    }

    /// The next request that may be sent, and the connection for it: by urgency, then in order of discovery.
    pub fn assign(&mut self, in_flight: &mut InFlight, has_rendered: bool) -> Option<(usize, u16)> {
        let mut connections = self.connections.iter_mut();
        let (connection, used) = connections.find(|(_, used)| *used == Use::Idle)?;
        let permitted = self.queue.iter().enumerate();
        let permitted = permitted.filter(|(_, one)| in_flight.permits(one.urgency, has_rendered));
        let (place, _) = permitted.min_by_key(|(place, one)| (one.urgency, *place))?;
        let Queued { resource, urgency } = self.queue.remove(place);
        in_flight.add(urgency);
        *used = Use::Busy { resource, urgency };
        Some((*connection, resource))
    }

    /// The request of `resource` has ended, and its connection is free. Whether it had one.
    pub fn release(&mut self, resource: u16, in_flight: &mut InFlight) -> bool {
        for (_, used) in &mut self.connections {
            if let Use::Busy {
                resource: other,
                urgency,
            } = *used
                && other == resource
            {
                *used = Use::Idle;
                in_flight.remove(urgency);
                return true;
            }
        }
        false
    }

    /// How many connections to open for the requests that wait.
    #[must_use]
    pub fn wanted(&self, in_flight: &InFlight, has_rendered: bool) -> usize {
        let waiting = self.queue.iter();
        let waiting = waiting
            .filter(|one| in_flight.permits(one.urgency, has_rendered))
            .count();
        let coming = self.connections.iter();
        let coming = coming
            .filter(|(_, used)| !matches!(used, Use::Busy { .. }))
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

    /// A pool with all the connections that it may have, idle.
    fn of_idle() -> Pool {
        Pool {
            connections: vec![(0, Use::Idle); Pool::CONNECTIONS_MAX],
            queue: Vec::new(),
        }
    }

    #[test]
    fn requests_leave_by_urgency_then_in_order_on_idle_connections() {
        let mut pool = Pool::default();
        for (resource, urgency) in [(1, 3), (2, 1), (3, 0), (4, 1)] {
            pool.push(resource, urgency);
        }
        let mut in_flight = InFlight::default();
        assert_eq!(pool.assign(&mut in_flight, true), None, "no connection");
        pool.connections = vec![(7, Use::Connecting), (8, Use::Idle), (9, Use::Idle)];
        assert_eq!(pool.assign(&mut in_flight, true), Some((8, 3)));
        assert_eq!(pool.assign(&mut in_flight, true), Some((9, 2)));
        assert_eq!(pool.assign(&mut in_flight, true), None, "both are busy");
        assert!(!pool.release(1, &mut in_flight), "it was not sent");
        assert!(pool.release(3, &mut in_flight));
        assert_eq!(pool.assign(&mut in_flight, true), Some((8, 4)));
    }

    #[test]
    fn an_urgent_request_over_http2_holds_back_those_of_low_priority_over_http11() {
        let mut pool = of_idle();
        for resource in 1..=3 {
            pool.push(resource, 3);
        }
        let mut in_flight = InFlight::default();
        in_flight.add_multiplexed(0);
        in_flight.add_multiplexed(3);
        assert!(pool.assign(&mut in_flight, false).is_some());
        assert_eq!(pool.assign(&mut in_flight, false), None, "one at a time");
        assert!(!in_flight.remove_multiplexed(3), "it held nothing back");
        assert_eq!(pool.assign(&mut in_flight, false), None);
        assert!(in_flight.remove_multiplexed(0));
        assert!(pool.assign(&mut in_flight, false).is_some());
    }

    #[test]
    fn a_request_held_back_leaves_when_the_others_have_ended() {
        let mut pool = of_idle();
        for (resource, urgency) in [(1, 1), (2, 3), (3, 3)] {
            pool.push(resource, urgency);
        }
        let mut in_flight = InFlight::default();
        let assign = |pool: &mut Pool, in_flight: &mut InFlight| {
            pool.assign(in_flight, false).map(|(_, resource)| resource)
        };
        assert_eq!(assign(&mut pool, &mut in_flight), Some(1));
        assert_eq!(assign(&mut pool, &mut in_flight), Some(2));
        assert_eq!(assign(&mut pool, &mut in_flight), None);
        assert!(pool.release(1, &mut in_flight));
        assert_eq!(assign(&mut pool, &mut in_flight), Some(3));
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
        let busy = Use::Busy {
            resource: 9,
            urgency: 0,
        };
        pool.connections.extend([(1, busy); 5]);
        assert_eq!(pool.wanted(&free, true), 0);
    }
}
