//! The server of a flow: responds, and counts.
//!
//! Creates response bodies, and records when responses are acknowledged. [`crate::protocol`] encodes them.

use lastbyte_congestion::Time;
use lastbyte_quic::{
    connection::Connection,
    stream::{Source, SourceError},
};

use crate::protocol::{Incoming, ServerProtocol};

/// The server of a flow.
pub(crate) struct Server {
    protocol: Box<dyn ServerProtocol>,
    responses: Messages,
}

/// Counts of the messages of one end, a server's responses or a client's requests: started and acknowledged, with the times of
/// the first start and the last acknowledgment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Messages {
    pub(crate) started: u64,
    pub(crate) acked: u64,
    pub(crate) started_at: Option<Time>,
    pub(crate) acked_at: Option<Time>,
}

impl Messages {
    /// Records that a message was started.
    pub(crate) fn on_started(&mut self, now: Time) {
        self.started += 1;
        self.started_at.get_or_insert(now);
    }

    /// Records that a whole message was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Time) {
        self.acked += 1;
        self.acked_at = Some(now);
    }
}

/// A body of this length, in bytes. Its content is undefined: nothing reads it, so nothing is written.
pub(crate) struct AnyBytes(pub(crate) u64);

impl Source for AnyBytes {
    fn len(&self) -> u64 {
        self.0
    }

    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), SourceError> {
        Ok(())
    }
}

impl Server {
    pub(crate) fn new(protocol: Box<dyn ServerProtocol>) -> Self {
        Self {
            protocol,
            responses: Messages::default(),
        }
    }

    /// When it must run next, if no event happens before.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.protocol.deadline()
    }

    pub(crate) fn receive(&mut self, connection: &mut Connection, incoming: Incoming<'_>) {
        self.protocol.receive(connection, incoming);
    }

    pub(crate) fn process_events(&mut self, now: Time, connection: &mut Connection) {
        let had_request = self.responses.started_at.is_some();
        self.protocol
            .process_events(connection, now, &mut self.responses);
        if !had_request && self.responses.started_at.is_some() {
            connection.measure_transfer(now);
        }
    }

    pub(crate) const fn responses(&self) -> Messages {
        self.responses
    }
}
