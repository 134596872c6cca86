//! What decides whether a packet is sent, and with which number: permits, probes, skipped numbers.
//!
//! Owns pending probes (RFC 9002 §6.2.4), the time at which the pacer releases the next datagram, the packet numbers
//! to skip (RFC 9000 §21.4), the count of consecutive non-ack-eliciting packets, and the receipts of the packet being
//! built.

use lastbyte_congestion::Time;

use crate::{
    random::Random,
    receipt::Receipt,
    recovery::Recovery,
    space::{PerSpace, Space},
};

/// The data that may be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Anything.
    All,
    /// Only frames exempt from congestion control: acknowledgments and probes.
    AcksAndProbes,
}

/// The sending side of a connection's packets.
#[derive(Debug)]
pub(super) struct Sender {
    probes: PerSpace<u8>,
    release_at: Option<Time>,
    /// The packet number of the Application space to skip.
    pub(super) skip_at: u64,
    /// Consecutive packets sent that are not ack-eliciting.
    not_ack_eliciting: PerSpace<u8>,
    /// The receipts of the packet being built.
    pub(super) receipts: Vec<Receipt>,
}

impl Sender {
    pub(super) fn new(random: &mut Random) -> Self {
        Self {
            probes: PerSpace::default(),
            release_at: None,
            skip_at: FIRST_SKIP_MIN + random.number() % FIRST_SKIP_SPREAD,
            not_ack_eliciting: PerSpace::default(),
            receipts: Vec::new(),
        }
    }

    /// Frees buffers that are empty.
    pub(super) fn release_memory(&mut self) {
        self.receipts.shrink_to_fit();
    }

    // ---- permits -------------------------------------------------------------------------------------------------

    /// What congestion control and pacing permit for datagrams of this size.
    pub(super) fn permit(&mut self, now: Time, recovery: &mut Recovery, size: u16) -> Permit {
        let size = u64::from(size);
        if recovery.window_left() < size {
            return Permit::AcksAndProbes;
        }
        if recovery.pacer_budget(now) < size {
            self.release_at = recovery.next_release(now);
            return Permit::AcksAndProbes;
        }
        Permit::All
    }

    /// When the pacer releases a datagram, if one is waiting for it.
    pub(super) const fn release_at(&self) -> Option<Time> {
        self.release_at
    }

    /// Handles expired timers.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.release_at.is_some_and(|at| at <= now) {
            self.release_at = None;
        }
    }

    /// The connection uses another path.
    pub(super) const fn on_new_path(&mut self) {
        self.release_at = None;
    }

    // ---- probes ---------------------------------------------------------------------------------------------------

    /// Requests this many ack-eliciting packets in this space, regardless of the congestion window.
    pub(super) const fn request_probes(&mut self, space: Space, count: u8) {
        *self.probes.get_mut(space) = count;
    }

    /// Whether a probe is due in a space.
    pub(super) const fn has_probe(&self, space: Space) -> bool {
        *self.probes.get(space) > 0
    }

    /// An ack-eliciting packet of the space was sent, which is a probe if one was due.
    pub(super) const fn take_probe(&mut self, space: Space) {
        let probes = self.probes.get_mut(space);
        *probes = probes.saturating_sub(1);
    }

    /// The keys of a space are discarded.
    pub(super) const fn discard(&mut self, space: Space) {
        self.request_probes(space, 0);
    }

    // ---- packets --------------------------------------------------------------------------------------------------

    /// Skips the next number of the Application space if one is due, so that a peer that acknowledges packets it has
    /// not received is detected (RFC 9000 §21.4). Returns whether it did.
    pub(super) fn skip_if_due(
        &mut self,
        now: Time,
        recovery: &mut Recovery,
        random: &mut Random,
    ) -> bool {
        let next = recovery.sent(Space::Application).next_number();
        if next < self.skip_at {
            return false;
        }
        recovery.skip_number(now, Space::Application);
        self.skip_at = next + SKIP_MIN + random.number() % SKIP_SPREAD;
        true
    }

    /// Whether the next packet of the space must be ack-eliciting (RFC 9000 §13.2.4): a peer that receives only
    /// acknowledgments need not acknowledge any of them.
    pub(super) const fn needs_ping(&self, space: Space) -> bool {
        *self.not_ack_eliciting.get(space) >= NOT_ACK_ELICITING_MAX
    }

    /// A packet of the space was sent.
    pub(super) const fn on_packet_sent(&mut self, space: Space, is_ack_eliciting: bool) {
        let in_a_row = self.not_ack_eliciting.get_mut(space);
        *in_a_row = if is_ack_eliciting {
            0
        } else {
            in_a_row.saturating_add(1)
        };
    }
}

/// After this many consecutive non-ack-eliciting packets, one carries a PING.
const NOT_ACK_ELICITING_MAX: u8 = 23;
/// The first skipped number is at least this, and less than this plus the spread.
const FIRST_SKIP_MIN: u64 = 32;
const FIRST_SKIP_SPREAD: u64 = 224;
/// The distance to the next skipped number is at least this, and less than this plus the spread.
const SKIP_MIN: u64 = 128;
const SKIP_SPREAD: u64 = 1024;

#[cfg(test)]
mod tests;
