//! Receipts: the data that the source of a frame needs when the packet is acknowledged or lost.
//!
//! Each frame stores a receipt with its packet. Once the packet is acknowledged or lost, the receipt is returned to the
//! source of the frame. After an acknowledgment the source frees the data; after a loss it decides what is still worth
//! sending. Frames are never sent again unchanged.

use lastbyte_wire::{Direction, StreamId};

/// The receipt of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// CRYPTO data `offset..offset + len` of the packet number space.
    Crypto {
        /// Offset in the space's CRYPTO stream.
        offset: u64,
        /// Length in bytes.
        len: u16,
    },
    /// STREAM data `offset..offset + len`, with or without FIN.
    Stream {
        /// The stream.
        id: StreamId,
        /// Offset in the stream.
        offset: u64,
        /// Length in bytes: of one frame, or of several that were acknowledged together ([`Receipt::joined`]).
        len: u32,
        /// Whether the frame carried FIN.
        fin: bool,
    },
    /// `RESET_STREAM`.
    ResetStream(StreamId),
    /// `STOP_SENDING`.
    StopSending(StreamId),
    /// `MAX_DATA`.
    MaxData,
    /// `MAX_STREAM_DATA`.
    MaxStreamData(StreamId),
    /// `MAX_STREAMS`.
    MaxStreams(Direction),
    /// `DATA_BLOCKED`.
    DataBlocked,
    /// `STREAM_DATA_BLOCKED`.
    StreamDataBlocked(StreamId),
    /// `STREAMS_BLOCKED`.
    StreamsBlocked(Direction),
    /// `NEW_CONNECTION_ID` of this sequence number.
    NewConnectionId(u64),
    /// `RETIRE_CONNECTION_ID` of this sequence number.
    RetireConnectionId(u64),
    /// `NEW_TOKEN`.
    NewToken,
    /// `HANDSHAKE_DONE`.
    HandshakeDone,
    /// ACK whose largest acknowledged number is this one.
    Ack {
        /// The largest acknowledged.
        largest: u64,
    },
    /// `ACK_FREQUENCY` of this sequence number.
    AckFrequency(u64),
    /// `PATH_CHALLENGE` or `PATH_RESPONSE`: never retransmitted.
    Path,
    /// PING: carries nothing.
    Ping,
}

impl Receipt {
    /// One receipt for two frames, if `next` carried the data after that of `self` on the same stream.
    pub fn joined(&self, next: &Self) -> Option<Self> {
        match (*self, *next) {
            (
                Self::Stream {
                    id,
                    offset,
                    len,
                    fin: false,
                },
                Self::Stream {
                    id: next_id,
                    offset: next_offset,
                    len: next_len,
                    fin,
                },
            ) if id == next_id && offset.checked_add(u64::from(len)) == Some(next_offset) => {
                Some(Self::Stream {
                    id,
                    offset,
                    len: len.checked_add(next_len)?,
                    fin,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
