//! Acknowledged and lost frames (RFC 9000 §13.3).
//!
//! Owns the consequences. Frames are not retransmitted as they were: the content of a lost frame is sent again if it is
//! still useful, with the values that are current when it is written.

use lastbyte_wire::StreamId;

use super::{ControlSet, Streams, event::EventSet, ids::LocalStreams};
use crate::receipt::Receipt;

impl Streams {
    /// The frame of this receipt was acknowledged. Receipts of other sources are ignored.
    pub fn acked(&mut self, receipt: &Receipt) {
        match *receipt {
            Receipt::Stream {
                id,
                offset,
                len,
                fin,
            } => self.on_data_acked(id, offset, u64::from(len), fin),
            Receipt::ResetStream(id) => {
                if let Some(send) = self.send_mut(id) {
                    send.on_reset_acked();
                    self.settle(id);
                }
            }
            _ => {}
        }
    }

    fn on_data_acked(&mut self, id: StreamId, offset: u64, len: u64, fin: bool) {
        let buffer_max = self.config.send_buffer;
        let is_permitted = self.is_permitted(id);
        let Some(stream) = self.live.get_mut(&id) else {
            return;
        };
        let Some(send) = &mut stream.send else {
            return;
        };
        let had_lost = send.has_lost();
        let acked_before = send.acked_to();
        let is_last = send.on_acked(offset, len, fin);
        self.statistics.data_acked += send.acked_to() - acked_before;
        if is_last {
            stream.events.insert(EventSet::FINISHED);
        }
        // A quarter of the buffer, so that the application does not write in small pieces.
        let has_room =
            send.body.written() <= buffer_max - buffer_max / 4 && send.body.has_room_for_part();
        if send.wants_room && has_room && send.is_open() {
            send.wants_room = false;
            stream.events.insert(EventSet::WRITABLE);
        } else if !had_lost && !is_last {
            // Usually nothing has changed on which a queue depends.
            return;
        }
        if self.queues.take_in(id, stream, is_permitted) {
            self.remove(id);
        }
    }

    /// The frame of this receipt was lost, or may have been: a probe passes the receipts of a packet that is not lost
    /// (RFC 9002 §6.2.4). What is still useful will be sent again. Receipts of other sources are ignored.
    pub fn lost(&mut self, receipt: &Receipt) {
        match *receipt {
            Receipt::Stream {
                id,
                offset,
                len,
                fin,
            } => self.on_data_lost(id, offset, u64::from(len), fin),
            Receipt::ResetStream(id) => self.on_control_lost(id, ControlSet::RESET_STREAM),
            Receipt::StopSending(id) => self.on_control_lost(id, ControlSet::STOP_SENDING),
            Receipt::MaxStreamData(id) => self.on_control_lost(id, ControlSet::MAX_STREAM_DATA),
            Receipt::StreamDataBlocked(id) => {
                if let Some(send) = self.send_mut(id) {
                    send.credit.on_blocked_lost();
                    self.settle(id);
                }
            }
            Receipt::MaxData => self.window.on_lost(),
            Receipt::MaxStreams(direction) => self.peer.get_mut(direction).on_lost(),
            Receipt::DataBlocked => self.credit.on_blocked_lost(),
            Receipt::StreamsBlocked(direction) => {
                LocalStreams::on_blocked_lost(self.local.get_mut(direction));
            }
            _ => {}
        }
    }

    fn on_data_lost(&mut self, id: StreamId, offset: u64, len: u64, fin: bool) {
        let Some(stream) = self.live.get_mut(&id) else {
            return;
        };
        let Some(send) = &mut stream.send else {
            return;
        };
        if send.on_lost(offset, len, fin)
            && let Some(code) = send.stopped()
            && send.reset(code)
        {
            stream.control.insert(ControlSet::RESET_STREAM);
        }
        self.settle(id);
    }

    fn on_control_lost(&mut self, id: StreamId, control: ControlSet) {
        if let Some(stream) = self.live.get_mut(&id)
            && stream.is_of_use(control)
        {
            stream.control.insert(control);
            self.settle(id);
        }
    }
}
