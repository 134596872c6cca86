//! The connection IDs that we issue to the peer (RFC 9000 §5.1.1).
//!
//! As many as the peer stores, and at most [`LocalIds::IDS_MAX`], are issued in advance. Retired IDs are replaced with
//! the next packet, at most once a round trip: a peer that retires everything it receives causes at most
//! [`LocalIds::IDS_MAX`] new IDs a round trip.

use core::time::Duration;
use std::collections::VecDeque;

use lastbyte_congestion::Time;
use lastbyte_wire::{BufferFull, ConnectionId, Encode, VarInt, Writer, frame::NewConnectionId};

use super::ConnectionIdGenerator;
use crate::receipt::Receipt;

/// The IDs issued to the peer.
#[derive(Clone, Debug)]
pub struct LocalIds {
    ids: VecDeque<Issued>,
    next_sequence: u64,
    /// The peer's `active_connection_id_limit`.
    limit: usize,
    /// When retired IDs may be replaced; `None` for at once.
    refill_at: Option<Time>,
    changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Issued {
    sequence: u64,
    id: ConnectionId,
    /// Whether a `NEW_CONNECTION_ID` frame must be sent.
    is_to_send: bool,
    /// Whether it was sent, so that the peer may have it.
    was_sent: bool,
    /// Whether the peer is known to have it.
    is_known: bool,
}

/// An invalid `RETIRE_CONNECTION_ID` frame (RFC 9000 §19.16): `PROTOCOL_VIOLATION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetireError {
    /// A sequence number that was never sent.
    NeverSent,
    /// The ID to which the frame's own packet was sent.
    InUse,
}

impl LocalIds {
    /// Maximum number of IDs issued, even if the peer accepts more.
    pub const IDS_MAX: usize = 4;

    /// The ID of the handshake, of sequence number 0.
    #[must_use]
    pub fn new(handshake: ConnectionId) -> Self {
        let first = Issued {
            sequence: 0,
            id: handshake,
            is_to_send: false,
            was_sent: true,
            is_known: true,
        };
        Self {
            ids: VecDeque::from([first]),
            next_sequence: 1,
            limit: 1,
            refill_at: None,
            changes: 0,
        }
    }

    /// The preferred address included an ID, of sequence number 1 (RFC 9000 §5.1.1).
    pub fn add_of_preferred_address(&mut self, id: ConnectionId) {
        self.ids.push_back(Issued {
            sequence: self.next_sequence,
            id,
            is_to_send: false,
            was_sent: true,
            is_known: true,
        });
        self.next_sequence += 1;
        self.changes += 1;
    }

    /// The handshake is complete, and the peer stores this many IDs.
    pub fn start(&mut self, active_connection_id_limit: u64) {
        let limit = usize::try_from(active_connection_id_limit).unwrap_or(usize::MAX);
        self.limit = limit.min(Self::IDS_MAX);
    }

    /// Whether the peer may receive further IDs.
    fn is_short(&self) -> bool {
        // An empty ID means that this side uses none (§5.1.1).
        self.ids.len() < self.limit && self.ids.front().is_none_or(|issued| !issued.id.is_empty())
    }

    fn fill(&mut self, generator: &mut dyn ConnectionIdGenerator) {
        while self.ids.len() < self.limit {
            self.ids.push_back(Issued {
                sequence: self.next_sequence,
                id: generator.generate(),
                is_to_send: true,
                was_sent: false,
                is_known: false,
            });
            self.next_sequence += 1;
            self.changes += 1;
        }
    }

    /// When [`LocalIds::on_timeout`] is due.
    pub fn deadline(&self) -> Option<Time> {
        self.refill_at.filter(|_| self.is_short())
    }

    /// Handles expired timers.
    pub fn on_timeout(&mut self, now: Time) {
        self.refill_at = self.refill_at.filter(|at| *at > now);
    }

    /// Frees memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.ids.shrink_to_fit();
    }

    /// The IDs that identify this connection.
    pub fn iter(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.ids.iter().map(|issued| issued.id)
    }

    /// Counter of changes of the IDs.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// The peer retires an ID, in a packet that was sent to `destination`. It is replaced later. Returns the retired
    /// ID; `None` for one retired before.
    ///
    /// # Errors
    ///
    /// Returns [`RetireError`] if the frame is invalid.
    pub fn on_retire(
        &mut self,
        sequence: u64,
        destination: &[u8],
    ) -> Result<Option<ConnectionId>, RetireError> {
        if sequence >= self.next_sequence {
            return Err(RetireError::NeverSent);
        }
        let Some(at) = self
            .ids
            .iter()
            .position(|issued| issued.sequence == sequence)
        else {
            return Ok(None);
        };
        match self.ids.get(at) {
            Some(issued) if issued.id.as_slice() == destination => return Err(RetireError::InUse),
            Some(issued) if !issued.was_sent => return Err(RetireError::NeverSent),
            _ => {}
        }
        let retired = self.ids.remove(at).map(|issued| issued.id);
        self.changes += 1;
        Ok(retired)
    }

    /// Whether `NEW_CONNECTION_ID` frames wait to be sent.
    pub fn wants_to_send(&self) -> bool {
        (self.refill_at.is_none() && self.is_short())
            || self.ids.iter().any(|issued| issued.is_to_send)
    }

    /// Issues the IDs that the peer may receive, if none were issued for a `round_trip`, and writes as many
    /// `NEW_CONNECTION_ID` frames as fit.
    pub fn write_frames(
        &mut self,
        now: Time,
        round_trip: Duration,
        writer: &mut Writer<'_>,
        generator: &mut dyn ConnectionIdGenerator,
        receipts: &mut impl FnMut(Receipt),
    ) {
        self.on_timeout(now);
        if self.refill_at.is_none() && self.is_short() {
            self.fill(generator);
            self.refill_at = Some(now + round_trip);
        }
        for issued in self.ids.iter_mut().filter(|issued| issued.is_to_send) {
            let frame = NewConnectionId::new(
                VarInt::saturating(issued.sequence),
                VarInt::ZERO,
                issued.id,
                generator.reset_token(&issued.id),
            );
            let Some(frame) = frame else { continue };
            if frame.encode(writer) == Err(BufferFull) {
                return;
            }
            issued.is_to_send = false;
            issued.was_sent = true;
            receipts(Receipt::NewConnectionId(issued.sequence));
        }
    }

    /// A packet with the frame of this sequence number was acknowledged.
    pub fn on_acked(&mut self, sequence: u64) {
        for issued in &mut self.ids {
            issued.is_known |= issued.sequence == sequence;
        }
    }

    /// Whether the peer has an unused ID of ours, so that it can respond to another address (RFC 9000 §9.5).
    pub fn peer_can_change(&self) -> bool {
        let is_empty = self.ids.front().is_some_and(|issued| issued.id.is_empty());
        is_empty || self.ids.iter().filter(|issued| issued.is_known).count() > 1
    }

    /// Sends all unacknowledged IDs again.
    pub fn send_again(&mut self) {
        for issued in &mut self.ids {
            issued.is_to_send |= !issued.is_known;
        }
    }

    /// A packet with the frame of this sequence number was lost.
    pub fn on_lost(&mut self, sequence: u64) {
        if let Some(issued) = self
            .ids
            .iter_mut()
            .find(|issued| issued.sequence == sequence)
        {
            issued.is_to_send = true;
        }
    }
}

#[cfg(test)]
mod tests;
