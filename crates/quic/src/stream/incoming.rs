//! Effects of the peer's frames on streams (RFC 9000 §3, §4, §19.4, §19.5, §19.8 to §19.14).
//!
//! Owns the rules about which peer may send which frame for which stream. A violation is a [`StreamError`], with which
//! the connection must be closed; frames for finished streams are ignored, since they can be late.

use lastbyte_congestion::Time;
use lastbyte_wire::{Direction, StreamId, TransportError, frame};

use super::{
    ControlSet, ReceiveState, StreamError, StreamSink, Streams, event::EventSet, receive::Buffers,
    send::StopEffect,
};

/// The part of a stream that a frame concerns, from our point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Sending,
    Receiving,
}

impl Streams {
    /// STREAM: in-order data is passed to the sink at once, if it accepts it (RFC 9000 §19.8). Returns whether the
    /// frame brought new data: a byte or the end.
    ///
    /// # Errors
    ///
    /// Returns [`StreamError`] if the stream is not permitted or does not exist yet, a limit is exceeded, the final
    /// size changes, or there are too many gaps.
    pub fn on_stream(
        &mut self,
        frame: &frame::Stream<'_>,
        now: Time,
        sink: &mut dyn StreamSink,
    ) -> Result<bool, StreamError> {
        let id = frame.header.id;
        self.open_by_peer(id, Part::Receiving)?;
        let is_permitted = self.is_permitted(id);
        let Some(stream) = self.live.get_mut(&id) else {
            return Ok(false);
        };
        let Some(receive) = &mut stream.receive else {
            return Ok(false);
        };
        let offset = frame.header.offset.get();
        let end = offset.saturating_add(frame.data.len() as u64);
        let is_new = receive.lacks(offset..end, frame.header.fin);
        receive.admit(end, frame.header.fin, &mut self.window, now)?;
        let mut buffers = Buffers {
            pool: &mut self.rings,
            gaps_max: self.config.gaps_max,
        };
        if receive.on_data(id, offset, frame.data, sink, &mut buffers)? {
            stream.events.insert(EventSet::READABLE);
        } else if !receive.is_readable() {
            // The sink read what it had left before.
            stream.events.remove(EventSet::READABLE);
        }
        let released = receive.release(now, self.rtt);
        self.window.on_consumed(released, now, self.rtt);
        let is_quiet = stream.events.is_empty()
            && receive.state() == ReceiveState::Recv
            && !receive.window.is_due();
        if is_quiet {
            // No queue changes, as is usual where a sink takes the data.
            return Ok(is_new);
        }
        if self.queues.take_in(id, stream, is_permitted) {
            self.remove(id);
        }
        Ok(is_new)
    }

    /// `RESET_STREAM`: the peer resets its part (RFC 9000 §19.4).
    ///
    /// # Errors
    ///
    /// Returns [`StreamError`] if the stream is not permitted or does not exist yet, a limit is exceeded, or the final
    /// size changes.
    pub fn on_reset_stream(
        &mut self,
        frame: &frame::ResetStream,
        now: Time,
    ) -> Result<(), StreamError> {
        let id = frame.stream_id;
        self.open_by_peer(id, Part::Receiving)?;
        let Some(stream) = self.live.get_mut(&id) else {
            return Ok(());
        };
        let Some(receive) = &mut stream.receive else {
            return Ok(());
        };
        let is_new = receive.on_reset(
            frame.final_size.get(),
            frame.error_code,
            &mut self.window,
            now,
            &mut self.rings,
        )?;
        if is_new {
            stream.events.remove(EventSet::READABLE);
            stream.events.insert(EventSet::RESET);
        }
        self.release_and_settle(id, now);
        Ok(())
    }

    /// `STOP_SENDING`: the peer needs no more of our part, which is reset with its code (RFC 9000 §3.5, §19.5).
    ///
    /// # Errors
    ///
    /// Returns [`StreamError`] if the stream is not permitted or does not exist yet.
    pub fn on_stop_sending(&mut self, frame: &frame::StopSending) -> Result<(), StreamError> {
        let id = frame.stream_id;
        self.open_by_peer(id, Part::Sending)?;
        if let Some(stream) = self.live.get_mut(&id)
            && let Some(send) = &mut stream.send
        {
            let effect = send.on_stop_sending(frame.error_code);
            if effect != StopEffect::None {
                stream.events.insert(EventSet::STOPPED);
            }
            if effect == StopEffect::Reset && send.reset(frame.error_code) {
                stream.control.insert(ControlSet::RESET_STREAM);
            }
            self.settle(id);
        }
        Ok(())
    }

    /// `MAX_DATA` (RFC 9000 §19.9).
    pub fn on_max_data(&mut self, frame: &frame::MaxData) {
        self.credit.raise(frame.maximum.get());
    }

    /// `MAX_STREAM_DATA` (RFC 9000 §19.10).
    ///
    /// # Errors
    ///
    /// Returns [`StreamError`] if the stream is not permitted or does not exist yet.
    pub fn on_max_stream_data(&mut self, frame: &frame::MaxStreamData) -> Result<(), StreamError> {
        let id = frame.stream_id;
        self.open_by_peer(id, Part::Sending)?;
        if let Some(send) = self.send_mut(id)
            && send.credit.raise(frame.maximum.get())
        {
            self.settle(id);
        }
        Ok(())
    }

    /// `MAX_STREAMS` (RFC 9000 §19.11).
    pub fn on_max_streams(&mut self, frame: &frame::MaxStreams) {
        let direction = frame.direction;
        let local = self.local.get_mut(direction);
        let (before, opened) = (local.limit(), local.opened());
        if local.raise(frame.maximum) {
            *self.queues.events.available.get_mut(direction) = true;
        }
        // Streams opened in rejected 0-RTT may have waited for this.
        for index in before..opened.min(frame.maximum.get()) {
            if let Some(id) = StreamId::new(self.side, direction, index) {
                self.settle(id);
            }
        }
    }

    /// `DATA_BLOCKED`: no effect, since limits are raised without being requested (RFC 9000 §4.1, §19.12).
    pub fn on_data_blocked(&mut self, frame: &frame::DataBlocked) {
        let _ = (&self, frame);
    }

    /// `STREAM_DATA_BLOCKED`: opens the stream, and has no other effect (RFC 9000 §3.2, §19.13).
    ///
    /// # Errors
    ///
    /// Returns [`StreamError`] if the stream is not permitted or does not exist yet.
    pub fn on_stream_data_blocked(
        &mut self,
        frame: &frame::StreamDataBlocked,
    ) -> Result<(), StreamError> {
        self.open_by_peer(frame.stream_id, Part::Receiving)
    }

    /// `STREAMS_BLOCKED`: no effect (RFC 9000 §4.6, §19.14).
    pub fn on_streams_blocked(&mut self, frame: &frame::StreamsBlocked) {
        let _ = (&self, frame);
    }

    /// Checks that the peer may refer to that part of the stream in a frame, and opens the peer's streams up to it
    /// (§3.2).
    fn open_by_peer(&mut self, id: StreamId, part: Part) -> Result<(), StreamError> {
        let direction = id.direction();
        let is_local = self.is_local(id);
        match (direction, part, is_local) {
            (Direction::Unidirectional, Part::Receiving, true) => {
                return Err(StreamError::state("the peer cannot send on this stream"));
            }
            (Direction::Unidirectional, Part::Sending, false) => {
                return Err(StreamError::state("only the peer sends on this stream"));
            }
            _ => {}
        }
        if is_local {
            return if id.index() < self.local.get(direction).opened() {
                Ok(())
            } else {
                Err(StreamError::state(
                    "a stream that this endpoint did not open",
                ))
            };
        }
        let opened = self
            .peer
            .get_mut(direction)
            .open_to(id.index())
            .map_err(|_| StreamError {
                code: TransportError::STREAM_LIMIT_ERROR,
                reason: "a stream beyond the limit",
            })?;
        for index in opened {
            *self.queues.events.opened.get_mut(direction) = true;
            if let Some(id) = StreamId::new(self.side.peer(), direction, index) {
                self.create(id);
            }
        }
        Ok(())
    }
}
