//! The receiving part of a stream (RFC 9000 §3.2, §4.1, §4.5).
//!
//! Owns the data on its way to the application, the final size, and the resulting state. It delivers no data beyond the
//! limit or the final size, lets the final size not change, and delivers no byte twice.
//!
//! In-order data goes directly from the packet to the sink; only what the sink does not accept is copied. Once the
//! application reads no more, data counts as consumed when it arrives, so that it does not block other streams; so do
//! bytes up to the final size that will never arrive.

use std::{ops::Range, time::Duration};

use lastbyte_congestion::Time;
use lastbyte_wire::{StreamId, VarInt};

use super::{
    assembler::{Assembler, RingPool},
    config::LOCAL_LIMIT,
    error::StreamError,
    state::{ReceiveInput, ReceiveState},
};
use crate::flow::{ReceiveWindow, WindowSize};

/// The destination of received data, called while its packet is processed.
pub trait StreamSink {
    /// Receives the next bytes of a stream, in order, each byte once; `fin` means that the stream ends after them, and
    /// can come without bytes. Returns how many bytes were accepted: the rest is kept to be read later. If all are, the
    /// end is accepted too.
    fn data(&mut self, id: StreamId, offset: u64, data: &[u8], fin: bool) -> usize;

    /// Whether the stream's data goes to this sink at all. If not, it is kept to be read later.
    fn takes(&self, id: StreamId) -> bool {
        let _ = id;
        true
    }
}

/// The sink of an application that reads when it chooses: accepts nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeepAll;

impl StreamSink for KeepAll {
    fn data(&mut self, _: StreamId, _: u64, _: &[u8], _: bool) -> usize {
        0
    }

    fn takes(&self, _: StreamId) -> bool {
        false
    }
}

/// The limits of the buffers.
pub(super) struct Buffers<'a> {
    pub(super) pool: &'a mut RingPool,
    pub(super) gaps_max: usize,
}

#[derive(Debug)]
pub(super) struct ReceivePart {
    state: ReceiveState,
    pub(super) assembler: Assembler,
    pub(super) window: ReceiveWindow,
    /// One more than the highest offset received; the final size, once it is known.
    highest: u64,
    final_size: Option<u64>,
    /// Bytes returned to the connection's window.
    released: u64,
    /// The application has received the end.
    end_told: bool,
    reset_code: VarInt,
    /// We asked the peer to stop sending.
    stop_code: Option<VarInt>,
}

impl ReceivePart {
    pub(super) fn new(window: WindowSize) -> Self {
        Self {
            state: ReceiveState::Recv,
            assembler: Assembler::default(),
            window: ReceiveWindow::new(window),
            highest: 0,
            final_size: None,
            released: 0,
            end_told: false,
            reset_code: VarInt::ZERO,
            stop_code: None,
        }
    }

    pub(super) const fn state(&self) -> ReceiveState {
        self.state
    }

    pub(super) const fn reset_code(&self) -> VarInt {
        self.reset_code
    }

    /// The code of `STOP_SENDING`, as long as that is useful (§3.5).
    pub(super) fn stop_to_send(&self) -> Option<VarInt> {
        self.stop_code.filter(|_| self.state.lacks_data())
    }

    pub(super) const fn is_stopped(&self) -> bool {
        self.stop_code.is_some()
    }

    /// Whether a `MAX_STREAM_DATA` frame is useful: the peer may have data that we would read.
    pub(super) fn wants_more(&self) -> bool {
        self.state == ReceiveState::Recv && !self.is_stopped()
    }

    /// One more than the highest offset received.
    pub(super) const fn highest(&self) -> u64 {
        self.highest
    }

    /// Whether data is missing and everything in order was read.
    pub(super) fn awaits_peer(&self) -> bool {
        !self.is_stopped() && self.state.lacks_data() && self.assembler.peek().is_empty()
    }

    /// Whether there is something to read.
    pub(super) fn is_readable(&self) -> bool {
        !self.is_stopped()
            && match self.state {
                ReceiveState::DataRecvd => true,
                state => state.lacks_data() && !self.assembler.peek().is_empty(),
            }
    }

    /// Whether a STREAM frame with these bytes brings any that are new, or the end.
    pub(super) fn lacks(&self, bytes: Range<u64>, fin: bool) -> bool {
        bytes.end > self.highest
            || (fin && self.final_size.is_none())
            || (self.state.lacks_data() && !self.assembler.has(bytes))
    }

    /// Checks the end offset of a STREAM frame, and charges it to flow control (§4.1).
    pub(super) fn admit(
        &mut self,
        end: u64,
        fin: bool,
        connection: &mut ReceiveWindow,
        now: Time,
    ) -> Result<(), StreamError> {
        match self.final_size {
            Some(size) if end > size => {
                return Err(StreamError::final_size("data beyond the final size"));
            }
            Some(size) if fin && end != size => {
                return Err(StreamError::final_size("FIN changes the final size"));
            }
            None if fin && end < self.highest => {
                return Err(StreamError::final_size("FIN below data received before"));
            }
            _ => {}
        }
        self.take_credit(end, connection, now)?;
        if fin && self.final_size.is_none() {
            self.final_size = Some(end);
            self.step(ReceiveInput::Fin);
        }
        Ok(())
    }

    /// The connection's credit first: what is not charged there must not be released to it later.
    fn take_credit(
        &mut self,
        end: u64,
        connection: &mut ReceiveWindow,
        now: Time,
    ) -> Result<(), StreamError> {
        let new = end.saturating_sub(self.highest);
        connection
            .on_received(new, now)
            .map_err(|_| StreamError::flow_control("data beyond the connection's limit"))?;
        self.window
            .on_received(new, now)
            .map_err(|_| StreamError::flow_control("data beyond the stream's limit"))?;
        self.highest = self.highest.max(end);
        Ok(())
    }

    /// Delivers the data of an admitted frame, or keeps it. Returns whether there is more to read than before.
    pub(super) fn on_data(
        &mut self,
        id: StreamId,
        offset: u64,
        data: &[u8],
        sink: &mut dyn StreamSink,
        buffers: &mut Buffers<'_>,
    ) -> Result<bool, StreamError> {
        if !self.state.lacks_data() {
            return Ok(false);
        }
        let takes = !self.is_stopped() && sink.takes(id);
        let before = self.assembler.received_to();
        let mut is_declined = false;
        let (mut offset, mut data) = (offset, data);
        if takes && let Some(rest) = self.pass_to_sink(id, offset, data, sink, buffers.pool) {
            (offset, data) = (self.assembler.read_offset(), rest);
            is_declined = !rest.is_empty();
        }
        self.assembler
            .insert(offset, data, buffers.gaps_max, buffers.pool)
            .map_err(|_| StreamError {
                code: LOCAL_LIMIT,
                reason: "more gaps in a stream than this endpoint keeps",
            })?;
        let is_complete = self.final_size == Some(self.assembler.received_to());
        if is_complete {
            self.step(ReceiveInput::AllData);
        }
        if takes && !is_declined {
            let mut read = |at, bytes: &[u8], fin| sink.data(id, at, bytes, fin);
            self.drain(&mut read, buffers.pool);
        }
        if is_complete && self.is_stopped() {
            self.on_read_to_end();
        }
        let has_more = is_complete || self.assembler.received_to() > before;
        Ok(has_more && self.is_readable())
    }

    /// Passes the next in-order bytes of a frame to the sink, if it has them. Returns what the sink did not accept.
    fn pass_to_sink<'d>(
        &mut self,
        id: StreamId,
        offset: u64,
        data: &'d [u8],
        sink: &mut dyn StreamSink,
        pool: &mut RingPool,
    ) -> Option<&'d [u8]> {
        let read = self.assembler.read_offset();
        let fresh = usize::try_from(read.saturating_sub(offset))
            .ok()
            .and_then(|known| data.get(known..))
            .unwrap_or_default();
        let is_next = offset <= read && self.assembler.peek().is_empty() && !fresh.is_empty();
        if !is_next {
            return None;
        }
        let fin = self.final_size == Some(read + fresh.len() as u64);
        let taken = sink.data(id, read, fresh, fin).min(fresh.len());
        self.assembler.consume(taken, pool);
        self.end_told = fin && taken == fresh.len();
        Some(fresh.get(taken..).unwrap_or_default())
    }

    /// Passes in-order data to `read` until it consumes less than it is given.
    fn drain(
        &mut self,
        read: &mut dyn FnMut(u64, &[u8], bool) -> usize,
        pool: &mut RingPool,
    ) -> usize {
        let mut total = 0;
        loop {
            let at = self.assembler.read_offset();
            let piece = self.assembler.peek();
            let fin = self.final_size == Some(at + piece.len() as u64);
            if self.end_told || (piece.is_empty() && !fin) {
                break;
            }
            let len = piece.len();
            let taken = read(at, piece, fin).min(len);
            self.assembler.consume(taken, pool);
            total += taken;
            if taken < len {
                break;
            }
            self.end_told = fin;
        }
        if self.end_told && self.state == ReceiveState::DataRecvd {
            self.on_read_to_end();
        }
        total
    }

    /// The application reads. Returns the number of bytes consumed, and whether the end was reached.
    pub(super) fn read(
        &mut self,
        read: &mut dyn FnMut(&[u8]) -> usize,
        pool: &mut RingPool,
    ) -> (usize, bool) {
        // An end without data makes no call: the result reports it.
        let mut read = |_, bytes: &[u8], _| if bytes.is_empty() { 0 } else { read(bytes) };
        let bytes = self.drain(&mut read, pool);
        (bytes, self.end_told)
    }

    fn on_read_to_end(&mut self) {
        self.end_told = true;
        self.step(ReceiveInput::Read);
    }

    /// The peer resets the stream (§3.2). Returns whether this is new.
    pub(super) fn on_reset(
        &mut self,
        final_size: u64,
        code: VarInt,
        connection: &mut ReceiveWindow,
        now: Time,
        pool: &mut RingPool,
    ) -> Result<bool, StreamError> {
        if self.final_size.is_some_and(|size| size != final_size) {
            return Err(StreamError::final_size(
                "RESET_STREAM changes the final size",
            ));
        }
        if final_size < self.highest {
            return Err(StreamError::final_size(
                "RESET_STREAM below data received before",
            ));
        }
        self.take_credit(final_size, connection, now)?;
        self.final_size = Some(final_size);
        let is_new = self.state.lacks_data();
        self.step(ReceiveInput::Reset);
        if is_new {
            self.reset_code = code;
            self.assembler.discard(pool);
        }
        Ok(is_new)
    }

    /// The application was notified of the reset.
    pub(super) fn on_reset_reported(&mut self) {
        if self.state == ReceiveState::ResetRecvd {
            self.step(ReceiveInput::ResetReported);
        }
    }

    /// The application needs no more data. Returns whether `STOP_SENDING` must be sent.
    pub(super) fn stop(&mut self, code: VarInt, pool: &mut RingPool) -> bool {
        if self.is_stopped() || self.state.is_terminal() {
            return false;
        }
        self.stop_code = Some(code);
        self.assembler.discard(pool);
        match self.state {
            ReceiveState::DataRecvd => self.on_read_to_end(),
            ReceiveState::ResetRecvd => self.on_reset_reported(),
            _ => {}
        }
        self.state.lacks_data()
    }

    /// Bytes to return to the connection's window since the last call. Updates `window` too.
    pub(super) fn release(&mut self, now: Time, rtt: Duration) -> u64 {
        let is_given_up = self.is_stopped()
            || matches!(
                self.state,
                ReceiveState::ResetRecvd | ReceiveState::ResetRead
            );
        let consumed = if is_given_up {
            self.highest
        } else {
            self.assembler.read_offset()
        };
        let bytes = consumed.saturating_sub(self.released);
        self.released = self.released.max(consumed);
        self.window.on_consumed(bytes, now, rtt);
        bytes
    }

    fn step(&mut self, input: ReceiveInput) {
        self.state = self.state.after(input).unwrap_or(self.state);
    }
}
