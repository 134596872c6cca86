//! What can be set for the streams of a connection.

use lastbyte_wire::{
    StreamCount, TransportError, VarInt, transport_parameters::TransportParameters,
};

use crate::flow::WindowSize;

/// Limits for the streams of a connection. They bound the memory that a peer can make us use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes the peer may send on all streams together beyond what the application consumed (RFC 9000 §4.1). Default
    /// 1.5 MiB, growing to 24 MiB; below 2^62. Data that the application does not read takes up to twice as much memory.
    pub connection_window: WindowSize,
    /// Bytes the peer may send on one stream beyond what the application consumed (RFC 9000 §4.1). Default 1 MiB,
    /// growing to 16 MiB; below 2^62. Above the connection's window it has no effect.
    pub stream_window: WindowSize,
    /// How many bidirectional streams the peer may have open at a time (RFC 9000 §4.6). Default 100; 0 to 2^16, above it
    /// counts as that. Each takes half a kilobyte while it is open.
    pub bidirectional_streams: u64,
    /// How many unidirectional streams the peer may have open at a time (RFC 9000 §4.6). Default 100; 0 to 2^16, above it
    /// counts as that.
    pub unidirectional_streams: u64,
    /// How many bytes one stream takes by `write` before the peer acknowledged them. Default 256 KiB, at least 1. A
    /// stream of written data runs no faster than this per round trip; sources are not bound by it.
    pub send_buffer: usize,
    /// How many gaps the received data of one stream may have (RFC 9000 §21.7). Default 4096, at least 1. With fewer,
    /// heavy loss on a long path closes the connection; each costs 16 bytes.
    pub gaps_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            connection_window: WindowSize {
                initial: 3 << 19,
                maximum: 24 << 20,
            },
            stream_window: WindowSize {
                initial: 1 << 20,
                maximum: 16 << 20,
            },
            bidirectional_streams: 100,
            unidirectional_streams: 100,
            send_buffer: 256 << 10,
            gaps_max: 4096,
        }
    }
}

impl Config {
    /// The most streams of a kind that a peer may have open at a time.
    pub const STREAMS_MAX: u64 = 1 << 16;

    /// Puts what the peer has to know into our transport parameters (RFC 9000 §18.2).
    pub fn announce(&self, parameters: &mut TransportParameters) {
        let stream = VarInt::saturating(self.stream_window.initial);
        let count = |streams: u64| {
            StreamCount::new(streams.min(Self::STREAMS_MAX)).unwrap_or(StreamCount::ZERO)
        };
        parameters.initial_max_data = VarInt::saturating(self.connection_window.initial);
        parameters.initial_max_stream_data_bidi_local = stream;
        parameters.initial_max_stream_data_bidi_remote = stream;
        parameters.initial_max_stream_data_uni = stream;
        parameters.initial_max_streams_bidi = count(self.bidirectional_streams);
        parameters.initial_max_streams_uni = count(self.unidirectional_streams);
    }
}

/// What has been sent and acknowledged, in bytes of stream data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Sent in STREAM frames, first and repeated.
    pub data_sent: u64,
    /// The repeated part of it, whether what was repeated was lost or only feared to be.
    pub data_resent: u64,
    /// Acknowledged, from the first byte of each stream on.
    pub data_acked: u64,
}

/// The code of an error that is our own limit's doing.
pub(super) const LOCAL_LIMIT: TransportError = TransportError::INTERNAL_ERROR;
