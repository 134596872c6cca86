//! Unreliable datagrams (RFC 9221).
//!
//! Owns the send queue and the receive queue, both bounded. A full receive queue drops its oldest datagram, and counts
//! it; a full send queue rejects further ones. Datagrams are acknowledged and congestion controlled as other data, and
//! never retransmitted (§5).

use std::collections::VecDeque;

use lastbyte_wire::{
    Encode, Writer,
    frame::{Datagram, LengthField},
};

use crate::receipt::Receipt;

#[cfg(test)]
mod tests;

/// The datagrams of one connection.
#[derive(Clone, Debug, Default)]
pub struct Datagrams {
    outgoing: Queue,
    incoming: Queue,
    /// The largest DATAGRAM frame that the peer accepts, in bytes; 0 for none.
    peer_max: u64,
    dropped: u64,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, data: Vec<u8>) {
        self.bytes += data.len();
        self.waiting.push_back(data);
    }

    fn pop(&mut self) -> Option<Vec<u8>> {
        let data = self.waiting.pop_front()?;
        self.bytes -= data.len();
        Some(data)
    }

    fn has_room_for(&self, len: usize) -> bool {
        self.waiting.len() < Datagrams::COUNT_MAX && self.bytes + len <= Datagrams::BYTES_MAX
    }
}

/// Why a datagram cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// The peer does not support datagrams (RFC 9221 §3).
    #[error("the peer takes no datagrams")]
    NotSupported,
    /// It exceeds the peer's limit or the size of a packet.
    #[error("the datagram is longer than the peer or the path takes")]
    TooLong,
    /// The send queue is full.
    #[error("too many datagrams wait to be sent: send less, or later")]
    Full,
}

impl Datagrams {
    /// Maximum number of datagrams in each queue.
    pub const COUNT_MAX: usize = 1024;
    /// Maximum number of bytes in each queue.
    pub const BYTES_MAX: usize = 1 << 20;

    /// Frees memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.outgoing.waiting.shrink_to_fit();
        self.incoming.waiting.shrink_to_fit();
    }

    /// The peer's `max_datagram_frame_size` (RFC 9221 §3).
    pub fn on_peer_parameter(&mut self, max_datagram_frame_size: u64) {
        self.peer_max = max_datagram_frame_size;
    }

    /// The longest datagram that can be sent in packets with this much space for frames; `None` if the peer does not
    /// support datagrams.
    #[must_use]
    pub fn len_max(&self, room: usize) -> Option<usize> {
        let peer = usize::try_from(self.peer_max).unwrap_or(usize::MAX);
        Datagram::data_len_max(room.min(peer), LengthField::Present).filter(|_| self.peer_max > 0)
    }

    /// Queues a datagram, for packets with this much space for frames.
    ///
    /// # Errors
    ///
    /// Returns [`DatagramError`] if it cannot be sent; it is dropped.
    pub fn send(&mut self, data: Vec<u8>, room: usize) -> Result<(), DatagramError> {
        let len_max = self.len_max(room).ok_or(DatagramError::NotSupported)?;
        if data.len() > len_max {
            return Err(DatagramError::TooLong);
        }
        if !self.outgoing.has_room_for(data.len()) {
            return Err(DatagramError::Full);
        }
        self.outgoing.push(data);
        Ok(())
    }

    /// The next datagram received.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        self.incoming.pop()
    }

    /// Number of dropped datagrams: not read in time, or too long for the path when sent.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A DATAGRAM frame was received.
    pub fn on_datagram(&mut self, frame: &Datagram<'_>) {
        if frame.data.len() > Self::BYTES_MAX {
            self.dropped += 1;
            return;
        }
        while !self.incoming.has_room_for(frame.data.len()) && self.incoming.pop().is_some() {
            self.dropped += 1;
        }
        self.incoming.push(frame.data.to_vec());
    }

    /// Whether datagrams are waiting to be sent.
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        !self.outgoing.waiting.is_empty()
    }

    /// Writes as many frames as fit into a packet that had `room` for frames when it was empty. A datagram that fits no
    /// packet any more, because the path now carries less, is dropped.
    pub fn write_frames(
        &mut self,
        writer: &mut Writer<'_>,
        room: usize,
        receipts: &mut impl FnMut(Receipt),
    ) {
        while let Some(data) = self.outgoing.waiting.front() {
            let frame = Datagram { data };
            if frame.encode(writer).is_ok() {
                receipts(Receipt::Datagram);
            } else if Datagram::data_len_max(room, LengthField::Present)
                .is_some_and(|len_max| data.len() <= len_max)
            {
                return;
            } else {
                self.dropped += 1;
            }
            self.outgoing.pop();
        }
    }
}
