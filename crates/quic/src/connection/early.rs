//! Packets that came before the keys to open them (RFC 9000 §5.2.2, RFC 9001 §4.1.4, §5.7).
//!
//! A datagram lost or late at the start would cost a round trip more if what came before its time were dropped. A few
//! packets are kept, and handed in again when there are new keys.

use std::collections::VecDeque;

use crate::ack::EcnCodepoint;

/// Packets kept, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct EarlyPackets {
    packets: VecDeque<EarlyPacket>,
    bytes: usize,
}

/// A packet as it came.
#[derive(Debug)]
pub(super) struct EarlyPacket {
    pub(super) bytes: Vec<u8>,
    pub(super) ecn: EcnCodepoint,
}

impl EarlyPackets {
    /// Packets kept at most: a first flight of 0-RTT, and some.
    pub(super) const COUNT_MAX: usize = 32;
    /// Bytes kept at most.
    pub(super) const BYTES_MAX: usize = 48 << 10;

    /// Keeps a packet. Returns how many wait now; `None` if there was no room for it.
    pub(super) fn keep(&mut self, packet: &[u8], ecn: EcnCodepoint) -> Option<usize> {
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

    /// Takes all.
    pub(super) fn take(&mut self) -> VecDeque<EarlyPacket> {
        self.bytes = 0;
        std::mem::take(&mut self.packets)
    }
}
