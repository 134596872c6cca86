//! Priorities of responses (RFC 9218 §5, §7, §8).
//!
//! Stores the priorities of requests that have not arrived yet, and passes those of others to the transport's
//! scheduler.

use lastbyte_wire::StreamId;

use super::Connection;
use crate::{Event, Priority, Transport};

impl Connection {
    /// Stores a priority received before the request's header; it takes precedence over the header's own field (§7).
    pub(super) fn keep_early_priority(&mut self, id: StreamId, priority: Priority) {
        let max = usize::from(self.shared.config.limits.early_priorities);
        if self.early_priorities.len() < max || self.early_priorities.contains_key(&id) {
            self.early_priorities.insert(id, priority);
        }
    }

    /// A request arrived: passes its priority to the scheduler.
    pub(super) fn schedule_request(&mut self, transport: &mut dyn Transport, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if !self.early_priorities.is_empty()
            && let Some(priority) = self.early_priorities.remove(&id)
        {
            stream.priority = priority;
            self.shared.events.push_back(Event::Priority {
                stream: id,
                priority,
            });
        }
        if stream.priority != Priority::default() {
            let priority = stream.priority.for_transport();
            let _ = transport.set_priority(id, priority);
        }
    }
}
