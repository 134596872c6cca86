//! The sending part of a stream (RFC 9000 §3.1, §13.3).
//!
//! Owns which data is acknowledged, lost, in flight and not yet sent, the end, and the resulting state. It sends no
//! data beyond the peer's limit for the stream, none that is acknowledged, and only one final size (§4.5).
//!
//! Data in flight is sent, neither acknowledged nor lost, and needs no set. Lost data is
//! sent before new data of the same stream (§13.3).

use lastbyte_wire::VarInt;

use super::{
    body::Body,
    ranges::RangeSet,
    scheduler::Class,
    state::{SendInput, SendState},
};
use crate::flow::SendCredit;

#[cfg(test)]
mod tests;

/// The end of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The application may write more.
    Open,
    /// To be sent, for the first time or again.
    Due,
    InFlight,
    Acked,
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) offset: u64,
    /// The maximum number of bytes.
    pub(super) len: u64,
    /// Whether it was sent before.
    pub(super) repeated: bool,
}

#[derive(Debug)]
pub(super) struct SendPart {
    state: SendState,
    pub(super) credit: SendCredit,
    pub(super) body: Body,
    /// Data before this offset was sent.
    sent: u64,
    /// All data before this offset is acknowledged.
    acked_to: u64,
    /// Other acknowledged ranges.
    acked: RangeSet,
    lost: RangeSet,
    fin: Fin,
    reset_code: VarInt,
    /// The peer's `STOP_SENDING`.
    stopped: Option<VarInt>,
    /// A write of the application was not accepted completely.
    pub(super) wants_room: bool,
}

impl SendPart {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            state: SendState::Ready,
            credit: SendCredit::new(limit),
            body: Body::default(),
            sent: 0,
            acked_to: 0,
            acked: RangeSet::default(),
            lost: RangeSet::default(),
            fin: Fin::Open,
            reset_code: VarInt::ZERO,
            stopped: None,
            wants_room: false,
        }
    }

    /// Frees buffers that are empty.
    pub(super) fn release_memory(&mut self) {
        self.acked.release_memory();
        self.lost.release_memory();
        self.body.release_memory();
    }

    pub(super) const fn state(&self) -> SendState {
        self.state
    }

    pub(super) const fn stopped(&self) -> Option<VarInt> {
        self.stopped
    }

    pub(super) const fn reset_code(&self) -> VarInt {
        self.reset_code
    }

    /// Bytes that were sent: the final size, once the stream is reset (RFC 9000 §4.5).
    pub(super) const fn final_size(&self) -> u64 {
        self.sent
    }

    /// Whether the application may write more.
    pub(super) fn is_open(&self) -> bool {
        self.state.sends_data() && self.fin == Fin::Open
    }

    /// Bytes acknowledged without a gap.
    pub(super) const fn acked_to(&self) -> u64 {
        self.acked_to
    }

    /// Whether data or the end is unacknowledged.
    pub(super) fn is_outstanding(&self) -> bool {
        self.state.sends_data()
            && (self.acked_to < self.body.end() || matches!(self.fin, Fin::Due | Fin::InFlight))
    }

    /// Whether the peer's limit for the stream blocks data.
    pub(super) fn is_blocked(&self) -> bool {
        self.state.sends_data() && self.has_new_data() && self.credit.available() == 0
    }

    pub(super) fn finish(&mut self) {
        if self.is_open() {
            self.fin = Fin::Due;
        }
    }

    /// Whether lost data is waiting to be sent again.
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    fn has_new_data(&self) -> bool {
        self.sent < self.body.end()
    }

    fn owes_fin(&self) -> bool {
        self.fin == Fin::Due && !self.has_new_data()
    }

    /// The scheduler queue it belongs to.
    pub(super) fn class(&self) -> Option<Class> {
        if !self.state.sends_data() {
            None
        } else if !self.lost.is_empty() || self.owes_fin() {
            Some(Class::Unmetered)
        } else if self.has_new_data() && self.credit.available() > 0 {
            Some(Class::Fresh)
        } else {
            None
        }
    }

    /// The limit of `STREAM_DATA_BLOCKED`, if one is due.
    pub(super) fn blocked_to_send(&self) -> Option<u64> {
        if self.state.sends_data() && self.has_new_data() {
            self.credit.blocked_to_send()
        } else {
            None
        }
    }

    pub(super) fn on_blocked_sent(&mut self) {
        self.credit.on_blocked_sent();
        self.step(SendInput::Data);
    }

    /// The content of the next frame, if the connection's flow control has `credit` bytes left.
    pub(super) fn next_chunk(&self, credit: u64) -> Option<Chunk> {
        if !self.state.sends_data() {
            return None;
        }
        if let Some(lost) = self.lost.first() {
            return Some(Chunk {
                offset: lost.start,
                len: lost.end - lost.start,
                repeated: true,
            });
        }
        let len = (self.body.end() - self.sent)
            .min(self.credit.available())
            .min(credit);
        (len > 0 || self.owes_fin()).then_some(Chunk {
            offset: self.sent,
            len,
            repeated: false,
        })
    }

    /// Whether a frame that ends at `end` carries FIN.
    pub(super) fn is_end(&self, end: u64) -> bool {
        !matches!(self.fin, Fin::Open | Fin::Acked) && end == self.body.end()
    }

    /// A frame with data of [`SendPart::next_chunk`] was written. Returns how many of its bytes were new.
    pub(super) fn on_sent(&mut self, offset: u64, len: u64, fin: bool) -> u64 {
        let end = offset.saturating_add(len);
        let new = end.saturating_sub(self.sent.max(offset));
        self.lost.remove(offset..end);
        self.sent = self.sent.max(end);
        self.credit.consume(new);
        if fin {
            self.fin = Fin::InFlight;
        }
        let is_data_sent = fin && self.sent == self.body.end();
        self.step(if is_data_sent {
            SendInput::Fin
        } else {
            SendInput::Data
        });
        new
    }

    /// A frame was acknowledged. Returns whether it was the last.
    pub(super) fn on_acked(&mut self, offset: u64, len: u64, fin: bool) -> bool {
        if !self.state.sends_data() {
            return false;
        }
        let end = offset.saturating_add(len).min(self.sent);
        let start = offset.max(self.acked_to);
        if start < end {
            self.lost.remove(start..end);
            if start == self.acked_to && self.acked.is_empty() {
                // In order, as usual: the set is not needed.
                self.acked_to = end;
                self.body.release(end);
            } else {
                self.acked.insert(start..end);
                if let Some(first) = self.acked.first()
                    && first.start <= self.acked_to
                {
                    self.acked_to = first.end;
                    self.acked.remove(first);
                    self.body.release(self.acked_to);
                }
            }
        }
        if fin && self.fin != Fin::Open {
            self.fin = Fin::Acked;
        }
        let is_all = self.fin == Fin::Acked && self.acked_to == self.body.end();
        if is_all {
            self.step(SendInput::AllAcked);
            self.body.clear();
        }
        is_all
    }

    /// A frame was lost. Returns whether the stream should be reset instead of sent again, as the peer requested
    /// (§3.5).
    pub(super) fn on_lost(&mut self, offset: u64, len: u64, fin: bool) -> bool {
        if !self.state.sends_data() {
            return false;
        }
        let end = offset.saturating_add(len).min(self.sent);
        let start = offset.max(self.acked_to);
        if start < end {
            self.lost.insert_except(start..end, &self.acked);
        }
        if fin && self.fin == Fin::InFlight {
            self.fin = Fin::Due;
        }
        self.stopped.is_some() && (!self.lost.is_empty() || self.fin == Fin::Due)
    }

    /// The peer needs no more data. Returns whether the stream must be reset for that (RFC 9000 §3.5).
    pub(super) fn on_stop_sending(&mut self, code: VarInt) -> StopEffect {
        if self.stopped.is_some() || !self.state.sends_data() {
            return StopEffect::None;
        }
        self.stopped = Some(code);
        if self.state == SendState::DataSent && self.lost.is_empty() && self.fin != Fin::Due {
            StopEffect::Told
        } else {
            StopEffect::Reset
        }
    }

    /// Resets the stream. Returns whether `RESET_STREAM` must be sent.
    pub(super) fn reset(&mut self, code: VarInt) -> bool {
        let resets = self.step(SendInput::Reset);
        if resets {
            self.reset_code = code;
            self.forget();
        }
        resets
    }

    pub(super) fn on_reset_acked(&mut self) {
        if self.state == SendState::ResetSent {
            self.step(SendInput::ResetAcked);
        }
    }

    fn forget(&mut self) {
        self.body.clear();
        self.acked.clear();
        self.lost.clear();
    }

    /// The peer has dropped everything that was sent (RFC 9001 §4.6.2): it is sent again from the start.
    pub(super) fn on_zero_rtt_rejected(&mut self) {
        debug_assert_eq!(self.acked_to, 0, "what was rejected is never acknowledged");
        self.credit.restart();
        self.sent = 0;
        self.acked.clear();
        self.lost.clear();
        if self.state.sends_data() {
            self.state = SendState::Ready;
            if self.fin != Fin::Open {
                self.fin = Fin::Due;
            }
        }
    }

    /// Applies a transition. Returns whether it is possible in this state.
    fn step(&mut self, input: SendInput) -> bool {
        let next = self.state.after(input);
        self.state = next.unwrap_or(self.state);
        next.is_some()
    }
}

/// The effect of `STOP_SENDING`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopEffect {
    /// None: it was received before, or comes too late.
    None,
    /// The application is notified; everything was sent already, so a reset can wait for a loss.
    Told,
    /// The application is notified, and the stream is reset.
    Reset,
}
