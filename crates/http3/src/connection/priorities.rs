//! Priorities of responses (RFC 9218 §5, §7, §8).
//!
//! Stores the priorities of requests that have not arrived yet, and passes those of others to the transport's
//! scheduler.

use lastbyte_wire::{Side, StreamId, VarInt};

use super::Connection;
use crate::{Event, Priority, Transport, frame::FrameType, settings::put_varint};

/// Maximum pending data of the control stream before reprioritizations are dropped.
const WAITING_MAX: usize = 16 << 10;

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
            let text = priority.to_string();
            payload.extend_from_slice(text.as_bytes());
            self.send_control(
                transport,
                FrameType::PRIORITY_UPDATE_REQUEST,
                &payload,
                |frame| frame.priority(id, text),
            );
        }
    }
}
