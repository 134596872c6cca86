//! 0-RTT datagrams received before the Initial packet of their connection (RFC 9000 §5.2.2, RFC 9001 §5.7).
//!
//! Owns a few of them, in a ring; they can be opened only with keys from the Initial packet.
//!
//! # Decisions
//!
//! - *The oldest is replaced by the newest*, so that no timer is needed; a flood of the ring only makes others'
//!   datagrams as lost as they would be without it.
//! - *They are stored by address and destination connection ID*, like the Initial packet that they wait for: no other
//!   connection receives them.

use std::collections::VecDeque;

use super::demux::InitialRoute;

/// Buffered datagrams, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct EarlyDatagrams {
    pub(super) waiting: VecDeque<(InitialRoute, Vec<u8>)>,
}

impl EarlyDatagrams {
    /// Maximum number of datagrams, of all clients.
    pub(super) const COUNT_MAX: usize = 64;
    /// Maximum number of datagrams of one client: most of a first flight.
    pub(super) const COUNT_MAX_EACH: usize = 8;
    /// A longer datagram is not buffered: together with the count this bounds the memory to 96 kB.
    pub(super) const LEN_MAX: usize = 1500;

    /// Buffers a datagram. False if it is too long, or the client has reached its limit.
    pub(super) fn keep(&mut self, route: InitialRoute, datagram: &[u8]) -> bool {
        let of_client = self.waiting.iter().filter(|(other, _)| *other == route);
        if datagram.len() > Self::LEN_MAX || of_client.count() >= Self::COUNT_MAX_EACH {
            return false;
        }
        if self.waiting.len() >= Self::COUNT_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back((route, datagram.to_vec()));
        true
    }

    /// Takes the datagrams of a client, in order of arrival.
    pub(super) fn take(&mut self, route: &InitialRoute) -> Vec<Vec<u8>> {
        let mut taken = Vec::new();
        self.waiting.retain_mut(|(other, datagram)| {
            let is_of_client = other == route;
            if is_of_client {
                taken.push(std::mem::take(datagram));
            }
            !is_of_client
        });
        taken
    }
}
