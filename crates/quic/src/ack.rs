//! Received packets of one packet number space, and when to acknowledge them (RFC 9000 §13.2,
//! draft-ietf-quic-ack-frequency).
//!
//! [`ReceivedPackets`] stores which packet numbers were received, detects duplicates, counts ECN marks, decides when an ACK frame is due, and writes it. The number of ranges is bounded; numbers below the oldest range count as duplicates (§12.3).

mod policy;
mod ranges;

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{
    BufferFull, VarInt, Writer,
    frame::{AckReport, EcnCounts},
    packet::PacketNumber,
};

use crate::space::SpaceState;
pub use lastbyte_units::Ecn;
pub use lastbyte_wire::AckDecimation;
pub use policy::{AckPolicy, Urgency};
pub use ranges::{Insertion, PacketNumberRanges};

/// The received packets of one packet number space.
#[derive(Clone, Debug)]
pub struct ReceivedPackets {
    ranges: PacketNumberRanges,
    policy: AckPolicy,
    /// When the packet with the largest number was received, from which the ACK delay is computed.
    largest_received_at: Time,
    ect0: u64,
    ect1: u64,
    ce: u64,
}

/// A packet that was received, opened, and found to be new.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// When it was received.
    pub now: Time,
    /// Its number.
    pub number: PacketNumber,
    /// Whether it is ack-eliciting (RFC 9000 §13.2.1).
    pub is_ack_eliciting: bool,
    /// The ECN mark of its datagram.
    pub ecn: Ecn,
    /// The minimum round-trip time, if there is a sample.
    pub min_rtt: Option<Duration>,
}

impl SpaceState for ReceivedPackets {
    fn unused() -> &'static Self {
        static UNUSED: ReceivedPackets = ReceivedPackets::new(AckPolicy::immediate());
        &UNUSED
    }
}

impl ReceivedPackets {
    /// Nothing received yet; acknowledges by `policy`.
    #[must_use]
    pub const fn new(policy: AckPolicy) -> Self {
        Self {
            ranges: PacketNumberRanges::new(),
            policy,
            largest_received_at: Time::ZERO,
            ect0: 0,
            ect1: 0,
            ce: 0,
        }
    }

    /// Frees memory that is not in use.
    pub(crate) fn release_memory(&mut self) {
        self.ranges.release_memory();
    }

    /// Whether a packet with this number has been processed, or may have been: such a packet must be dropped (RFC 9000
    /// §12.3).
    pub fn is_duplicate(&self, number: PacketNumber) -> bool {
        self.ranges.contains_or_below(number.get())
    }

    /// The largest number received.
    pub fn largest(&self) -> Option<PacketNumber> {
        self.ranges.largest().and_then(PacketNumber::new)
    }

    /// The policy, mutable: `ACK_FREQUENCY` and `IMMEDIATE_ACK` change it.
    pub fn policy_mut(&mut self) -> &mut AckPolicy {
        &mut self.policy
    }

    /// A packet was received and processed. Duplicates change nothing.
    pub fn on_received(&mut self, received: &Received) {
        let number = received.number.get();
        let is_largest = self.ranges.largest().is_none_or(|largest| number > largest);
        if self.ranges.insert(number) != Insertion::New {
            return;
        }
        if is_largest {
            self.largest_received_at = received.now;
        }
        match received.ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.ect0 += 1,
            Ecn::Ect1 => self.ect1 += 1,
            Ecn::Ce => self.ce += 1,
        }
        self.policy.on_received(received, &self.ranges);
    }

    /// When an ACK frame is due at the latest; `None` if none is.
    pub fn deadline(&self) -> Option<Time> {
        self.policy.deadline()
    }

    /// Whether a packet that is sent now should contain an ACK frame, and whether one is due in a packet of its own.
    pub fn urgency(&self, now: Time) -> Urgency {
        self.policy.urgency(now)
    }

    /// Whether the peer may wait for the acknowledgment of an ack-eliciting packet: none is known to have arrived.
    pub fn is_unconfirmed(&self) -> bool {
        self.policy.is_unconfirmed()
    }

    /// Writes an ACK frame of at most `bytes_max` bytes. Returns the largest number it acknowledges, which is its
    /// receipt; `None` if there is nothing to acknowledge.
    ///
    /// # Errors
    ///
    /// Returns [`BufferFull`] if not even the newest range fits.
    pub fn write_ack(
        &mut self,
        now: Time,
        writer: &mut Writer<'_>,
        bytes_max: usize,
        ack_delay_exponent: u8,
    ) -> Result<Option<u64>, BufferFull> {
        let Some(largest) = self.ranges.largest() else {
            return Ok(None);
        };
        let delay = now.since(self.largest_received_at);
        let report = AckReport {
            ranges: self.ranges.iter(),
            delay: scaled_delay(delay, ack_delay_exponent),
            ecn: self.ecn_counts(),
        };
        report.encode(writer, bytes_max, PacketNumberRanges::RANGES_MAX)?;
        self.policy.on_ack_sent(largest);
        Ok(Some(largest))
    }

    /// An ACK frame that acknowledged packets up to `largest` was itself acknowledged: the peer has received the acknowledgment of all of them,
    /// so they need not be reported again (RFC 9000 §13.2.4).
    pub fn on_ack_acknowledged(&mut self, largest: u64) {
        self.ranges.forget_up_to(largest);
        self.policy.on_ack_acknowledged(largest);
    }

    /// The ECN counts, if any packet was marked.
    fn ecn_counts(&self) -> Option<EcnCounts> {
        let is_marked = self.ect0 > 0 || self.ect1 > 0 || self.ce > 0;
        is_marked.then(|| EcnCounts {
            ect0: VarInt::saturating(self.ect0),
            ect1: VarInt::saturating(self.ect1),
            ce: VarInt::saturating(self.ce),
        })
    }
}

/// RFC 9000 §19.3: in units of 2^exponent microseconds.
fn scaled_delay(delay: Duration, exponent: u8) -> VarInt {
    let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    VarInt::saturating(micros.checked_shr(u32::from(exponent)).unwrap_or(0))
}

#[cfg(test)]
mod tests;
