//! Writing stream frames into packets (RFC 9000 §2.3, §4.1, §12.4).
//!
//! Owns the order: flow-control frames first, since they are small and unblock others, then data in the scheduler's
//! order. Each frame leaves a receipt. All of them are ack-eliciting and count as in flight.

use lastbyte_wire::{
    BufferFull, Encode, StreamId, VarInt, Writer,
    frame::{DataBlocked, LengthField, MaxData, MaxStreams, StreamHeader, StreamsBlocked},
};

use super::{
    ControlSet, Streams,
    event::EventSet,
    ids::{DIRECTIONS, PeerStreams},
    scheduler::Place,
    send::Chunk,
};
use crate::receipt::Receipt;

/// The use of the packet's remaining room by a frame.
struct Fit {
    /// Number of PADDING bytes before the frame.
    padding: usize,
    len: usize,
    length_field: LengthField,
}

impl Streams {
    /// Whether there is something to write, as far as flow control permits. O(1).
    ///
    /// May return a false positive once, after a stream was reset or finished or a limit was raised:
    /// [`Streams::write_frames`] then writes nothing, and the next call returns false.
    pub fn wants_to_send(&self) -> bool {
        // Data first, since that is the most frequent.
        self.wants_to_send_data()
            || !self.queues.control.is_empty()
            || self.window.is_due()
            || self.peer.any(PeerStreams::is_due)
            || self.local.any(|local| local.blocked_to_send().is_some())
    }

    /// Whether stream data or a stream's end is waiting, so that the sender is limited by its window and not by the
    /// application. O(1).
    pub fn wants_to_send_data(&self) -> bool {
        let credit = &self.credit;
        self.queues.scheduler.has_unmetered()
            || (self.queues.scheduler.has_fresh()
                && (credit.available() > 0 || credit.blocked_to_send().is_some()))
    }

    /// Whether streams have new data, and the peer's limits allow none of it (RFC 9000 §4.1), while nothing waits that needs no
    /// credit. O(1).
    pub fn is_blocked(&self) -> bool {
        let scheduler = &self.queues.scheduler;
        !scheduler.has_unmetered()
            && if scheduler.has_fresh() {
                self.credit.available() == 0
            } else {
                self.queues.blocked > 0
            }
    }

    /// Bytes that the next stream has to send, limited by flow control.
    pub(crate) fn next_chunk_len(&self) -> u64 {
        let credit = self.credit.available();
        let next = self.queues.scheduler.next(credit > 0);
        let stream = next.and_then(|id| self.live.get(&id));
        let chunk = stream.and_then(|stream| stream.send.as_ref()?.next_chunk(credit));
        chunk.map_or(0, |chunk| chunk.len)
    }

    /// Writes what fits into the packet. A STREAM frame that fills it has no length, so nothing may be written after it
    /// once the writer is full. Returns whether anything was written; all of it is ack-eliciting.
    pub fn write_frames(
        &mut self,
        writer: &mut Writer<'_>,
        receipts: &mut impl FnMut(Receipt),
    ) -> bool {
        let before = writer.position();
        // What does not fit is left for the next packet.
        let _ = self
            .write_limits(writer, receipts)
            .and_then(|()| self.write_control(writer, receipts));
        self.write_data(writer, receipts);
        writer.position() > before
    }

    /// Writes frames of the connection.
    fn write_limits(
        &mut self,
        writer: &mut Writer<'_>,
        receipts: &mut impl FnMut(Receipt),
    ) -> Result<(), BufferFull> {
        if self.window.is_due() {
            let maximum = self.window.next_limit();
            MaxData { maximum }.encode(writer)?;
            self.window.on_limit_sent();
            receipts(Receipt::MaxData);
        }
        for direction in DIRECTIONS {
            let peer = self.peer.get_mut(direction);
            if peer.is_due() {
                let maximum = peer.next_limit();
                MaxStreams { direction, maximum }.encode(writer)?;
                peer.on_limit_sent();
                receipts(Receipt::MaxStreams(direction));
            }
            let local = self.local.get_mut(direction);
            if let Some(limit) = local.blocked_to_send() {
                StreamsBlocked { direction, limit }.encode(writer)?;
                local.on_blocked_sent();
                receipts(Receipt::StreamsBlocked(direction));
            }
        }
        let limit = self.credit.blocked_to_send();
        if self.queues.scheduler.has_fresh()
            && let Some(limit) = limit
        {
            let limit = VarInt::saturating(limit);
            DataBlocked { limit }.encode(writer)?;
            self.credit.on_blocked_sent();
            receipts(Receipt::DataBlocked);
        }
        Ok(())
    }

    /// Writes frames about single streams, except their data.
    fn write_control(
        &mut self,
        writer: &mut Writer<'_>,
        receipts: &mut impl FnMut(Receipt),
    ) -> Result<(), BufferFull> {
        while let Some(id) = self.queues.control.front().copied() {
            let is_permitted = self.is_permitted(id);
            if let Some(stream) = self.live.get_mut(&id) {
                if is_permitted {
                    stream.write_control(id, writer, receipts)?;
                }
                stream.control_queued = false;
            }
            self.queues.control.pop_front();
            self.settle(id);
        }
        Ok(())
    }

    fn write_data(&mut self, writer: &mut Writer<'_>, receipts: &mut impl FnMut(Receipt)) {
        while writer.remaining() > 0 {
            let credit = self.credit.available();
            let Some(id) = self.queues.scheduler.next(credit > 0) else {
                return;
            };
            if self.write_stream(id, credit, writer, receipts).is_err() {
                return;
            }
        }
    }

    /// Writes one STREAM frame.
    fn write_stream(
        &mut self,
        id: StreamId,
        credit: u64,
        writer: &mut Writer<'_>,
        receipts: &mut impl FnMut(Receipt),
    ) -> Result<(), BufferFull> {
        let is_permitted = self.is_permitted(id);
        let Some(stream) = self.live.get_mut(&id) else {
            return Err(BufferFull);
        };
        let Some(send) = &mut stream.send else {
            return Err(BufferFull);
        };
        let chunk = send.next_chunk(credit).ok_or(BufferFull)?;
        let mut header = StreamHeader {
            id,
            offset: VarInt::saturating(chunk.offset),
            fin: false,
        };
        let fit = fit(&header, &chunk, writer.remaining()).ok_or(BufferFull)?;
        header.fin = send.is_end(chunk.offset + fit.len as u64);
        let before = writer.position();
        writer.zeros(fit.padding)?;
        let place = header.begin(writer, fit.len, fit.length_field)?;
        if let Err(error) = send.body.read_at(chunk.offset, place) {
            writer.rewind(before);
            if send.reset(error.code) {
                stream.control.insert(ControlSet::RESET_STREAM);
            }
            stream.events.insert(EventSet::SOURCE_FAILED);
            self.settle(id);
            return Ok(());
        }
        let len = fit.len as u64;
        let new = send.on_sent(chunk.offset, len, header.fin);
        self.credit.consume(new);
        self.statistics.data_sent += len;
        self.statistics.data_resent += len - new;
        if !chunk.repeated {
            self.queues.scheduler.on_sent(id, &mut stream.place);
        }
        receipts(Receipt::Stream {
            id,
            offset: chunk.offset,
            len: u32::try_from(fit.len).unwrap_or(u32::MAX),
            fin: header.fin,
        });
        if send.class() == stream.place.map(Place::class) {
            // Usually there is more data of the same kind: the stream stays in its queue, and in no other.
            return Ok(());
        }
        if self.queues.take_in(id, stream, is_permitted) {
            self.remove(id);
        }
        Ok(())
    }
}

/// How to put a chunk into `space` bytes: without a length if that fills it. A frame that would fill it but for its
/// length field is moved to the packet's end by PADDING, rather than split for a byte or two.
#[inline]
fn fit(header: &StreamHeader, chunk: &Chunk, space: usize) -> Option<Fit> {
    let wanted = usize::try_from(chunk.len).unwrap_or(usize::MAX);
    let without = header.data_len_max(space, LengthField::Absent)?;
    if wanted < without
        && let Some(with) = header.data_len_max(space, LengthField::Present)
        && wanted <= with
    {
        return Some(Fit {
            padding: 0,
            len: wanted,
            length_field: LengthField::Present,
        });
    }
    let len = wanted.min(without);
    (len > 0 || wanted == 0).then_some(Fit {
        padding: without - len,
        len,
        length_field: LengthField::Absent,
    })
}
