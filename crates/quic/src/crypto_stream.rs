//! The CRYPTO data of one packet number space, in both directions (RFC 9000 §7.5, §19.6).
//!
//! Sent data is kept until it is acknowledged; a handshake is small. Received data that is out of order is kept up to
//! [`RECEIVE_MAX`] bytes, overlaps included; a peer that sends more is closed with `CRYPTO_BUFFER_EXCEEDED`.

use std::collections::BTreeMap;

use lastbyte_wire::{BufferFull, Encode, VarInt, Writer, frame::Crypto};

use crate::{receipt::Receipt, space::SpaceState};

/// How far the peer's data may be ahead of the read offset, and how many bytes of it are kept: RFC 9000 §7.5 requires
/// at least 4096; a certificate chain with post-quantum signatures, some 20 KB in reordered packets, needs more.
pub const RECEIVE_MAX: u64 = 32 * 1024;

/// How many bytes of CRYPTO data in 1-RTT packets are read: a server's tickets. Each costs a client the derivation of a key. What
/// is beyond is discarded (RFC 9000 §7.5).
pub const POST_HANDSHAKE_MAX: u64 = 64 * 1024;

/// The CRYPTO data of one space.
#[derive(Clone, Debug)]
pub struct CryptoStream {
    /// Data to be sent, from `freed` on.
    to_send: Vec<u8>,
    /// Bytes written, acknowledged and freed.
    freed: u64,
    /// Bytes sent at least once.
    sent: usize,
    /// Ranges that were lost and must be sent again, ascending: start and end.
    lost: BTreeMap<u64, u64>,
    /// Ranges acknowledged beyond `acked_up_to`: start and end.
    acked: BTreeMap<u64, u64>,
    acked_up_to: u64,
    /// Received beyond `read`.
    received: BTreeMap<u64, Vec<u8>>,
    /// The number of bytes in them.
    held: u64,
    read: u64,
}

/// More out-of-order data than is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoBufferExceeded;

impl SpaceState for CryptoStream {
    fn unused() -> &'static Self {
        static UNUSED: CryptoStream = CryptoStream::new();
        &UNUSED
    }
}

impl Default for CryptoStream {
    fn default() -> Self {
        Self::new()
    }
}

impl CryptoStream {
    /// A stream without data.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            to_send: Vec::new(),
            freed: 0,
            sent: 0,
            lost: BTreeMap::new(),
            acked: BTreeMap::new(),
            acked_up_to: 0,
            received: BTreeMap::new(),
            held: 0,
            read: 0,
        }
    }

    // ---- sending --------------------------------------------------------------------------------------------------

    /// The buffer to which the handshake appends its output.
    pub fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.to_send
    }

    /// Bytes sent at least once.
    pub const fn sent_bytes(&self) -> u64 {
        self.sent as u64
    }

    /// Whether anything is pending.
    pub fn wants_to_send(&self) -> bool {
        self.sent_bytes() < self.end() || !self.lost.is_empty()
    }

    /// Sends all unacknowledged data again, since a probe must carry something (RFC 9002 §6.2.4).
    pub fn send_again(&mut self) {
        let sent = self.sent as u64;
        if self.acked_up_to < sent {
            self.on_lost(self.acked_up_to, sent - self.acked_up_to);
        }
    }

    /// Writes CRYPTO frames while there is room, lost data first.
    pub fn write_frames(&mut self, writer: &mut Writer<'_>, receipts: &mut impl FnMut(Receipt)) {
        while let Some((start, end)) = self.next_to_send() {
            let offset = VarInt::saturating(start);
            let Some(room) = Crypto::data_len_max(offset, writer.remaining()) else {
                return;
            };
            let len = room.min(usize::try_from(end - start).unwrap_or(room));
            let from = usize::try_from(start - self.freed).unwrap_or(usize::MAX);
            let Some(data) = self.to_send.get(from..from.saturating_add(len)) else {
                return;
            };
            if (Crypto { offset, data }).encode(writer) == Err(BufferFull) {
                return;
            }
            self.on_written(start, end, len as u64);
            receipts(Receipt::Crypto {
                offset: start,
                len: len as u16,
            });
        }
    }

    fn next_to_send(&self) -> Option<(u64, u64)> {
        if let Some((start, end)) = self.lost.first_key_value() {
            return Some((*start, *end));
        }
        let (sent, end) = (self.sent_bytes(), self.end());
        (sent < end).then_some((sent, end))
    }

    /// After all data written so far.
    const fn end(&self) -> u64 {
        self.freed + self.to_send.len() as u64
    }

    fn on_written(&mut self, start: u64, end: u64, len: u64) {
        if self.lost.remove(&start).is_some() {
            if start + len < end {
                self.lost.insert(start + len, end);
            }
        } else {
            self.sent += usize::try_from(len).unwrap_or(0);
        }
    }

    /// Data was acknowledged.
    pub fn on_acked(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        if offset <= self.acked_up_to {
            // In order, as usual: nothing to store.
            self.acked_up_to = self.acked_up_to.max(end);
        } else {
            insert_range(&mut self.acked, offset, end);
        }
        while let Some((start, end)) = self.acked.first_key_value().map(|(s, e)| (*s, *e))
            && start <= self.acked_up_to
        {
            self.acked_up_to = self.acked_up_to.max(end);
            self.acked.remove(&start);
        }
        if self.acked_up_to == self.end() && self.lost.is_empty() {
            self.freed = self.end();
            self.to_send = Vec::new();
        }
    }

    /// Data was lost: it is sent again, except for what was acknowledged meanwhile.
    pub fn on_lost(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let mut start = offset.max(self.acked_up_to);
        let acked: Vec<(u64, u64)> = self.acked.range(..end).map(|(s, e)| (*s, *e)).collect();
        for (acked_start, acked_end) in acked {
            if start < acked_start {
                insert_range(&mut self.lost, start, acked_start);
            }
            start = start.max(acked_end);
        }
        if start < end {
            insert_range(&mut self.lost, start, end);
        }
    }

    // ---- receiving ------------------------------------------------------------------------------------------------

    /// Data was received. `read` is called with the data now in order, each byte once. Returns whether some of it was
    /// kept or read.
    ///
    /// # Errors
    ///
    /// Returns the error of `read`, or that the data is too far ahead.
    pub fn on_received<E: From<CryptoBufferExceeded>>(
        &mut self,
        offset: u64,
        data: &[u8],
        read: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let end = offset.saturating_add(data.len() as u64);
        if end <= self.read {
            return Ok(false);
        }
        if end > self.read + RECEIVE_MAX {
            return Err(CryptoBufferExceeded.into());
        }
        if offset > self.read {
            // Of two pieces at the same offset the longer one is kept. Pieces may overlap.
            let known = self.received.get(&offset).map_or(0, Vec::len);
            let is_longer = known < data.len();
            if is_longer {
                let held = self.held - known as u64 + data.len() as u64;
                if self.received.len() >= PIECES_MAX || held > RECEIVE_MAX {
                    return Err(CryptoBufferExceeded.into());
                }
                self.held = held;
                self.received.insert(offset, data.to_vec());
            }
            return Ok(is_longer);
        }
        self.take(offset, data, read)?;
        while let Some(entry) = self.received.first_entry()
            && *entry.key() <= self.read
        {
            let (offset, data) = entry.remove_entry();
            self.held -= data.len() as u64;
            self.take(offset, &data, read)?;
        }
        Ok(true)
    }

    fn take<E>(
        &mut self,
        offset: u64,
        data: &[u8],
        read: &mut impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let known = usize::try_from(self.read - offset).unwrap_or(usize::MAX);
        if let Some(news) = data.get(known..).filter(|news| !news.is_empty()) {
            self.read += news.len() as u64;
            read(news)?;
        }
        Ok(())
    }
}

/// Maximum number of out-of-order pieces: a handshake has a dozen.
const PIECES_MAX: usize = 128;

/// Adds `start..end` to a set of ranges, joining those that touch.
fn insert_range(ranges: &mut BTreeMap<u64, u64>, mut start: u64, mut end: u64) {
    while let Some((other_start, other_end)) =
        ranges.range(..=end).next_back().map(|(s, e)| (*s, *e))
        && other_end >= start
    {
        ranges.remove(&other_start);
        start = start.min(other_start);
        end = end.max(other_end);
    }
    ranges.insert(start, end);
}

#[cfg(test)]
mod tests;
