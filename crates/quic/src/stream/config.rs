//! Configuration of a connection's streams.

use lastbyte_wire::{
    StreamCount, TransportError, VarInt, transport_parameters::TransportParameters,
};

use crate::flow::{WindowBudget, WindowSize};

/// Limits for the streams of a connection. They bound the memory that a peer can cause to be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes that the peer may send on all streams together beyond what the application consumed (RFC 9000 §4.1).
    /// Default 1.5 MiB, growing to 24 MiB; below 2^62. Data that the application does not read uses up to twice as much
    /// memory.
    pub connection_window: WindowSize,
    /// Bytes that the peer may send on one stream beyond what the application consumed (RFC 9000 §4.1). Default 1 MiB,
    /// growing to 16 MiB; below 2^62. A value above the connection's window has no effect.
    pub stream_window: WindowSize,
    /// Bounds the growth of the windows of all connections that share it. Default: none, so each grows to its maximum.
    pub window_budget: Option<WindowBudget>,
    /// Maximum number of bidirectional streams that the peer may have open (RFC 9000 §4.6). Default 100; at most 2^16,
    /// larger values are clamped. Each takes half a kilobyte while it is open.
    pub bidirectional_streams: u64,
    /// Maximum number of unidirectional streams that the peer may have open (RFC 9000 §4.6). Default 100; at most 2^16,
    /// larger values are clamped.
    pub unidirectional_streams: u64,
    /// Size of a stream's send buffer: bytes that `write` accepts before the peer acknowledges them. Default 256
    /// KiB, at least 1. Written data is sent at no more than this per round trip; sources are not limited by it.
    pub send_buffer: usize,
    /// Maximum number of gaps in the received data of one stream (RFC 9000 §21.7). Default 4096, at least 1. With a lower
    /// limit, heavy loss on a long path closes the connection; each gap costs 16 bytes.
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
            window_budget: None,
            bidirectional_streams: 100,
            unidirectional_streams: 100,
            send_buffer: 256 << 10,
            gaps_max: 4096,
        }
    }
}

impl Config {
    /// The maximum number of streams of one type that a peer may have open at a time.
    pub const STREAMS_MAX: u64 = 1 << 16;

    /// Writes the stream limits into our transport parameters (RFC 9000 §18.2).
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

/// Bytes of stream data sent and acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Sent in STREAM frames, for the first time or again.
    pub data_sent: u64,
    /// The retransmitted part of it, whether it was lost or sent again as a probe.
    pub data_resent: u64,
    /// Acknowledged without a gap from the start of each stream.
    pub data_acked: u64,
}

/// The error code if one of our own limits is exceeded.
pub(super) const LOCAL_LIMIT: TransportError = TransportError::INTERNAL_ERROR;
