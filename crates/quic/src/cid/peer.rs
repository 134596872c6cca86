//! The connection IDs that the peer issued to us (RFC 9000 §5.1.2, §19.15).
//!
//! One is in use; others are spare, for new paths. IDs that the peer retires, or that are no longer used, are reported
//! in `RETIRE_CONNECTION_ID` frames, which wait in a bounded queue: a connection whose peer causes retirements faster
//! than it acknowledges them is closed (§5.1.2).

use std::collections::VecDeque;

use lastbyte_wire::{
    BufferFull, ConnectionId, Encode, StatelessResetToken, TransportError, VarInt, Writer,
    frame::{NewConnectionId, RetireConnectionId},
};

use crate::receipt::Receipt;

/// The IDs that the peer issued.
#[derive(Clone, Debug)]
pub struct PeerIds {
    current: Known,
    /// Ascending by sequence number.
    spare: VecDeque<Known>,
    /// In use on other paths than the current one.
    reserved: Vec<Known>,
    retire_prior_to: u64,
    /// Sequence numbers to be retired, and whether the frame was sent and awaits its acknowledgment.
    to_retire: VecDeque<(u64, bool)>,
    /// The last ones that the peer knows to be retired: at most [`RETIRED_MAX`].
    retired: VecDeque<u64>,
    /// Our `active_connection_id_limit`.
    limit: usize,
    changes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    sequence: u64,
    id: ConnectionId,
    reset_token: Option<StatelessResetToken>,
}

/// Why a `NEW_CONNECTION_ID` frame is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerIdError {
    /// The connection ID of the handshake is empty, so no further IDs are permitted (RFC 9000 §19.15).
    Empty,
    /// A sequence number was repeated with another ID, or an ID with another sequence number (§19.15).
    Contradiction,
    /// More than our `active_connection_id_limit` (§5.1.1).
    TooMany,
    /// Too many unacknowledged retirements (§5.1.2).
    TooManyToRetire,
}

impl PeerIdError {
    /// The error code of the close.
    pub const fn transport_error(self) -> TransportError {
        match self {
            Self::Empty | Self::Contradiction => TransportError::PROTOCOL_VIOLATION,
            Self::TooMany | Self::TooManyToRetire => TransportError::CONNECTION_ID_LIMIT_ERROR,
        }
    }

    /// The reason phrase of the close.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Empty => "NEW_CONNECTION_ID for a connection with an empty connection ID",
            Self::Contradiction => "NEW_CONNECTION_ID contradicts an earlier one",
            Self::TooMany => "more connection IDs than active_connection_id_limit",
            Self::TooManyToRetire => "more connection IDs to retire than are acknowledged",
        }
    }
}

impl PeerIds {
    /// The ID of the handshake, of sequence number 0; `limit` is our `active_connection_id_limit`, at least 2.
    #[must_use]
    pub fn new(handshake: ConnectionId, limit: usize) -> Self {
        Self {
            current: Known {
                sequence: 0,
                id: handshake,
                reset_token: None,
            },
            spare: VecDeque::new(),
            reserved: Vec::new(),
            retire_prior_to: 0,
            to_retire: VecDeque::new(),
            retired: VecDeque::new(),
            limit: limit.max(2),
            changes: 0,
        }
    }

    /// The ID in use.
    pub const fn current(&self) -> &ConnectionId {
        &self.current.id
    }

    /// A server chose its own ID in its first Initial or Retry packet (RFC 9000 §7.2).
    pub fn replace_handshake_id(&mut self, id: ConnectionId) {
        self.current.id = id;
    }

    /// The reset token of the handshake's ID: a transport parameter of servers.
    pub fn set_reset_token(&mut self, token: StatelessResetToken) {
        self.current.reset_token = Some(token);
        self.changes += 1;
    }

    /// The reset tokens of the IDs in use and spare.
    pub fn reset_tokens(&self) -> impl Iterator<Item = StatelessResetToken> + '_ {
        self.all().filter_map(|known| known.reset_token)
    }

    /// Frees memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.spare.shrink_to_fit();
        self.reserved.shrink_to_fit();
        self.to_retire.shrink_to_fit();
        self.retired.shrink_to_fit();
    }

    /// Counter of changes of the tokens.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// A `NEW_CONNECTION_ID` frame was received. Returns the ID to use from now on, if the peer retires the one in use.
    ///
    /// # Errors
    ///
    /// Returns [`PeerIdError`] if the frame is invalid.
    pub fn on_new(&mut self, frame: &NewConnectionId) -> Result<Option<ConnectionId>, PeerIdError> {
        let new = Known {
            sequence: frame.sequence().get(),
            id: frame.connection_id(),
            reset_token: Some(frame.reset_token()),
        };
        if self.current.id.is_empty() {
            return Err(PeerIdError::Empty);
        }
        if self.check_known(&new)? {
            return Ok(None);
        }
        let was_retired = new.sequence < self.retire_prior_to
            || self
                .to_retire
                .iter()
                .any(|(sequence, _)| *sequence == new.sequence);
        if self.retired.contains(&new.sequence) {
            // A retransmitted frame, of an ID that was retired since.
        } else if was_retired {
            // §19.15: retired as soon as it arrives.
            self.retire(new.sequence)?;
        } else {
            let at = self
                .spare
                .partition_point(|known| known.sequence < new.sequence);
            self.spare.insert(at, new);
            self.changes += 1;
        }
        self.retire_prior_to = self.retire_prior_to.max(frame.retire_prior_to().get());
        while let Some(known) = self.spare.front().copied()
            && known.sequence < self.retire_prior_to
        {
            self.spare.pop_front();
            self.retire(known.sequence)?;
        }
        while let Some(at) = self
            .reserved
            .iter()
            .position(|known| known.sequence < self.retire_prior_to)
        {
            let known = self.reserved.remove(at);
            self.retire(known.sequence)?;
        }
        let moved = if self.current.sequence < self.retire_prior_to {
            self.move_on()?
        } else {
            None
        };
        if self.spare.len() + self.reserved.len() + 1 > self.limit {
            return Err(PeerIdError::TooMany);
        }
        Ok(moved)
    }

    /// Whether the frame repeats a known ID.
    fn check_known(&self, new: &Known) -> Result<bool, PeerIdError> {
        for known in self.all() {
            let is_same_id = known.id == new.id;
            let is_same_sequence = known.sequence == new.sequence;
            if is_same_id != is_same_sequence {
                return Err(PeerIdError::Contradiction);
            }
            if is_same_id {
                let has_other_token = known
                    .reset_token
                    .is_some_and(|token| Some(token) != new.reset_token);
                return if has_other_token {
                    Err(PeerIdError::Contradiction)
                } else {
                    Ok(true)
                };
            }
        }
        Ok(false)
    }

    /// Switches to a spare ID and retires the previous one: for a new path, or because the peer requested it (§9.5).
    /// Returns the new one; `None` if there is no spare ID.
    ///
    /// # Errors
    ///
    /// Returns [`PeerIdError`] if too many retirements are pending.
    pub fn move_on(&mut self) -> Result<Option<ConnectionId>, PeerIdError> {
        let Some(next) = self.spare.pop_front() else {
            return Ok(None);
        };
        self.retire(self.current.sequence)?;
        self.current = next;
        Ok(Some(next.id))
    }

    /// The preferred address included an ID, of sequence number 1 (RFC 9000 §9.6.2).
    pub fn add_of_preferred_address(&mut self, id: ConnectionId, token: StatelessResetToken) {
        self.spare.push_front(Known {
            sequence: 1,
            id,
            reset_token: Some(token),
        });
        self.changes += 1;
    }

    /// Reserves an ID for another path and returns its sequence number (RFC 9000 §9.5). `None` if there is no spare ID.
    /// If the peer uses empty IDs, none is reserved and none is needed.
    pub fn reserve(&mut self) -> Option<u64> {
        if self.current.id.is_empty() {
            return Some(self.current.sequence);
        }
        let known = self.spare.pop_front()?;
        self.reserved.push(known);
        Some(known.sequence)
    }

    /// A reserved ID, or the one in use; `None` if the peer has retired it since.
    pub fn reserved(&self, sequence: u64) -> Option<&ConnectionId> {
        let in_use = self.reserved.iter().chain([&self.current]);
        let mut matching = in_use.filter(|known| known.sequence == sequence);
        matching.next().map(|known| &known.id)
    }

    /// The path of a reserved ID becomes the current one; the previous ID is reserved instead. Returns its sequence
    /// number.
    pub fn exchange(&mut self, sequence: u64) -> u64 {
        let before = self.current.sequence;
        if let Some(reserved) = self
            .reserved
            .iter_mut()
            .find(|known| known.sequence == sequence)
        {
            core::mem::swap(reserved, &mut self.current);
        }
        before
    }

    /// The path of a reserved ID was removed.
    ///
    /// # Errors
    ///
    /// Returns [`PeerIdError`] if too many retirements are pending.
    pub fn release(&mut self, sequence: u64) -> Result<(), PeerIdError> {
        if let Some(at) = self
            .reserved
            .iter()
            .position(|known| known.sequence == sequence)
        {
            self.reserved.remove(at);
            self.retire(sequence)?;
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = &Known> {
        self.spare
            .iter()
            .chain(&self.reserved)
            .chain([&self.current])
    }

    fn retire(&mut self, sequence: u64) -> Result<(), PeerIdError> {
        if self.to_retire.iter().any(|(known, _)| *known == sequence) {
            return Ok(());
        }
        // §5.1.2 requires at least twice the limit.
        if self.to_retire.len() >= self.limit * 3 {
            return Err(PeerIdError::TooManyToRetire);
        }
        self.to_retire.push_back((sequence, false));
        self.changes += 1;
        Ok(())
    }

    /// Whether `RETIRE_CONNECTION_ID` frames wait to be sent.
    pub fn wants_to_send(&self) -> bool {
        self.to_retire.iter().any(|(_, is_sent)| !is_sent)
    }

    /// Writes as many `RETIRE_CONNECTION_ID` frames as fit.
    pub fn write_frames(&mut self, writer: &mut Writer<'_>, receipts: &mut impl FnMut(Receipt)) {
        for (sequence, is_sent) in self.to_retire.iter_mut().filter(|(_, is_sent)| !*is_sent) {
            let frame = RetireConnectionId {
                sequence: VarInt::saturating(*sequence),
            };
            if frame.encode(writer) == Err(BufferFull) {
                return;
            }
            *is_sent = true;
            receipts(Receipt::RetireConnectionId(*sequence));
        }
    }

    /// The frame for this sequence number was acknowledged.
    pub fn on_acked(&mut self, sequence: u64) {
        self.to_retire.retain(|(known, _)| *known != sequence);
        if self.retired.len() >= RETIRED_MAX {
            self.retired.pop_front();
        }
        self.retired.push_back(sequence);
    }

    /// A packet with the frame for this sequence number was lost.
    pub fn on_lost(&mut self, sequence: u64) {
        for (_, is_sent) in self
            .to_retire
            .iter_mut()
            .filter(|(known, _)| *known == sequence)
        {
            *is_sent = false;
        }
    }
}

/// A frame that is late by a round trip or two concerns one of these.
const RETIRED_MAX: usize = 32;

#[cfg(test)]
mod tests;
