//! Counters of a connection, for its line in the connection log.
//!
//! [`RecoveryStatistics`](crate::recovery::RecoveryStatistics) has the counters of loss recovery.

use core::time::Duration;

use lastbyte_wire::{
    Direction,
    frame::{CloseCause, Frame},
};

use crate::receipt::Receipt;

#[cfg(test)]
mod tests;

/// Counters of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets.
    pub packets: PacketCounts,
    /// Bytes of the datagrams received, whatever they contain.
    pub bytes_received: u64,
    /// Frames received.
    pub frames_received: FrameCounts,
    /// Frames sent.
    pub frames_sent: FrameCounts,
    /// Paths.
    pub paths: PathCounts,
    /// Time from the start of the connection until the handshake was confirmed; `None` before that.
    pub handshake_confirmed_after: Option<Duration>,
}

/// Counters of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Received and opened, without duplicates.
    pub received: u64,
    /// Received but failed authentication.
    pub decryption_failed: u64,
    /// Received twice.
    pub duplicates: u64,
    /// Initial packets received.
    pub initial_received: u64,
    /// 0-RTT packets received.
    pub zero_rtt_received: u64,
    /// Handshake packets received.
    pub handshake_received: u64,
    /// Initial packets sent.
    pub initial_sent: u64,
    /// 0-RTT packets sent.
    pub zero_rtt_sent: u64,
    /// Handshake packets sent.
    pub handshake_sent: u64,
    /// Received with a lower number than an earlier packet of the space.
    pub received_out_of_order: u64,
    /// Received in datagrams marked ECT(0).
    pub received_ect0: u64,
    /// Received in datagrams marked ECT(1).
    pub received_ect1: u64,
    /// Received in datagrams marked CE.
    pub received_ce: u64,
    /// Maximum number of packets waiting for keys at a time.
    pub delayed_max: u64,
    /// Packets that were opened after waiting for keys.
    pub delayed_used: u64,
    /// Packets dropped because no more could wait for keys.
    pub delayed_dropped: u64,
    /// Packet numbers skipped (RFC 9000 §21.4).
    pub skipped: u64,
}

/// Counters of paths. The initial path is not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Paths registered.
    pub created: u64,
    /// Paths validated.
    pub validated: u64,
    /// Paths that did not respond.
    pub validation_failed: u64,
    /// Paths to which the peer migrated.
    pub migration_elicited: u64,
    /// Paths that became the path in use.
    pub promoted: u64,
    /// Paths given up because no connection ID was available for them.
    pub closed_without_id: u64,
    /// Packets sent on paths that became the path in use.
    pub packets_sent_promoted: u64,
    /// Packets acknowledged that were sent on such paths.
    pub packets_acked_promoted: u64,
}

/// Counters of frames by type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// The lower 32 bits of each count, since few connections count further.
    low: [u32; FrameKind::ALL.len()],
    /// The upper bits, once there are any.
    high: Option<Box<[u32; FrameKind::ALL.len()]>>,
}

macro_rules! frame_kinds {
    ($($kind:ident $name:literal,)*) => {
        /// A frame type that is counted separately.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum FrameKind {
            $(#[doc = concat!("`", $name, "` in logs.")] $kind,)*
        }

        impl FrameKind {
            /// All types, in the order of the log.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// The name in logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

frame_kinds! {
    Padding "padding",
    Ping "ping",
    Ack "ack",
    ResetStream "reset_stream",
    StopSending "stop_sending",
    Crypto "crypto",
    NewToken "new_token",
    Stream "stream",
    MaxData "max_data",
    MaxStreamData "max_stream_data",
    MaxStreamsBidi "max_streams_bidi",
    MaxStreamsUni "max_streams_uni",
    DataBlocked "data_blocked",
    StreamDataBlocked "stream_data_blocked",
    StreamsBlocked "streams_blocked",
    NewConnectionId "new_connection_id",
    RetireConnectionId "retire_connection_id",
    PathChallenge "path_challenge",
    PathResponse "path_response",
    TransportClose "transport_close",
    ApplicationClose "application_close",
    HandshakeDone "handshake_done",
    // Never counted: RFC 9221 is not implemented. Present for the keys of the connection log, which are H2O's.
    Datagram "datagram",
    AckFrequency "ack_frequency",
    ImmediateAck "immediate_ack",
}

const fn of_limit(direction: Direction) -> FrameKind {
    match direction {
        Direction::Bidirectional => FrameKind::MaxStreamsBidi,
        Direction::Unidirectional => FrameKind::MaxStreamsUni,
    }
}

impl FrameKind {
    const fn of(frame: &Frame<'_>) -> Self {
        match frame {
            Frame::Padding(_) => Self::Padding,
            Frame::Ping(_) => Self::Ping,
            Frame::Ack(_) => Self::Ack,
            Frame::ResetStream(_) => Self::ResetStream,
            Frame::StopSending(_) => Self::StopSending,
            Frame::Crypto(_) => Self::Crypto,
            Frame::NewToken(_) => Self::NewToken,
            Frame::Stream(_) => Self::Stream,
            Frame::MaxData(_) => Self::MaxData,
            Frame::MaxStreamData(_) => Self::MaxStreamData,
            Frame::MaxStreams(limit) => of_limit(limit.direction),
            Frame::DataBlocked(_) => Self::DataBlocked,
            Frame::StreamDataBlocked(_) => Self::StreamDataBlocked,
            Frame::StreamsBlocked(_) => Self::StreamsBlocked,
            Frame::NewConnectionId(_) => Self::NewConnectionId,
            Frame::RetireConnectionId(_) => Self::RetireConnectionId,
            Frame::PathChallenge(_) => Self::PathChallenge,
            Frame::PathResponse(_) => Self::PathResponse,
            Frame::ConnectionClose(close) => match close.cause {
                CloseCause::Transport { .. } => Self::TransportClose,
                CloseCause::Application { .. } => Self::ApplicationClose,
            },
            Frame::HandshakeDone(_) => Self::HandshakeDone,
            Frame::AckFrequency(_) => Self::AckFrequency,
            Frame::ImmediateAck(_) => Self::ImmediateAck,
        }
    }

    /// The type of the frame of this receipt; `None` for path frames, which are two types.
    pub(crate) const fn of_receipt(receipt: &Receipt) -> Option<Self> {
        Some(match receipt {
            Receipt::Crypto { .. } => Self::Crypto,
            Receipt::Stream { .. } => Self::Stream,
            Receipt::ResetStream(_) => Self::ResetStream,
            Receipt::StopSending(_) => Self::StopSending,
            Receipt::MaxData => Self::MaxData,
            Receipt::MaxStreamData(_) => Self::MaxStreamData,
            Receipt::MaxStreams(direction) => of_limit(*direction),
            Receipt::DataBlocked => Self::DataBlocked,
            Receipt::StreamDataBlocked(_) => Self::StreamDataBlocked,
            Receipt::StreamsBlocked(_) => Self::StreamsBlocked,
            Receipt::NewConnectionId(_) => Self::NewConnectionId,
            Receipt::RetireConnectionId(_) => Self::RetireConnectionId,
            Receipt::NewToken => Self::NewToken,
            Receipt::HandshakeDone => Self::HandshakeDone,
            Receipt::Ack { .. } => Self::Ack,
            Receipt::AckFrequency(_) => Self::AckFrequency,
            Receipt::Path => return None,
            Receipt::Ping => Self::Ping,
        })
    }
}

impl FrameCounts {
    /// The number of frames of this type; for padding, the number of bytes.
    pub fn of(&self, kind: FrameKind) -> u64 {
        let high = self.high.as_ref().map_or(0, |high| high[kind as usize]);
        u64::from(high) << 32 | u64::from(self.low[kind as usize])
    }

    pub(crate) fn add(&mut self, kind: FrameKind, count: u64) {
        let low = &mut self.low[kind as usize];
        let sum = u64::from(*low).saturating_add(count);
        *low = sum as u32;
        if sum >> 32 != 0 {
            self.carry(kind, sum >> 32);
        }
    }

    #[cold]
    fn carry(&mut self, kind: FrameKind, carry: u64) {
        let high = &mut self.high.get_or_insert_default()[kind as usize];
        *high = u32::try_from(carry).map_or(u32::MAX, |carry| high.saturating_add(carry));
    }

    pub(crate) fn count(&mut self, frame: &Frame<'_>) {
        let count = match frame {
            Frame::Padding(padding) => padding.len.get() as u64,
            _ => 1,
        };
        self.add(FrameKind::of(frame), count);
    }
}
