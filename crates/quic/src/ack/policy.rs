//! When to acknowledge (RFC 9000 §13.2.1, §13.2.2, draft-ietf-quic-ack-frequency-14 §6).
//!
//! | space | rule |
//! |---|---|
//! | Initial, Handshake | at once |
//! | Application | when more than `ack_eliciting_threshold` packets are unacknowledged (default 1: every second one); `max_ack_delay` after the first of them; at once when a packet is missing or late, by the reordering threshold; at once for CE |
//!
//! Packets that are not ack-eliciting never cause an ACK frame: they are acknowledged with the next one. A probe has an ACK frame
//! as long as none is known to have arrived that covers the last ack-eliciting packet.
//!
//! With an [`AckDecimation`], an endpoint acknowledges less often once a connection has received some packets, as
//! Chromium does.

use core::time::Duration;

use lastbyte_congestion::Time;
use lastbyte_wire::{AckDecimation, frame::AckFrequency};

use super::{Ecn, PacketNumberRanges, Received};

/// The rules of one packet number space, and the packets not acknowledged yet.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    /// `None`: at once.
    delay: Option<Delay>,
    /// Ack-eliciting packets that no ACK frame has covered.
    waiting: u64,
    deadline: Option<Time>,
    largest_eliciting: Option<u64>,
    /// The largest number reported in an ACK frame.
    largest_acked: Option<u64>,
    /// The largest number reported in an ACK frame that the peer has received.
    largest_known: Option<u64>,
    last_was_ce: bool,
}

/// Whether the newest range of packets follows a gap and is shorter than this.
fn is_after_gap(ranges: &PacketNumberRanges, packets: u64) -> bool {
    let mut ranges = ranges.iter();
    let newest = ranges.next();
    ranges.next().is_some()
        && newest.is_some_and(|newest| newest.end().get() - newest.start().get() < packets)
}

/// The rules of the application space.
#[derive(Clone, Copy, Debug)]
struct Delay {
    /// `max_ack_delay`, or the delay that the peer requested instead.
    longest: Duration,
    ack_eliciting_threshold: u64,
    /// 0: reordering is ignored.
    reordering_threshold: u64,
    /// The sequence number of the latest `ACK_FREQUENCY` frame applied.
    sequence: Option<u64>,
    decimation: Option<AckDecimation>,
    /// The smallest packet number received, once `decimation` is set.
    smallest: Option<u64>,
}

impl Delay {
    /// Maximum delay of the acknowledgment of this packet. Starts decimation when it is due.
    fn longest_for(&mut self, number: u64, min_rtt: Option<Duration>) -> Duration {
        let Some(decimation) = self.decimation else {
            return self.longest;
        };
        let smallest = self.smallest.map_or(number, |before| before.min(number));
        self.smallest = Some(smallest);
        if number - smallest < decimation.after {
            return self.longest;
        }
        self.ack_eliciting_threshold = decimation.packets.max(1) - 1;
        decimation.delay(self.longest, min_rtt)
    }
}

/// How urgent an ACK frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// No ACK frame is needed.
    None,
    /// It may be added to a packet that is sent anyway.
    Piggyback,
    /// An ACK frame is due in its own packet.
    Due,
}

impl AckPolicy {
    /// The rules for Initial and Handshake packets: no delay.
    #[must_use]
    pub const fn immediate() -> Self {
        Self::new(None)
    }

    /// The rules for 0-RTT and 1-RTT packets. `max_ack_delay` is the transport parameter that was sent to the peer.
    #[must_use]
    pub const fn delayed(max_ack_delay: Duration, decimation: Option<AckDecimation>) -> Self {
        Self::new(Some(Delay {
            longest: max_ack_delay,
            ack_eliciting_threshold: 1,
            reordering_threshold: 1,
            sequence: None,
            decimation,
            smallest: None,
        }))
    }

    const fn new(delay: Option<Delay>) -> Self {
        Self {
            delay,
            waiting: 0,
            deadline: None,
            largest_eliciting: None,
            largest_acked: None,
            largest_known: None,
            last_was_ce: false,
        }
    }

    /// The peer requests other rules. A frame older than one already applied is ignored (draft §4).
    pub fn on_ack_frequency(&mut self, frame: &AckFrequency) {
        let Some(delay) = &mut self.delay else {
            return;
        };
        let sequence = frame.sequence.get();
        if delay.sequence.is_some_and(|latest| sequence <= latest) {
            return;
        }
        delay.sequence = Some(sequence);
        delay.decimation = None;
        delay.ack_eliciting_threshold = frame.ack_eliciting_threshold.get();
        delay.longest = Duration::from_micros(frame.max_ack_delay_us.get());
        delay.reordering_threshold = frame.reordering_threshold.get();
    }

    /// The peer requests an immediate acknowledgment (draft §5).
    pub fn on_immediate_ack(&mut self) {
        self.deadline = Some(Time::ZERO);
    }

    /// When an ACK frame is due at the latest.
    pub const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// How urgent an ACK frame is now.
    pub fn urgency(&self, now: Time) -> Urgency {
        match self.deadline {
            Some(deadline) if deadline <= now => Urgency::Due,
            Some(_) => Urgency::Piggyback,
            None => Urgency::None,
        }
    }

    /// Whether the acknowledgment of an ack-eliciting packet may have been lost.
    pub(super) fn is_unconfirmed(&self) -> bool {
        self.largest_eliciting > self.largest_known
    }

    /// The peer has received an ACK frame that reports up to `largest`.
    pub(super) fn on_ack_acknowledged(&mut self, largest: u64) {
        self.largest_known = self.largest_known.max(Some(largest));
    }

    /// A new packet was received, and is in `ranges`.
    pub(super) fn on_received(&mut self, received: &Received, ranges: &PacketNumberRanges) {
        let is_first_ce = received.ecn == Ecn::Ce && !self.last_was_ce;
        self.last_was_ce = received.ecn == Ecn::Ce;
        if !received.is_ack_eliciting {
            return;
        }
        self.waiting = self.waiting.saturating_add(1);
        let number = received.number.get();
        let largest_before = self.largest_eliciting;
        self.largest_eliciting = largest_before.max(Some(number));
        let Some(delay) = &mut self.delay else {
            self.deadline = Some(Time::ZERO);
            return;
        };
        let longest = delay.longest_for(number, received.min_rtt);
        let delay = *delay;
        let is_marked = match delay.ack_eliciting_threshold {
            // §13.2.1: each CE packet at once; with a higher threshold the change to CE alone (draft §6.3).
            0 | 1 => received.ecn == Ecn::Ce,
            _ => is_first_ce,
        };
        if is_marked
            || self.waiting > delay.ack_eliciting_threshold
            || self.is_out_of_order(number, largest_before, delay.reordering_threshold, ranges)
            || delay
                .decimation
                .is_some_and(|decimation| is_after_gap(ranges, decimation.packets_after_gap))
        {
            self.deadline = Some(Time::ZERO);
        } else {
            let at = received.now + longest;
            self.deadline = Some(self.deadline.map_or(at, |before| before.min(at)));
        }
    }

    /// Whether a gap or a late packet matters to the peer's loss detection.
    fn is_out_of_order(
        &self,
        number: u64,
        largest_before: Option<u64>,
        threshold: u64,
        ranges: &PacketNumberRanges,
    ) -> bool {
        match threshold {
            0 => false,
            // RFC 9000 §13.2.1: lower than another ack-eliciting packet, or a gap below it.
            1 => match largest_before {
                Some(largest) if number < largest => true,
                // Usually packets arrive in order, and nothing can be missing in between.
                Some(largest) if number == largest + 1 => false,
                Some(largest) => ranges
                    .smallest_missing(largest)
                    .is_some_and(|missing| missing < number),
                None => false,
            },
            // Draft §6.2.1.
            _ => {
                let Some(largest) = self.largest_eliciting else {
                    return false;
                };
                let unreported = self
                    .largest_acked
                    .map_or(0, |acked| (acked + 1).saturating_sub(threshold));
                let is_late = self.largest_acked.is_some_and(|acked| {
                    number <= acked.saturating_sub(threshold) && number < acked
                });
                let has_gap = ranges
                    .smallest_missing(unreported)
                    .is_some_and(|missing| largest.saturating_sub(missing) >= threshold);
                is_late || has_gap
            }
        }
    }

    /// An ACK frame that reports up to `largest` was sent.
    pub(super) fn on_ack_sent(&mut self, largest: u64) {
        self.waiting = 0;
        self.deadline = None;
        self.largest_acked = self.largest_acked.max(Some(largest));
    }
}

#[cfg(test)]
mod tests;
