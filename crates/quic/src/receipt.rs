//! What the source of a frame has to know again when its packet is acknowledged or lost.
//!
//! Each frame leaves a receipt with its packet. When the packet's fate is known, the receipt goes back to the source of the
//! frame: if acknowledged, the source forgets; if lost, it decides what of it is still worth sending.
//! Frames are never sent again as they were.

use lastbyte_wire::{Direction, StreamId};

/// The receipt of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// CRYPTO data `offset..offset + len` of the packet number space.
    Crypto {
        /// Offset in the space's CRYPTO stream.
        offset: u64,
        /// Bytes.
        len: u16,
    },
    /// STREAM data `offset..offset + len`, with or without the end of the stream.
    Stream {
        /// The stream.
        id: StreamId,
        /// Offset in the stream.
        offset: u64,
        /// Bytes: of one frame, or of several that were acknowledged together ([`Receipt::joined`]).
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
    /// ACK, which acknowledged this packet number as the largest.
    Ack {
        /// The largest acknowledged.
        largest: u64,
    },
    /// `ACK_FREQUENCY` of this sequence number.
    AckFrequency(u64),
    /// `PATH_CHALLENGE` or `PATH_RESPONSE`: never repeated as such.
    Path,
    /// PING: to be answered, no more.
    Ping,
    /// DATAGRAM: not repeated.
    Datagram,
}

impl Receipt {
    /// One receipt for two frames, if `next` carried the data that follows that of `self` on the same stream.
    #[must_use]
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
