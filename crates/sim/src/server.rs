//! The server of a flow: answers, and counts.
//!
//! Owns: what a response is made of, and when which was acknowledged. Never: knows how it is said; that is for
//! [`crate::protocol`].

use lastbyte_congestion::Time;
use lastbyte_quic::{
    connection::Connection,
    stream::{Source, SourceError},
};

use crate::protocol::{Incoming, Responds};

/// The server of a flow.
pub(crate) struct Server {
    protocol: Box<dyn Responds>,
    answers: Messages,
}

/// The messages of one end, a server's responses or a client's requests: how many were begun and acknowledged, when the first was
/// begun, and when the last was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Messages {
    pub(crate) begun: u64,
    pub(crate) acked: u64,
    pub(crate) begun_at: Option<Time>,
    pub(crate) acked_at: Option<Time>,
}

impl Messages {
    /// A message is being sent.
    pub(crate) fn on_begun(&mut self, now: Time) {
        self.begun += 1;
        self.begun_at.get_or_insert(now);
    }

    /// All of a message was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Time) {
        self.acked += 1;
        self.acked_at = Some(now);
    }
}

/// A body of this length. Its content is what the buffers hold: nothing reads it, and memory that is neither written
/// nor read costs no time.
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
    pub(crate) fn new(protocol: Box<dyn Responds>) -> Self {
        Self {
            protocol,
            answers: Messages::default(),
        }
    }

    /// When it wants to be attended to, if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.protocol.deadline()
    }

    pub(crate) fn receive(&mut self, connection: &mut Connection, incoming: Incoming<'_>) {
        self.protocol.receive(connection, incoming);
    }

    pub(crate) fn attend(&mut self, now: Time, connection: &mut Connection) {
        let had_request = self.answers.begun_at.is_some();
        self.protocol.attend(connection, now, &mut self.answers);
        if !had_request && self.answers.begun_at.is_some() {
            connection.measure_transfer(now);
        }
    }

    pub(crate) const fn answers(&self) -> Messages {
        self.answers
    }
}
