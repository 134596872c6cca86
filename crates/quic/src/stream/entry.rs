//! One stream: its parts, and its pending frames (RFC 9000 §3).
//!
//! Owns the frames about the stream other than its data: which are due, which are still useful, their content. The
//! content is decided only when a frame is written.

use lastbyte_wire::{
    BufferFull, Encode, StreamId, VarInt, Writer,
    frame::{MaxStreamData, ResetStream, StopSending, StreamDataBlocked},
};

use super::{
    event::EventSet,
    receive::ReceivePart,
    scheduler::{Place, Priority},
    send::SendPart,
    state::SendState,
};
use crate::receipt::Receipt;

/// A set of frames to write for a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlSet(u8);

impl ControlSet {
    pub(super) const RESET_STREAM: Self = Self(1);
    pub(super) const STOP_SENDING: Self = Self(1 << 1);
    pub(super) const MAX_STREAM_DATA: Self = Self(1 << 2);
    pub(super) const STREAM_DATA_BLOCKED: Self = Self(1 << 3);

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub(super) const fn remove(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

#[derive(Debug)]
pub(super) struct Stream {
    /// Boxed, since half of the streams of an idle HTTP/3 connection have only one of them.
    pub(super) send: Option<Box<SendPart>>,
    pub(super) receive: Option<Box<ReceivePart>>,
    pub(super) priority: Priority,
    /// Its position in the scheduler.
    pub(super) place: Option<Place>,
    /// Whether it is counted among the streams that their own limit blocks.
    pub(super) is_blocked: bool,
    pub(super) control: ControlSet,
    pub(super) control_queued: bool,
    pub(super) events: EventSet,
    pub(super) events_queued: bool,
}

impl Stream {
    pub(super) fn new(send: Option<SendPart>, receive: Option<ReceivePart>) -> Self {
        Self {
            send: send.map(Box::new),
            receive: receive.map(Box::new),
            priority: Priority::default(),
            place: None,
            is_blocked: false,
            control: ControlSet::default(),
            control_queued: false,
            events: EventSet::default(),
            events_queued: false,
        }
    }

    /// Whether the stream is finished and no event is left.
    pub(super) fn is_over(&self) -> bool {
        let sends = self
            .send
            .as_ref()
            .is_some_and(|send| !send.state().is_terminal());
        let receives = self
            .receive
            .as_ref()
            .is_some_and(|receive| !receive.state().is_terminal());
        !sends && !receives && !self.events_queued
    }

    /// Marks the frames that follow from its state.
    pub(super) fn note_control(&mut self) {
        if self
            .send
            .as_ref()
            .is_some_and(|send| send.blocked_to_send().is_some())
        {
            self.control.insert(ControlSet::STREAM_DATA_BLOCKED);
        }
        if self
            .receive
            .as_ref()
            .is_some_and(|receive| receive.window.is_due() && receive.wants_more())
        {
            self.control.insert(ControlSet::MAX_STREAM_DATA);
        }
    }

    /// Whether a frame is still useful.
    pub(super) fn is_of_use(&self, control: ControlSet) -> bool {
        let (send, receive) = (self.send.as_deref(), self.receive.as_deref());
        if control == ControlSet::RESET_STREAM {
            send.is_some_and(|send| send.state() == SendState::ResetSent)
        } else if control == ControlSet::STOP_SENDING {
            receive.is_some_and(|receive| receive.stop_to_send().is_some())
        } else if control == ControlSet::MAX_STREAM_DATA {
            receive.is_some_and(ReceivePart::wants_more)
        } else {
            send.is_some_and(|send| send.blocked_to_send().is_some())
        }
    }

    /// Writes the frames that are due and useful. Those that do not fit stay due.
    pub(super) fn write_control(
        &mut self,
        stream_id: StreamId,
        writer: &mut Writer<'_>,
        receipts: &mut impl FnMut(Receipt),
    ) -> Result<(), BufferFull> {
        for control in [
            ControlSet::RESET_STREAM,
            ControlSet::STOP_SENDING,
            ControlSet::MAX_STREAM_DATA,
            ControlSet::STREAM_DATA_BLOCKED,
        ] {
            if self.control.contains(control) {
                if self.is_of_use(control) {
                    receipts(self.write_one(control, stream_id, writer)?);
                }
                self.control.remove(control);
            }
        }
        Ok(())
    }

    fn write_one(
        &mut self,
        control: ControlSet,
        stream_id: StreamId,
        writer: &mut Writer<'_>,
    ) -> Result<Receipt, BufferFull> {
        match (&mut self.send, &mut self.receive) {
            (Some(send), _) if control == ControlSet::RESET_STREAM => {
                let frame = ResetStream {
                    stream_id,
                    error_code: send.reset_code(),
                    final_size: VarInt::saturating(send.final_size()),
                };
                frame.encode(writer)?;
                Ok(Receipt::ResetStream(stream_id))
            }
            (Some(send), _) if control == ControlSet::STREAM_DATA_BLOCKED => {
                let limit = VarInt::saturating(send.credit.limit());
                StreamDataBlocked { stream_id, limit }.encode(writer)?;
                send.on_blocked_sent();
                Ok(Receipt::StreamDataBlocked(stream_id))
            }
            (_, Some(receive)) if control == ControlSet::STOP_SENDING => {
                let error_code = receive.stop_to_send().unwrap_or_default();
                let frame = StopSending {
                    stream_id,
                    error_code,
                };
                frame.encode(writer)?;
                Ok(Receipt::StopSending(stream_id))
            }
            (_, Some(receive)) => {
                let maximum = receive.window.next_limit();
                MaxStreamData { stream_id, maximum }.encode(writer)?;
                receive.window.on_limit_sent();
                Ok(Receipt::MaxStreamData(stream_id))
            }
            _ => Err(BufferFull),
        }
    }
}
