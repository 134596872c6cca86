//! Graceful shutdown (RFC 9114 §5.2).
//!
//! Owns the GOAWAY frames of both sides, which requests are rejected because of them, and when no request is left.

use std::time::Duration;

use lastbyte_quic::Time;
use lastbyte_wire::{Side, StreamId, VarInt};

use super::Connection;
use crate::{
    Code, ConnectionError, Event, Origin, StreamError, Transport, frame::FrameType,
    settings::put_varint,
};

#[derive(Debug, Default)]
pub(super) struct Shutdown {
    /// Received request streams, by number: all below this.
    accepted: u64,
    /// Our last GOAWAY.
    said: Option<u64>,
    /// When a server sends its final GOAWAY.
    last_word_at: Option<Time>,
    /// The peer's last GOAWAY.
    heard: Option<u64>,
    /// When a message of a request ended last, or a server sent its final GOAWAY.
    ended_at: Option<Time>,
    is_drained: bool,
}

/// Above all possible streams (§5.2).
const NONE_YET: u64 = VarInt::MAX.get() - 3;

/// How long a server waits after a response, and after its final GOAWAY, until it reports that none is left. The client has
/// acknowledged the response, but its application may not have read it, and some clients (quic-go 0.65) discard what is unread when the
/// connection is closed. A request that crosses the GOAWAY is rejected, so that the client can retry it, where a closed connection would
/// leave it in doubt. Most clients close the connection themselves before. The time is assumed.
const LINGER: Duration = Duration::from_secs(1);

impl Shutdown {
    /// Whether no further request may be sent.
    pub(super) const fn is_begun(&self) -> bool {
        self.said.is_some() || self.heard.is_some()
    }

    pub(super) fn on_accepted(&mut self, id: StreamId) {
        self.accepted = self.accepted.max(id.index() + 1);
    }

    /// Whether a request stream has existed, finished or not.
    pub(super) const fn has_accepted(&self, id: StreamId) -> bool {
        id.index() < self.accepted
    }

    pub(super) const fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Whether the client was informed that this request is not processed.
    pub(super) fn refuses(&self, id: StreamId) -> bool {
        self.said.is_some_and(|said| id.get() >= said)
    }

    pub(super) const fn on_ended(&mut self, now: Time) {
        self.ended_at = Some(now);
    }

    /// When a server that has sent its final GOAWAY reports that no request is left, if there is none.
    fn lingers_until(&self, side: Side) -> Option<Time> {
        let has_said_all = self.said.is_some() && self.last_word_at.is_none();
        let lingers = side == Side::Server && has_said_all && !self.is_drained;
        self.ended_at.filter(|_| lingers).map(|at| at + LINGER)
    }
}

impl Connection {
    pub(super) fn begin_shutdown(&mut self, transport: &mut dyn Transport) {
        if self.shutdown.said.is_some() {
            return;
        }
        match self.shared.side {
            Side::Client => self.send_goaway(transport, 0),
            Side::Server => {
                self.send_goaway(transport, NONE_YET);
                // Requests in flight are served; they arrive within one round trip.
                let round_trip = transport.round_trip();
                self.shutdown.last_word_at = Some(self.shared.now + round_trip * 2);
            }
        }
    }

    fn send_goaway(&mut self, transport: &mut dyn Transport, id: u64) {
        self.shutdown.said = Some(id);
        let mut payload = Vec::new();
        put_varint(&mut payload, VarInt::saturating(id));
        self.send_control(transport, FrameType::GOAWAY, &payload, |frame| {
            frame.value("id", id)
        });
    }

    /// Sends a server's final GOAWAY when it is due.
    pub(super) fn check_shutdown(&mut self, transport: &mut dyn Transport) {
        if self
            .shutdown
            .last_word_at
            .is_some_and(|at| at <= self.shared.now)
        {
            self.shutdown.last_word_at = None;
            self.send_goaway(transport, self.shutdown.accepted << 2);
            self.shutdown.on_ended(self.shared.now);
        }
    }

    /// A request arrived after the final GOAWAY: the client can retry it elsewhere (RFC 9114 §4.1.1).
    pub(super) fn refuse(&mut self, transport: &mut dyn Transport, id: StreamId) {
        let code = Code::REQUEST_REJECTED.into();
        let now = self.shared.now;
        // It has just been accepted.
        let _ = transport.reset(id, code);
        let _ = transport.stop_sending(id, code, now);
        self.shared.decoder.cancel(id.get());
    }

    /// The peer is shutting down.
    pub(super) fn on_goaway(
        &mut self,
        transport: &mut dyn Transport,
        id: u64,
    ) -> Result<(), ConnectionError> {
        let wrong = |reason| Err(ConnectionError::new(Code::ID_ERROR, reason));
        if self.shutdown.heard.is_some_and(|heard| id > heard) {
            return wrong("GOAWAY with a larger identifier than before");
        }
        if self.shared.side == Side::Client && id & 3 != 0 {
            return wrong("GOAWAY with an invalid identifier");
        }
        self.shutdown.heard = Some(id);
        self.shared.events.push_back(Event::GoAway { id });
        if self.shared.side == Side::Client {
            let refused = self
                .streams
                .range(StreamId::from(VarInt::saturating(id))..)
                .map(|(id, _)| *id);
            for id in refused.collect::<Vec<_>>() {
                self.give_up_refused(transport, id);
            }
        }
        Ok(())
    }

    /// The server did not and will not process a request.
    fn give_up_refused(&mut self, transport: &mut dyn Transport, id: StreamId) {
        let error = StreamError {
            code: Code::REQUEST_REJECTED,
            origin: Origin::Peer,
            reason: "",
        };
        // The stream itself is cancelled (§5.2), and the application learns that it may retry.
        let now = self.shared.now;
        let code = Code::REQUEST_CANCELLED.into();
        if let Some(stream) = self.streams.get_mut(&id) {
            if stream.sending.finish() {
                let _ = transport.reset(id, code);
            }
            let _ = transport.stop_sending(id, code, now);
        }
        self.give_up(transport, id, error);
    }

    /// When the next step of a shutdown is due.
    pub(super) fn shutdown_deadline(&self) -> Option<Time> {
        let lingers_until = self.shutdown.lingers_until(self.shared.side);
        let is_empty = self.streams.is_empty();
        Time::earlier(
            self.shutdown.last_word_at,
            lingers_until.filter(|_| is_empty),
        )
    }

    /// Reports once that no request is left.
    pub(super) fn check_drained(&mut self) {
        let shutdown = &self.shutdown;
        let lingers_until = shutdown.lingers_until(self.shared.side);
        if shutdown.is_begun()
            && lingers_until.is_none_or(|until| until <= self.shared.now)
            && shutdown.last_word_at.is_none()
            && !shutdown.is_drained
            && self.streams.is_empty()
            && (self.shared.side == Side::Client || shutdown.said.is_some())
        {
            self.shutdown.is_drained = true;
            self.shared.events.push_back(Event::Drained);
        }
    }
}
