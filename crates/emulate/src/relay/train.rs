//! Datagrams that are due together and leave in one system call.
//!
//! # Decisions
//!
//! - *Only what is due is joined*: no datagram waits for another one.
//! - *A size is sent alone first.* If the datagrams of a joined call exceed the interface's MTU, the kernel reports the error
//!   with which it also rejects GSO and ECN marks, and the socket then does without both. So a probe of the path MTU must not
//!   be joined.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lastbyte_udp::{Ecn, SendError};

use crate::paths::{Arrival, Direction};

#[cfg(test)]
mod tests;

/// The maximum number of bytes: less than the kernel accepts in one call.
const BYTES_MAX: usize = 65_000;

/// Datagrams of one client, direction, ECN field and length. The last one may be shorter.
#[derive(Debug)]
pub(super) struct Train {
    /// The number of the client.
    pub(super) client: u64,
    /// The client's address.
    pub(super) address: SocketAddr,
    pub(super) direction: Direction,
    pub(super) ecn: Ecn,
    segment_len: usize,
    bytes: Vec<u8>,
}

impl Train {
    /// A train without datagrams.
    pub(super) const fn new() -> Self {
        Self {
            client: 0,
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            direction: Direction::Up,
            ecn: Ecn::NotEct,
            segment_len: 0,
            bytes: Vec::new(),
        }
    }

    /// Appends a datagram. Returns `false`, and leaves the train as it is, if the datagram must be sent apart.
    pub(super) fn push(&mut self, arrival: &Arrival) -> bool {
        let len = arrival.bytes.len();
        if self.bytes.is_empty() {
            self.client = arrival.client;
            self.address = arrival.address;
            self.direction = arrival.direction;
            self.ecn = arrival.ecn;
            self.segment_len = len;
        } else if self.client != arrival.client
            || self.direction != arrival.direction
            || self.ecn != arrival.ecn
            || len > self.segment_len
            || !self.bytes.len().is_multiple_of(self.segment_len)
            || self.bytes.len() + len > BYTES_MAX
        {
            return false;
        }
        self.bytes.extend_from_slice(&arrival.bytes);
        true
    }

    /// Sends all datagrams with `send`, which receives them and their length, and empties the train. `proven` is the largest
    /// datagram known to pass the interface. Returns the number of datagrams that could not be sent.
    pub(super) fn send(
        &mut self,
        proven: &mut usize,
        mut send: impl FnMut(&[u8], usize) -> Result<(), SendError>,
    ) -> usize {
        let segment_len = self.segment_len.max(1);
        let mut unsent = 0;
        let mut rest = self.bytes.as_slice();
        while !rest.is_empty() {
            let is_proven = segment_len <= *proven;
            let len = if is_proven {
                rest.len()
            } else {
                segment_len.min(rest.len())
            };
            let (now, later) = rest.split_at(len);
            rest = later;
            match send(now, segment_len) {
                Ok(()) => *proven = (*proven).max(segment_len.min(len)),
                Err(SendError::Full { sent }) => {
                    unsent += now.len().saturating_sub(sent).div_ceil(segment_len);
                }
                Err(_) => unsent += now.len().div_ceil(segment_len),
            }
        }
        self.clear();
        unsent
    }

    /// Drops all datagrams.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}
