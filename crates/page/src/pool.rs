//! Which request goes on which connection of HTTP/1.1, and when.
//!
//! There are up to six connections to a host, with one request on each at a time; others wait in a queue, by priority. Chromium
//! also holds back requests of low priority (`services/network/resource_scheduler`): while requests that may delay the first
//! render are in flight at most one, and ten in all.

#[cfg(test)]
mod tests;

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
