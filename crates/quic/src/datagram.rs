//! Unreliable datagrams (RFC 9221).
//!
//! Owns: what waits to be sent and what waits to be read, both bounded. What is received beyond the bound pushes out the
//! oldest, and is counted; what is to be sent beyond it is refused. A datagram is acknowledged and congestion controlled as
//! other data, and never sent again (§5).

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
    /// The largest DATAGRAM frame that the peer takes, in bytes; 0 for none.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramError {
    /// The peer takes none (RFC 9221 §3).
    NotSupported,
    /// It is longer than the peer takes, or than fits a packet.
    TooLong,
    /// Too many wait already.
    Full,
}

impl core::fmt::Display for DatagramError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotSupported => "the peer takes no datagrams",
            Self::TooLong => "the datagram is longer than the peer or the path takes",
            Self::Full => "too many datagrams wait to be sent: send less, or later",
        })
    }
}

impl std::error::Error for DatagramError {}

impl Datagrams {
    /// How many wait, in each direction, at most.
    pub const COUNT_MAX: usize = 1024;
    /// How many bytes of them wait, in each direction, at most.
    pub const BYTES_MAX: usize = 1 << 20;

    /// The peer's `max_datagram_frame_size` (RFC 9221 §3).
    pub fn on_peer_parameter(&mut self, max_datagram_frame_size: u64) {
        self.peer_max = max_datagram_frame_size;
    }

    /// The longest datagram that can be sent in packets with this much space for frames; `None` if the peer takes none.
    #[must_use]
    pub fn len_max(&self, room: usize) -> Option<usize> {
        let peer = usize::try_from(self.peer_max).unwrap_or(usize::MAX);
        Datagram::data_len_max(room.min(peer), LengthField::Present).filter(|_| self.peer_max > 0)
    }

    /// Sends a datagram, in packets with this much space for frames.
    ///
    /// # Errors
    ///
    /// It cannot be sent, and is dropped.
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

    /// How many were dropped: received and not read in time, or too long for the path when their turn came.
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

    /// Whether datagrams wait to be sent.
    #[must_use]
    pub fn wants_to_send(&self) -> bool {
        !self.outgoing.waiting.is_empty()
    }

    /// Writes as many frames as fit, into a packet that had `room` for frames when it was empty. A datagram that fits no
    /// packet any more, since the path carries less than before, is dropped.
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
