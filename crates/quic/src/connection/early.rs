//! Packets received before the keys to open them (RFC 9000 §5.2.2, RFC 9001 §4.1.4, §5.7).
//!
//! A lost or late datagram during the handshake would cost an extra round trip if the packets that depend on it were
//! dropped. A few of them are buffered and processed again when new keys are available.

use std::collections::VecDeque;

use crate::ack::Ecn;

/// Buffered packets, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct EarlyPackets {
    packets: VecDeque<EarlyPacket>,
    bytes: usize,
}

/// A packet as received.
#[derive(Debug)]
pub(super) struct EarlyPacket {
    pub(super) bytes: Vec<u8>,
    pub(super) ecn: Ecn,
}

impl EarlyPackets {
    /// Maximum number of buffered packets: a first flight of 0-RTT and a few more.
    pub(super) const COUNT_MAX: usize = 32;
    /// Maximum number of buffered bytes.
    pub(super) const BYTES_MAX: usize = 48 << 10;

    /// Buffers a packet. Returns how many are buffered now; `None` if there was no room.
    pub(super) fn keep(&mut self, packet: &[u8], ecn: Ecn) -> Option<usize> {
        if self.packets.len() >= Self::COUNT_MAX || self.bytes + packet.len() > Self::BYTES_MAX {
            return None;
        }
        self.bytes += packet.len();
        self.packets.push_back(EarlyPacket {
            bytes: packet.to_vec(),
            ecn,
        });
        Some(self.packets.len())
    }

    /// Removes and returns all packets.
    pub(super) fn take(&mut self) -> VecDeque<EarlyPacket> {
        self.bytes = 0;
        std::mem::take(&mut self.packets)
    }
}
