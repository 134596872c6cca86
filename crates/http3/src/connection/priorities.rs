//! Who is to be served first (RFC 9218 §5, §7, §8).
//!
//! Owns what was said of requests that have not come, and tells the transport's scheduler of those that have.

use lastbyte_wire::{Side, StreamId, VarInt};

use super::Connection;
use crate::{Event, Priority, Transport, frame::FrameType, settings::put_varint};

/// What may wait for the control stream before reprioritisations are left out.
const WAITING_MAX: usize = 16 << 10;

impl Connection {
    /// Keeps what was said of a request before its head came: it counts more than the head's own field (§7).
    pub(super) fn keep_early_priority(&mut self, id: StreamId, priority: Priority) {
        let max = usize::from(self.shared.config.limits.early_priorities);
        if self.early_priorities.len() < max || self.early_priorities.contains_key(&id) {
            self.early_priorities.insert(id, priority);
        }
    }

    /// A request has come: tells the scheduler how important it is.
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

    /// Sets the priority of a response (RFC 9218 §7): a client informs the server, a server its scheduler.
    pub fn prioritise(&mut self, transport: &mut dyn Transport, id: StreamId, priority: Priority) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.priority = priority;
        let _ = transport.set_priority(id, priority.for_transport());
        if self.shared.side == Side::Client && self.own.control_waiting() < WAITING_MAX {
            let mut payload = Vec::new();
            put_varint(&mut payload, VarInt::from(id));
            payload.extend_from_slice(priority.to_string().as_bytes());
            self.own
                .put_control(FrameType::PRIORITY_UPDATE_REQUEST, &payload);
            self.flush(transport);
        }
    }
}
