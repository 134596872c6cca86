//! The application's interface to streams (RFC 9000 §2.4).
//!
//! Owns the calls that open, write, read and reset streams, and the delivery of events. None of them blocks: a call
//! that cannot proceed returns, and an event follows when it can.

use lastbyte_congestion::Time;
use lastbyte_wire::{Direction, StreamId, VarInt};

use super::{
    ControlSet, Priority, ReadError, Source, StreamEvent, Streams, UnknownStream, WriteError,
    event::EventSet, send::SendPart, state::ReceiveState,
};

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Number of bytes read.
    pub bytes: usize,
    /// Whether they were the last of the stream.
    pub end: bool,
}

impl Streams {
    /// Opens a stream. `None` if the peer permits no further one: `STREAMS_BLOCKED` is sent, and an event follows when
    /// it does (RFC 9000 §4.6).
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let index = self.local.get_mut(direction).open()?;
        let id = StreamId::new(self.side, direction, index)?;
        self.create(id);
        Some(id)
    }

    /// The next stream that the peer opened. Streams that are finished already, because a sink took their data, are
    /// skipped.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        loop {
            let index = self.peer.get_mut(direction).accept()?;
            let id = StreamId::new(self.side.peer(), direction, index)?;
            if self.live.contains_key(&id) {
                return Some(id);
            }
        }
    }

    /// Appends bytes, as many as the send buffer has room for. If not all, an event follows when there is room.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the stream can no longer be written.
    pub fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, WriteError> {
        let buffer_max = self.config.send_buffer.max(1);
        let send = self.open_send(id)?;
        let room = buffer_max.saturating_sub(send.body.written());
        let room = if send.body.has_room_for_part() {
            room
        } else {
            0
        };
        let accepted = bytes.get(..room).unwrap_or(bytes);
        fits(send, accepted.len() as u64)?;
        send.wants_room = accepted.len() < bytes.len();
        send.body.write(accepted);
        self.settle(id);
        Ok(accepted.len())
    }

    /// Bytes that a write would accept now, with a source after them. If fewer than `wanted`, an event follows when
    /// there is more room.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the stream can no longer be written.
    pub fn room(&mut self, id: StreamId, wanted: usize) -> Result<usize, WriteError> {
        let buffer_max = self.config.send_buffer.max(1);
        let send = self.open_send(id)?;
        let room = if send.body.has_room_for_parts(2) {
            buffer_max.saturating_sub(send.body.written())
        } else {
            0
        };
        send.wants_room = room < wanted;
        Ok(room)
    }

    /// Appends all of a source. It is read when packets are filled, and dropped when all of it is acknowledged.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the stream can no longer be written, or too many parts are pending.
    pub fn send_source(&mut self, id: StreamId, source: Box<dyn Source>) -> Result<(), WriteError> {
        let send = self.open_send(id)?;
        if !send.body.has_room_for_part() {
            send.wants_room = true;
            return Err(WriteError::Blocked);
        }
        fits(send, source.len())?;
        send.body.push(source);
        self.settle(id);
        Ok(())
    }

    /// Ends the stream after the data written so far. An event follows when everything is acknowledged.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if it was ended before.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.open_send(id)?.finish();
        self.settle(id);
        Ok(())
    }

    /// Resets the sending part of the stream: nothing more is sent, and the peer receives `code`. Has no effect if it
    /// has ended.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownStream`] if there is no such part.
    pub fn reset(&mut self, id: StreamId, code: VarInt) -> Result<(), UnknownStream> {
        let stream = self.live.get_mut(&id).ok_or(UnknownStream)?;
        let send = stream.send.as_mut().ok_or(UnknownStream)?;
        if send.reset(code) {
            stream.control.insert(ControlSet::RESET_STREAM);
            stream.events.remove(EventSet::WRITABLE);
        }
        self.settle(id);
        Ok(())
    }

    /// Asks the peer to stop sending: data that arrives is discarded (RFC 9000 §3.5).
    ///
    /// # Errors
    ///
    /// Returns [`UnknownStream`] if there is no such part.
    pub fn stop_sending(
        &mut self,
        id: StreamId,
        code: VarInt,
        now: Time,
    ) -> Result<(), UnknownStream> {
        let stream = self.live.get_mut(&id).ok_or(UnknownStream)?;
        let receive = stream.receive.as_mut().ok_or(UnknownStream)?;
        if receive.stop(code, &mut self.rings) {
            stream.control.insert(ControlSet::STOP_SENDING);
        }
        stream.events.remove(EventSet::READABLE);
        self.release_and_settle(id, now);
        Ok(())
    }

    /// Passes data to `read` in order, slice by slice, until it consumes less than it is given.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError`] if the stream has no more data to read.
    pub fn read(
        &mut self,
        id: StreamId,
        now: Time,
        read: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<Read, ReadError> {
        let stream = self.live.get_mut(&id).ok_or(ReadError::UnknownStream)?;
        let receive = stream.receive.as_mut().ok_or(ReadError::UnknownStream)?;
        if receive.is_stopped() {
            return Err(ReadError::Stopped);
        }
        let outcome = match receive.state() {
            ReceiveState::ResetRecvd | ReceiveState::ResetRead => {
                receive.on_reset_reported();
                stream.events.remove(EventSet::RESET);
                Err(ReadError::Reset(receive.reset_code()))
            }
            _ => {
                let (bytes, end) = receive.read(read, &mut self.rings);
                Ok(Read { bytes, end })
            }
        };
        stream.events.remove(EventSet::READABLE);
        self.release_and_settle(id, now);
        outcome
    }

    /// Sets the priority of the stream, for all data not sent yet (RFC 9218). The default is urgency 3, not
    /// incremental.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownStream`] if there is no such stream.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), UnknownStream> {
        let stream = self.live.get_mut(&id).ok_or(UnknownStream)?;
        stream.priority = priority;
        self.settle(id);
        Ok(())
    }

    /// The next event. A stream stays in memory until its events are taken.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        if let Some(event) = self.queues.events.pop_general() {
            return Some(event);
        }
        while let Some(id) = self.queues.events.streams.front().copied() {
            let event = self.pop_event(id);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// The next event of the first stream in the queue. Removes the stream from the queue with its last event.
    fn pop_event(&mut self, id: StreamId) -> Option<StreamEvent> {
        let mut event = None;
        if let Some(stream) = self.live.get_mut(&id) {
            let (send, receive) = (&stream.send, &mut stream.receive);
            event = stream.events.pop().and_then(|happened| {
                Some(match happened {
                    EventSet::READABLE => StreamEvent::Readable(id),
                    EventSet::RESET => {
                        let receive = receive.as_mut()?;
                        receive.on_reset_reported();
                        let code = receive.reset_code();
                        StreamEvent::Reset { id, code }
                    }
                    EventSet::STOPPED => StreamEvent::Stopped {
                        id,
                        code: send.as_ref()?.stopped()?,
                    },
                    EventSet::SOURCE_FAILED => StreamEvent::SourceFailed {
                        id,
                        code: send.as_ref()?.reset_code(),
                    },
                    EventSet::WRITABLE => StreamEvent::Writable(id),
                    _ => StreamEvent::Finished(id),
                })
            });
            if !stream.events.is_empty() {
                return event;
            }
            stream.events_queued = false;
        }
        self.queues.events.streams.pop_front();
        self.settle(id);
        event
    }

    fn open_send(&mut self, id: StreamId) -> Result<&mut SendPart, WriteError> {
        let send = self.send_mut(id).ok_or(WriteError::UnknownStream)?;
        match send.stopped() {
            Some(code) => Err(WriteError::Stopped(code)),
            None if send.is_open() => Ok(send),
            None => Err(WriteError::Finished),
        }
    }
}

/// Whether the stream's offsets permit this many more bytes (RFC 9000 §4.5).
fn fits(send: &SendPart, bytes: u64) -> Result<(), WriteError> {
    let end = VarInt::saturating(send.body.end()).checked_add(bytes);
    end.map(|_| ()).ok_or(WriteError::TooLong)
}
