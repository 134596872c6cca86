//! 1-RTT keys and key updates (RFC 9001 §6).
//!
//! Owns the current keys, the next ones, the old key for packets in flight; the key phase bit; the rules for key
//! updates; the AEAD usage limits (§6.6). Updates are initiated only because of the limits, or by the caller.
//!
//! # Which key opens a packet
//!
//! Exactly one key is tried, so that a forged packet costs the same whatever its key phase bit (§6.3, §9.5):
//!
//! | phase bit | packet number | key | if it is authentic |
//! |---|---|---|---|
//! | the current one | any | current | |
//! | the other | below the largest opened with the current key, or none was opened yet, and the old key is available | old | error if the number is above one opened with the current key (§6.4) |
//! | the other | otherwise | next | the peer updated its keys; error if its previous update is not acknowledged (§6.2) |
//!
//! Old packets with numbers above all new ones are tried with the next key, and thus dropped: a compliant peer sends
//! none.
//!
//! # Decisions
//!
//! - *Next keys are derived in advance* ([`OneRttKeys::prepare`]), after the response to the datagram with an update,
//!   so that an update takes no more time than any packet (§6.3).
//! - *Those of the first update* are made ahead once the peer has sent [`PREPARED_FROM`] packets, since most
//!   connections end before any update. A packet with the other key phase that comes earlier, authentic or not, has
//!   them made, once: its time shows the key phase of that one packet, which §6.3 allows.
//! - *The old key is kept for three PTO* from the first packet opened with its successor (§6.5).
//! - *We update at half of the confidentiality limit*, long before late acknowledgments could force a stop.
//! - *Keys of the first generation can be freed* while a connection is idle ([`OneRttKeys::release`]): those of AES-GCM take
//!   more than a kilobyte in each direction.
//! - *The next update waits* three PTO from the acknowledgment of the last one, as §6.5 advises.

use std::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::packet::{FinishedPacket, PacketNumber, Protected};

use super::{Keys, OpenError, Opened, PacketKey, SealError};

mod error_kind;
mod next;
#[cfg(test)]
mod tests;

pub use error_kind::{KeyUpdateErrorKind, NoUpdate};
pub use next::{KeyUpdates, NextKeys};

/// From this packet number of the peer's on, the keys of the first update are made ahead.
const PREPARED_FROM: u64 = 16;
/// The packets reserved for `CONNECTION_CLOSE` and its repetition.
const CLOSING_PACKETS: u64 = 8;

/// The keys of 1-RTT packets.
#[derive(Debug)]
pub struct OneRttKeys {
    /// The current keys. `None` between [`OneRttKeys::release`] and [`OneRttKeys::restore`].
    keys: Option<Keys>,
    /// The limits of each packet key (§6.6).
    confidentiality_limit: u64,
    integrity_limit: u64,
    /// The key before the current one.
    old: Option<Box<OldKey>>,
    /// The keys after the current ones.
    next: Option<Box<NextKeys>>,
    updates: KeyUpdates,
    /// Number of updates so far: its lowest bit is the key phase.
    generation: u64,
    /// Packet numbers of this generation.
    numbers: GenerationNumbers,
    /// Packets sealed with the current key.
    sealed: u64,
    /// Packets that failed authentication, over all generations, and with all other keys of the connection.
    forged: u64,
    handshake_confirmed: bool,
    /// The earliest time of our next update; `None` until a packet of this generation has been acknowledged.
    may_update_from: Option<Time>,
}

#[derive(Debug)]
struct OldKey {
    open: PacketKey,
    /// When to discard it; `None` as long as the peer may still use it.
    until: Option<Time>,
}

/// The packet numbers seen of the current generation.
#[derive(Debug, Default)]
struct GenerationNumbers {
    first_sealed: Option<PacketNumber>,
    smallest_opened: Option<PacketNumber>,
    largest_opened: Option<PacketNumber>,
    /// A packet of this generation acknowledged one of the peer's packets of this generation.
    acknowledged_peer: bool,
}

/// An authentic 1-RTT packet.
#[derive(Debug)]
pub struct OneRttOpened<'a> {
    /// The packet's content.
    pub packet: Opened<'a>,
    /// The generation of its keys, to be passed to [`OneRttKeys::on_ack`] with an ACK frame from it.
    pub generation: u64,
    /// It is the first packet of a key update by the peer. Our keys have been updated too.
    pub updated: bool,
}

/// Which key to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidate {
    Old,
    Current,
    Next,
}

impl OneRttKeys {
    /// The first generation.
    #[must_use]
    pub fn new(keys: Keys, updates: KeyUpdates) -> Self {
        Self {
            confidentiality_limit: keys.seal.packet.confidentiality_limit(),
            integrity_limit: keys.open.packet.integrity_limit(),
            keys: Some(keys),
            old: None,
            next: None,
            updates,
            generation: 0,
            numbers: GenerationNumbers::default(),
            sealed: 0,
            forged: 0,
            handshake_confirmed: false,
            may_update_from: None,
        }
    }

    /// The key phase bit of packets sealed now (RFC 9001 §6).
    pub const fn key_phase(&self) -> bool {
        self.generation & 1 == 1
    }

    /// The number of updates so far.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Frees the current keys, of a connection that is idle, if they are those that the handshake made.
    pub fn release(&mut self) {
        if self.generation == 0 {
            self.keys = None;
        }
    }

    /// Whether the keys were freed and must be restored before the next packet.
    pub const fn is_released(&self) -> bool {
        self.keys.is_none()
    }

    /// Sets the current keys again, which are those of the handshake.
    pub fn restore(&mut self, keys: Keys) {
        if self.generation == 0 {
            self.keys = Some(keys);
        }
    }

    /// Seals a finished packet, whose header has [`Self::key_phase`], and protects its header.
    ///
    /// # Errors
    ///
    /// Returns [`SealError`]; the packet must not be sent. After [`SealError::LimitReached`] no further packet can be
    /// sealed (RFC 9001 §6.6).
    #[inline]
    pub fn protect(
        &mut self,
        number: PacketNumber,
        packet: &FinishedPacket,
        written: &mut [u8],
    ) -> Result<(), SealError> {
        if self.sealed >= self.confidentiality_limit {
            return Err(SealError::LimitReached);
        }
        let keys = self.keys.as_ref().ok_or(SealError::Malformed)?;
        keys.seal.protect(number, packet, written)?;
        self.sealed += 1;
        self.numbers.first_sealed.get_or_insert(number);
        Ok(())
    }

    /// Removes header protection from a packet and opens it, following an update by the peer. `probe_timeout` returns
    /// the current PTO, and is called only if it is needed.
    ///
    /// # Errors
    ///
    /// Returns [`OpenError`] if the packet is not authentic, or is authentic and violates the rules of key updates.
    #[inline]
    pub fn unprotect<'a>(
        &mut self,
        packet: Protected<'a>,
        largest_received: Option<PacketNumber>,
        now: Time,
        probe_timeout: impl FnOnce() -> Duration,
    ) -> Result<OneRttOpened<'a>, OpenError> {
        self.on_timeout(now);
        let keys = self.keys.as_ref().ok_or(OpenError::NotAuthentic)?;
        let mask = keys.open.header.mask(packet.sample());
        let packet = packet.unmask(mask);
        let number = packet.number().expand(largest_received);
        let candidate = self.candidate(packet.key_phase(), number);
        if candidate == Candidate::Next && self.generation == 0 {
            self.make_next();
        }
        let opened = match candidate {
            Candidate::Current => self.keys.as_ref().map(|keys| &keys.open.packet),
            Candidate::Old => self.old.as_ref().map(|old| &old.open),
            Candidate::Next => self.next.as_ref().map(|next| &next.open),
        }
        .ok_or(OpenError::NotAuthentic)
        .and_then(|key| key.open(number, packet.associated_data, packet.payload));
        let Ok(len) = opened else {
            return Err(self.count_forged(1));
        };
        let generation = self
            .on_opened(candidate, number, now, probe_timeout)
            .map_err(OpenError::KeyUpdate)?;
        Ok(OneRttOpened {
            packet: Opened::new(number, packet, len),
            generation,
            updated: candidate == Candidate::Next,
        })
    }

    fn candidate(&self, key_phase: bool, number: PacketNumber) -> Candidate {
        if key_phase == self.key_phase() {
            Candidate::Current
        } else if self.old.is_some() && self.numbers.largest_opened.is_none_or(|l| number < l) {
            Candidate::Old
        } else {
            Candidate::Next
        }
    }

    /// Counts further packets that failed authentication, with any keys of the connection: they share one limit (RFC
    /// 9001 §6.6). Returns the error of the last.
    pub fn count_forged(&mut self, count: u64) -> OpenError {
        self.forged = self.forged.saturating_add(count);
        if self.forged >= self.integrity_limit {
            OpenError::IntegrityLimitReached
        } else {
            OpenError::NotAuthentic
        }
    }

    /// The generation of the packet's keys.
    fn on_opened(
        &mut self,
        candidate: Candidate,
        number: PacketNumber,
        now: Time,
        probe_timeout: impl FnOnce() -> Duration,
    ) -> Result<u64, KeyUpdateErrorKind> {
        match candidate {
            Candidate::Old => {
                if self.numbers.smallest_opened.is_some_and(|s| number > s) {
                    return Err(KeyUpdateErrorKind::OldKeys);
                }
                return Ok(self.generation.saturating_sub(1));
            }
            Candidate::Next => {
                // The peer must only wait for handshake confirmation before its first update (§6), which we cannot
                // check.
                if self.generation > 0 && !self.numbers.acknowledged_peer {
                    return Err(KeyUpdateErrorKind::Consecutive);
                }
                self.advance();
            }
            Candidate::Current => {}
        }
        if self.numbers.smallest_opened.is_none()
            && let Some(old) = &mut self.old
        {
            old.until = Some(now + probe_timeout() * 3);
        }
        let numbers = &mut self.numbers;
        numbers.smallest_opened = Some(numbers.smallest_opened.map_or(number, |s| s.min(number)));
        numbers.largest_opened = numbers.largest_opened.max(Some(number));
        Ok(self.generation)
    }

    /// The handshake is confirmed (RFC 9001 §4.1.2): updates by this side are permitted from now on.
    pub const fn on_handshake_confirmed(&mut self) {
        self.handshake_confirmed = true;
    }

    /// A packet was sent that acknowledges the peer's packets up to `largest`. From then on the peer may update again,
    /// if one of this generation is among them.
    pub fn on_ack_sent(&mut self, largest: PacketNumber) {
        if self.numbers.smallest_opened.is_some_and(|s| largest >= s) {
            self.numbers.acknowledged_peer = true;
        }
    }

    /// An ACK frame newly acknowledged our packets up to `largest`, in a packet of this generation.
    ///
    /// # Errors
    ///
    /// Returns [`KeyUpdateErrorKind`] if the peer violated a rule.
    pub fn on_ack(
        &mut self,
        largest: PacketNumber,
        generation: u64,
        now: Time,
        probe_timeout: Duration,
    ) -> Result<(), KeyUpdateErrorKind> {
        if self.numbers.first_sealed.is_none_or(|f| largest < f) {
            return Ok(());
        }
        if generation < self.generation {
            return Err(KeyUpdateErrorKind::AcknowledgedWithOldKeys);
        }
        if self.may_update_from.is_none() {
            let pause = if self.generation == 0 {
                Duration::ZERO
            } else {
                probe_timeout * 3
            };
            self.may_update_from = Some(now + pause);
        }
        Ok(())
    }

    /// Updates the keys: further packets are sealed with the next ones, and the peer will follow.
    ///
    /// # Errors
    ///
    /// Returns [`NoUpdate`] if an update is not permitted now.
    pub fn update(&mut self, now: Time) -> Result<(), NoUpdate> {
        if !self.handshake_confirmed {
            return Err(NoUpdate::Unconfirmed);
        }
        match self.may_update_from {
            None => Err(NoUpdate::Unacknowledged),
            Some(from) if now < from => Err(NoUpdate::TooSoon(from)),
            Some(_) => {
                self.advance();
                Ok(())
            }
        }
    }

    /// Updates the keys if the number of packets sealed with them requires it and an update is permitted. To be called
    /// before a packet is started; returns whether there was an update.
    pub fn update_if_due(&mut self, now: Time) -> bool {
        self.sealed >= self.confidentiality_limit / 2 && self.update(now).is_ok()
    }

    /// Whether only the packets reserved for `CONNECTION_CLOSE` are left (RFC 9001 §6.6).
    pub fn is_spent(&self) -> bool {
        self.sealed.saturating_add(CLOSING_PACKETS) >= self.confidentiality_limit
    }

    fn advance(&mut self) {
        let Some(keys) = &mut self.keys else {
            debug_assert!(false, "released keys are restored before they are used");
            return;
        };
        let next = match self.next.take() {
            Some(next) => *next,
            None => self.updates.next(),
        };
        keys.seal.packet = next.seal;
        let old = std::mem::replace(&mut keys.open.packet, next.open);
        self.old = Some(Box::new(OldKey {
            open: old,
            until: None,
        }));
        self.generation += 1;
        self.numbers = GenerationNumbers::default();
        self.sealed = 0;
        self.may_update_from = None;
    }

    /// Derives the next keys if they are missing and a packet may need them. To be called after a datagram has been processed,
    /// not during that: deriving takes time, which would reveal the update to an observer (RFC 9001 §6.3).
    #[inline]
    pub fn prepare(&mut self) {
        let is_long = |largest: PacketNumber| largest.get() >= PREPARED_FROM;
        if self.next.is_none()
            && (self.generation > 0 || self.numbers.largest_opened.is_some_and(is_long))
        {
            self.make_next();
        }
    }

    fn make_next(&mut self) {
        self.next
            .get_or_insert_with(|| Box::new(self.updates.next()));
    }

    /// When to call [`Self::on_timeout`].
    pub fn next_timeout(&self) -> Option<Time> {
        self.old.as_ref()?.until
    }

    /// Discards the old key when its time is over.
    pub fn on_timeout(&mut self, now: Time) {
        if self.next_timeout().is_some_and(|until| now >= until) {
            self.old = None;
        }
    }
}
