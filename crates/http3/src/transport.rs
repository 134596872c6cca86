//! The interface of the transport below HTTP/3.
//!
//! [`lastbyte_quic::Connection`] implements it. Tests and other QUIC implementations can provide their own.

use core::time::Duration;

use lastbyte_quic::{
    Stage, Time,
    stream::{Priority, Progress, Read, ReadError, Source, StreamEvent, UnknownStream, WriteError},
    trace::ApplicationFrame,
};
use lastbyte_wire::{Direction, StreamId, VarInt};

/// A connection with streams, as [`crate::Connection`] uses it. The methods about streams behave as those of
/// [`Streams`](lastbyte_quic::stream::Streams) with the same names.
pub trait Transport {
    // ---- streams -----------------------------------------------------------------------------------------------------

    /// The next event of any stream.
    fn poll_stream_event(&mut self) -> Option<StreamEvent>;

    /// Opens a stream; `None` if the peer permits no further one now.
    fn open(&mut self, direction: Direction) -> Option<StreamId>;

    /// The next stream that the peer opened.
    fn accept(&mut self, direction: Direction) -> Option<StreamId>;

    /// Passes received data to `read`, slice by slice, until it consumes less than it is given or there is no more.
    ///
    /// # Errors
    ///
    /// Returns [`ReadError`] if the stream has no more data to read.
    fn read(
        &mut self,
        id: StreamId,
        now: Time,
        read: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<Read, ReadError>;

    /// Bytes of `wanted` that fit the stream's buffer now; if not all, [`StreamEvent::Writable`] follows.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the stream can no longer be written.
    fn room(&mut self, id: StreamId, wanted: usize) -> Result<usize, WriteError>;

    /// Writes bytes while there is room. Returns the number of bytes accepted.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the stream can no longer be written.
    fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, WriteError>;

    /// Sends all of a source after the bytes written before.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if the stream can no longer be written.
    fn send_source(&mut self, id: StreamId, source: Box<dyn Source>) -> Result<(), WriteError>;

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// Returns [`WriteError`] if it was ended or reset before.
    fn finish(&mut self, id: StreamId) -> Result<(), WriteError>;

    /// Resets the sending part (`RESET_STREAM`).
    ///
    /// # Errors
    ///
    /// Returns [`UnknownStream`] if there is nothing to reset.
    fn reset(&mut self, id: StreamId, code: VarInt) -> Result<(), UnknownStream>;

    /// Asks the peer to stop sending (`STOP_SENDING`).
    ///
    /// # Errors
    ///
    /// Returns [`UnknownStream`] if nothing more is expected.
    fn stop_sending(&mut self, id: StreamId, code: VarInt, now: Time) -> Result<(), UnknownStream>;

    /// Sets the sending priority.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownStream`] if nothing more is to be sent.
    fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), UnknownStream>;

    /// The progress of a stream; `None` if it is finished.
    fn progress(&mut self, id: StreamId) -> Option<Progress>;

    // ---- the connection ----------------------------------------------------------------------------------------------

    /// Connection-level flow-control credit for sending, in bytes.
    fn send_credit(&mut self) -> u64;

    /// Bytes of all streams that the peer has acknowledged.
    fn data_acked(&self) -> u64;

    /// Initial credit of our unidirectional streams, in bytes; zero before it is known.
    fn initial_unidirectional_credit(&self) -> u64;

    /// Whether the handshake is incomplete on this side.
    fn is_handshaking(&self) -> bool;

    /// The smoothed round-trip time.
    fn round_trip(&self) -> Duration;

    /// Sets whether a response is expected, so that the connection is kept alive.
    fn set_awaiting(&mut self, is_awaiting: bool);

    /// Closes the connection with an application error code.
    fn close(&mut self, now: Time, code: u64);

    /// Whether frames are reported to [`Transport::trace_frame`].
    fn is_traced(&self) -> bool {
        false
    }

    /// Takes a frame for the trace of the connection.
    fn trace_frame(&mut self, now: Time, frame: ApplicationFrame<'_>) {
        let _ = (now, frame);
    }
}

impl Transport for lastbyte_quic::Connection {
    fn poll_stream_event(&mut self) -> Option<StreamEvent> {
        self.streams().poll_event()
    }

    fn open(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams().open(direction)
    }

    fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        self.streams().accept(direction)
    }

    fn read(
        &mut self,
        id: StreamId,
        now: Time,
        read: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Result<Read, ReadError> {
        self.streams().read(id, now, read)
    }

    fn room(&mut self, id: StreamId, wanted: usize) -> Result<usize, WriteError> {
        self.streams().room(id, wanted)
    }

    fn write(&mut self, id: StreamId, bytes: &[u8]) -> Result<usize, WriteError> {
        self.streams().write(id, bytes)
    }

    fn send_source(&mut self, id: StreamId, source: Box<dyn Source>) -> Result<(), WriteError> {
        self.streams().send_source(id, source)
    }

    fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.streams().finish(id)
    }

    fn reset(&mut self, id: StreamId, code: VarInt) -> Result<(), UnknownStream> {
        self.streams().reset(id, code)
    }

    fn stop_sending(&mut self, id: StreamId, code: VarInt, now: Time) -> Result<(), UnknownStream> {
        self.streams().stop_sending(id, code, now)
    }

    fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), UnknownStream> {
        self.streams().set_priority(id, priority)
    }

    fn progress(&mut self, id: StreamId) -> Option<Progress> {
        self.streams().progress(id)
    }

    fn send_credit(&mut self) -> u64 {
        self.streams().credit().available()
    }

    fn data_acked(&self) -> u64 {
        self.stream_statistics().data_acked
    }

    fn initial_unidirectional_credit(&self) -> u64 {
        self.peer_parameters()
            .map_or(0, |peer| peer.initial_max_stream_data_uni.get())
    }

    fn is_handshaking(&self) -> bool {
        self.stage() == Stage::Handshaking
    }

    fn round_trip(&self) -> Duration {
        self.recovery().rtt().smoothed()
    }

    fn set_awaiting(&mut self, is_awaiting: bool) {
        self.set_awaiting(is_awaiting);
    }

    fn close(&mut self, now: Time, code: u64) {
        self.close(now, code);
    }

    fn is_traced(&self) -> bool {
        self.is_traced()
    }

    fn trace_frame(&mut self, now: Time, frame: ApplicationFrame<'_>) {
        self.trace_frame(now, frame);
    }
}
