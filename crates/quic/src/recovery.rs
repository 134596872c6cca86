//! Loss detection and congestion control of one path (RFC 9002).
//!
//! [`Recovery`] tracks packets in flight in all packet number spaces. It measures round-trip times, declares packets lost, informs the congestion controller, runs the single timer of §A.8, and returns each frame's receipt, acknowledged or lost. Other modules decide what to send, and in which packet.
//!
//! | file | owns | RFC 9002 |
//! |---|---|---|
//! | `sent.rs` | the ring of sent packets | §A.1 |
//! | `loss.rs` | loss detection | §6.1 |
//! | `probe.rs` | the probe timeout | §6.2 |
//! | `ecn.rs` | ECN validation | §13.4.2 of RFC 9000 |
//! | `measurements.rs` | what the log says of the path | – |
//!
//! An ACK frame takes effect in this order: round-trip time, losses, ECN, growth. Losses precede ECN, unlike in §A.7,
//! so that one congestion event covers both, as `lastbyte_congestion::controller` documents.

mod capacity;
mod ecn;
mod loss;
mod measurements;
mod probe;
mod sent;

use core::{mem, time::Duration};
use std::boxed::Box;

use lastbyte_congestion::{
    Ack as CongestionAck, Controller, EcnCe, IdleRestart, Loss, Pacer, Pacing, Rtt, SavedPath,
    Sent, State, Time,
};
use lastbyte_wire::frame::Ack;

use self::{capacity::Capacity, measurements::Acked};

pub use ecn::{EcnState, EcnValidation};
pub use loss::{LossDecision, LossThresholds, PACKET_THRESHOLD, detect_loss};
pub use measurements::{DeliveryRate, FLIGHT_PACKETS_MIN, FirstFlight, Measurements};
pub use probe::{ProbeTimer, TimerContext};
pub use sent::{AckedUnsent, Fate, NewlyAcked, SentPacket, SentPackets};

use crate::{
    ack::Ecn,
    receipt::Receipt,
    space::{PerSpace, Space, SpaceStates},
};

/// Receives the receipts of frames once their packet is acknowledged or lost.
pub trait ReceiptSink {
    /// The packet that carried this frame was acknowledged, or several packets with consecutive data of one stream,
    /// whose receipts were joined.
    fn acked(&mut self, space: Space, receipt: Receipt);
    /// The packet that carried this frame was declared lost.
    fn lost(&mut self, space: Space, receipt: Receipt);
}

/// Observes packets: lost ones after their receipts were returned, acknowledged ones before.
pub trait PacketObserver {
    /// A packet was acknowledged.
    fn packet_acked(&mut self, now: Time, space: Space, acked: &NewlyAcked);
    /// A packet was declared lost; `decision` states the rule.
    fn packet_lost(
        &mut self,
        now: Time,
        space: Space,
        number: u64,
        packet: &SentPacket,
        decision: LossDecision,
    );
}

/// Observes nothing.
impl PacketObserver for () {
    fn packet_acked(&mut self, _: Time, _: Space, _: &NewlyAcked) {}
    fn packet_lost(&mut self, _: Time, _: Space, _: u64, _: &SentPacket, _: LossDecision) {}
}

/// The round-trip time, congestion control and pacing of a path: saved when the connection leaves the path.
#[derive(Debug)]
pub struct PathControl {
    rtt: Rtt,
    controller: Box<dyn Controller>,
    pacer: Pacer,
    /// The controller's cached pacing; `None` if it may have changed (see [`Controller::pacing`]).
    pacing: Option<Pacing>,
    /// Whether nothing has happened since [`Controller::on_app_limited`] was called.
    is_app_limited: bool,
    /// Path measurements for a later connection, if the controller would use them.
    capacity: Option<Box<Capacity>>,
}

impl PathControl {
    /// State for a path of which nothing is known.
    #[must_use]
    pub fn new(controller: Box<dyn Controller>) -> Self {
        Self {
            rtt: Rtt::default(),
            capacity: controller
                .uses_saved_path()
                .then(|| Box::new(Capacity::new(controller.window()))),
            controller,
            pacer: Pacer::new(),
            pacing: None,
            is_app_limited: false,
        }
    }

    /// The controller and the round-trip time, mutable.
    fn change(&mut self) -> (&mut dyn Controller, &mut Rtt) {
        self.pacing = None;
        self.is_app_limited = false;
        (&mut *self.controller, &mut self.rtt)
    }

    /// A packet is sent that brings the bytes in flight to this value. Returns the controller's receipt.
    fn on_sent(&mut self, now: Time, bytes: u64, in_flight: u64) -> lastbyte_congestion::Receipt {
        self.is_app_limited = false;
        let window = self.controller.window();
        let receipt = self.controller.on_sent(&Sent {
            now,
            bytes,
            in_flight,
            rtt: &self.rtt,
        });
        if in_flight <= bytes || self.controller.window() != window {
            self.pacing = None;
        }
        let (pacer, pacing) = self.pacer();
        pacer.on_sent(now, bytes, &pacing);
        receipt
    }

    /// The pacer and the pacing rate, which is computed once between two changes.
    fn pacer(&mut self) -> (&mut Pacer, Pacing) {
        let pacing = self
            .pacing
            .get_or_insert_with(|| self.controller.pacing(&self.rtt));
        (&mut self.pacer, *pacing)
    }
}

/// A packet being sent, for [`Recovery::on_sent`].
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Its space.
    pub space: Space,
    /// Its size, in bytes of UDP payload.
    pub bytes: u16,
    /// Whether it is ack-eliciting.
    pub is_ack_eliciting: bool,
    /// Whether it counts as in flight.
    pub is_in_flight: bool,
    /// Whether it is an MTU probe.
    pub is_mtu_probe: bool,
    /// Whether it is sent on another path than the one in use; such a packet is not in flight.
    pub is_off_path: bool,
}

/// A received ACK frame.
#[derive(Clone, Copy, Debug)]
pub struct IncomingAck<'a> {
    /// When it was received.
    pub now: Time,
    /// Its packet number space.
    pub space: Space,
    /// The frame.
    pub frame: &'a Ack<'a>,
    /// The peer's ACK delay, decoded with its exponent; zero in the Initial space.
    pub ack_delay: Duration,
    /// The peer's `max_ack_delay` once the handshake is confirmed; `None` before (RFC 9002 §5.3).
    pub max_ack_delay: Option<Duration>,
    /// Whether newly acknowledged packets reset `pto_count`: always, except for Initial packets of a client whose
    /// address the server may not have validated yet (RFC 9002 §6.2.1).
    pub resets_pto_count: bool,
}

/// The effect of an ACK frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckOutcome {
    /// Packets newly acknowledged.
    pub newly_acked: u64,
    /// Of these, packets that had been declared lost.
    pub late: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// The increase of the peer's CE count.
    pub newly_marked: u64,
}

/// Counters for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryStatistics {
    /// Packets sent.
    pub packets_sent: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Packets acknowledged, including late ones.
    pub packets_acked: u64,
    /// Bytes acknowledged, including late ones.
    pub bytes_acked: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes declared lost.
    pub bytes_lost: u64,
    /// Of the packets declared lost, those by the time threshold alone.
    pub packets_lost_by_time: u64,
    /// Packets acknowledged after they had been declared lost.
    pub packets_late: u64,
    /// Packets dropped before they were acknowledged or declared lost: their keys were discarded, their frames sent
    /// again for another reason than loss, or they are not ack-eliciting and were too many. At any time, packets sent =
    /// acknowledged + lost - late + forgotten + outstanding.
    pub packets_forgotten: u64,
    /// Probe timeouts that expired.
    pub probe_timeouts: u64,
    /// The maximum number of packets in the ring.
    pub ring_max: u64,
}

/// The action of an expired timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// It was not due yet.
    Nothing,
    /// Packets were declared lost.
    Lost,
    /// One or two ack-eliciting packets must be sent in this space, regardless of the window (RFC 9002 §6.2.4).
    Probe(Space),
}

/// Loss detection and congestion control of one path.
#[derive(Debug)]
pub struct Recovery {
    spaces: SpaceStates<SentPackets>,
    /// Whether the keys of a space were discarded.
    discarded: PerSpace<bool>,
    control: PathControl,
    ecn: EcnValidation,
    thresholds: LossThresholds,
    timer: ProbeTimer,
    in_flight: u64,
    last_sent_at: Option<Time>,
    is_app_limited: bool,
    /// When [`Recovery::rebind`] last emptied the path.
    rebound_at: Option<Time>,
    measurements: Measurements,
    statistics: RecoveryStatistics,
}

impl Recovery {
    /// State for a path of which nothing is known.
    #[must_use]
    pub fn new(
        controller: Box<dyn Controller>,
        rtt: Rtt,
        thresholds: LossThresholds,
        ecn: EcnValidation,
    ) -> Self {
        let initial_window = controller.window();
        Self {
            spaces: SpaceStates::new(SentPackets::new()),
            discarded: PerSpace::default(),
            control: PathControl {
                rtt,
                ..PathControl::new(controller)
            },
            ecn,
            thresholds,
            timer: ProbeTimer::new(),
            in_flight: 0,
            last_sent_at: None,
            is_app_limited: false,
            rebound_at: None,
            measurements: Measurements::new(initial_window),
            statistics: RecoveryStatistics::default(),
        }
    }

    // ---- queries ---------------------------------------------------------------------------------------------------

    /// The packets sent in a space.
    pub fn sent(&self, space: Space) -> &SentPackets {
        self.spaces.get(space)
    }

    /// The round-trip time.
    pub const fn rtt(&self) -> &Rtt {
        &self.control.rtt
    }

    /// Bytes in flight.
    pub const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Available congestion window in bytes: none while the maximum number of packets awaits acknowledgment.
    pub fn window_left(&self) -> u64 {
        if self.has_ring_of(SentPackets::FULL) {
            return 0;
        }
        self.control
            .controller
            .window()
            .saturating_sub(self.in_flight)
    }

    /// Whether implausibly many packets await acknowledgment: the connection must be closed.
    pub fn is_over_limit(&self) -> bool {
        self.has_ring_of(SentPackets::LIMIT)
    }

    /// Whether the packets of a space are at least this many.
    fn has_ring_of(&self, len: usize) -> bool {
        // No ring was ever that long, as on nearly every connection: it is asked for each packet.
        self.statistics.ring_max >= len as u64
            && Space::ALL
                .iter()
                .any(|space| self.sent(*space).len() >= len)
    }

    /// The controller's state, for logs.
    pub fn congestion(&self) -> State {
        self.control.controller.state()
    }

    /// The state of ECN validation.
    pub const fn ecn(&self) -> &EcnValidation {
        &self.ecn
    }

    /// The thresholds of loss detection, for logs.
    pub const fn thresholds(&self) -> &LossThresholds {
        &self.thresholds
    }

    /// Counters.
    pub const fn statistics(&self) -> &RecoveryStatistics {
        &self.statistics
    }

    /// What the path has shown of itself, for logs.
    pub const fn measurements(&self) -> &Measurements {
        &self.measurements
    }

    /// The pacing rate.
    pub fn pacing(&self) -> Pacing {
        self.control.controller.pacing(&self.control.rtt)
    }

    /// Bytes that the pacer permits now.
    pub fn pacer_budget(&mut self, now: Time) -> u64 {
        let (pacer, pacing) = self.control.pacer();
        pacer.budget(now, &pacing)
    }

    /// When the pacer permits the next datagram, after its budget was too small.
    pub fn next_release(&mut self, now: Time) -> Option<Time> {
        let (pacer, pacing) = self.control.pacer();
        pacer.next_release(now, &pacing)
    }

    /// Frees buffers that are empty.
    pub(crate) fn release_memory(&mut self) {
        self.spaces.get_mut(Space::Application).release_memory();
    }

    // ---- sending --------------------------------------------------------------------------------------------------

    /// A packet with the next number of its space is sent, with the receipts of its frames.
    pub fn on_sent(
        &mut self,
        now: Time,
        outgoing: &Outgoing,
        receipts: impl IntoIterator<Item = Receipt>,
    ) {
        let bytes = u64::from(outgoing.bytes);
        let ecn = if outgoing.is_off_path {
            Ecn::NotEct
        } else {
            self.ecn.codepoint()
        };
        self.ecn.on_sent(outgoing.space.index(), ecn);
        self.statistics.packets_sent += 1;
        self.statistics.bytes_sent += bytes;
        let mut controller = lastbyte_congestion::Receipt::default();
        if outgoing.is_in_flight {
            self.announce_restart(now);
            self.in_flight = self.in_flight.saturating_add(bytes);
            controller = self.control.on_sent(now, bytes, self.in_flight);
            self.last_sent_at = Some(now);
            self.is_app_limited = false;
        }
        if outgoing.is_ack_eliciting {
            self.timer.on_ack_eliciting_sent(outgoing.space, now);
        }
        let sent = self.spaces.get_mut(outgoing.space);
        self.statistics.packets_forgotten += sent.push(
            SentPacket {
                sent_at: now,
                bytes: outgoing.bytes,
                is_ack_eliciting: outgoing.is_ack_eliciting,
                is_in_flight: outgoing.is_in_flight,
                is_mtu_probe: outgoing.is_mtu_probe,
                is_off_path: outgoing.is_off_path,
                ecn,
                controller,
            },
            receipts,
        );
        let held = sent.len() as u64;
        self.statistics.ring_max = self.statistics.ring_max.max(held);
    }

    /// The first packet after a pause without data.
    fn announce_restart(&mut self, now: Time) {
        if self.in_flight == 0
            && self.is_app_limited
            && let Some(last) = self.last_sent_at
        {
            let (controller, rtt) = self.control.change();
            controller.on_idle_restart(&IdleRestart {
                now,
                idle: now.since(last),
                rtt,
            });
        }
    }

    /// Skips a packet number (RFC 9000 §21.4).
    pub fn skip_number(&mut self, now: Time, space: Space) {
        self.spaces.get_mut(space).skip(now);
    }

    /// Nothing is left to send, although window and pacer would permit it.
    pub fn on_app_limited(&mut self, now: Time) {
        self.is_app_limited = true;
        self.measurements
            .on_app_limited(now, self.statistics.bytes_acked, self.in_flight);
        let (controller, _) = self.control.change();
        controller.on_app_limited(now, self.in_flight);
        self.control.is_app_limited = true;
    }

    /// Whether nothing was sent or acknowledged since the last call of [`Recovery::on_app_limited`], so that another would
    /// change nothing: window and pacer permit to send as they did then.
    pub const fn is_app_limited(&self) -> bool {
        self.control.is_app_limited
    }

    /// The datagram size of the path has changed.
    pub fn on_mtu(&mut self, max_datagram_size: u64) {
        let (controller, _) = self.control.change();
        controller.on_mtu(max_datagram_size);
    }

    /// Parameters that an earlier connection saved for this path (RFC 9959), before the first packet is sent.
    pub fn on_saved_path(&mut self, saved: &SavedPath) {
        let (controller, _) = self.control.change();
        controller.on_saved_path(saved);
    }

    /// Path measurements for a later connection, if they are new and worth saving.
    pub fn take_path_to_save(&mut self, now: Time) -> Option<SavedPath> {
        let PathControl { capacity, rtt, .. } = &mut self.control;
        capacity.as_mut()?.take_offer(now, rtt)
    }

    /// The last saved measurements of this path, and when they were saved.
    pub fn path_saved(&self) -> Option<(Time, SavedPath)> {
        self.control.capacity.as_ref()?.offered()
    }

    // ---- acknowledgments ------------------------------------------------------------------------------------------

    /// Processes an ACK frame.
    ///
    /// # Errors
    ///
    /// Returns [`AckedUnsent`] if it acknowledges a packet that was never sent, a `PROTOCOL_VIOLATION` (RFC 9000
    /// §13.1).
    pub fn on_ack(
        &mut self,
        ack: &IncomingAck<'_>,
        sink: &mut impl ReceiptSink,
        observer: &mut impl PacketObserver,
    ) -> Result<AckOutcome, AckedUnsent> {
        let (now, space) = (ack.now, ack.space);
        if *self.discarded.get(space) {
            return Ok(AckOutcome::default());
        }
        let largest = ack.frame.largest().get();
        let raises_largest = self
            .sent(space)
            .largest_acked()
            .is_none_or(|before| largest > before);
        let summary = self.take_acknowledged(ack, sink, observer)?;
        if summary.packets == 0 {
            return Ok(AckOutcome::default());
        }
        if let Some(sent_at) = summary.largest_sent_at {
            let acked = Acked {
                now,
                bytes: self.statistics.bytes_acked,
                sent_at,
            };
            self.measurements.on_ack(&acked);
            if space == Space::Application {
                let next = self.sent(space).next_number();
                self.measurements
                    .on_flight(&acked, largest, next, self.last_sent_at);
            }
        }
        if self.in_flight == 0 {
            self.measurements.on_idle(now, self.statistics.bytes_sent);
        }
        let sample = summary
            .largest_sent_at
            .filter(|_| summary.has_ack_eliciting);
        if let Some(sent_at) = sample {
            let (_, rtt) = self.control.change();
            rtt.update(now, now.since(sent_at), ack.ack_delay, ack.max_ack_delay);
        }
        if ack.resets_pto_count {
            self.timer.reset_pto_count();
        }
        let (lost, newest_lost) = self.detect_losses(now, space, sink, observer);
        let newly_marked = if raises_largest {
            self.ecn
                .on_ack(space.index(), summary.marked, ack.frame.ecn().as_ref())
        } else {
            0
        };
        if newly_marked > 0
            && let Some(largest_acked) = summary.largest_receipt
        {
            let (controller, rtt) = self.control.change();
            controller.on_ecn_ce(&EcnCe {
                now,
                newly_marked,
                largest_acked,
                in_flight: self.in_flight,
                rtt,
            });
        }
        self.close_losses(
            now,
            space,
            newest_lost,
            ack.max_ack_delay.unwrap_or_default(),
        );
        let (controller, rtt) = self.control.change();
        controller.on_ack(&CongestionAck {
            now,
            in_flight: self.in_flight,
            rtt,
            has_rtt_sample: sample.is_some(),
        });
        if let Some(capacity) = &mut self.control.capacity {
            capacity.on_ack(now, self.statistics.bytes_acked, &self.control.rtt);
        }
        self.expire(now, space, ack.max_ack_delay.unwrap_or_default());
        Ok(AckOutcome {
            newly_acked: summary.packets,
            late: summary.late,
            lost,
            newly_marked,
        })
    }

    /// Drops packets of a space that were kept in case of a late acknowledgment, which is not expected any more.
    fn expire(&mut self, now: Time, space: Space, max_ack_delay: Duration) {
        let horizon = self.rtt().probe_timeout(max_ack_delay) * LOST_KEPT_TIMEOUTS;
        let before = Time::from_nanos(now.as_nanos().saturating_sub(nanos(horizon)));
        self.statistics.packets_forgotten += self.spaces.get_mut(space).expire(before);
    }

    /// Removes the packets that the frame acknowledges from flight, and informs frame sources and controller packet by packet.
    fn take_acknowledged(
        &mut self,
        ack: &IncomingAck<'_>,
        sink: &mut impl ReceiptSink,
        observer: &mut impl PacketObserver,
    ) -> Result<AckSummary, AckedUnsent> {
        let space = ack.space;
        let largest = ack.frame.largest().get();
        let mut summary = AckSummary::default();
        let sent = self.spaces.get_mut(space);
        let (controller, _) = self.control.change();
        let (statistics, thresholds) = (&mut self.statistics, &mut self.thresholds);
        let next = sent.next_number();
        let in_flight = &mut self.in_flight;
        let mut on_packet = |acked: &NewlyAcked| {
            let packet = &acked.packet;
            summary.packets += 1;
            statistics.packets_acked += 1;
            statistics.bytes_acked += u64::from(packet.bytes);
            observer.packet_acked(ack.now, space, acked);
            if acked.was_lost {
                statistics.packets_late += 1;
                if !packet.is_off_path {
                    thresholds.on_spurious_loss(acked.number, next);
                }
                summary.late += 1;
                if packet.is_in_flight && !packet.is_mtu_probe {
                    controller.on_spurious_loss(ack.now, &packet.as_congestion());
                }
                return;
            }
            summary.marked += u64::from(packet.ecn != Ecn::NotEct);
            summary.has_ack_eliciting |= packet.is_ack_eliciting;
            if acked.number == largest && !packet.is_off_path {
                summary.largest_sent_at = Some(packet.sent_at);
            }
            if packet.is_in_flight {
                *in_flight = in_flight.saturating_sub(u64::from(packet.bytes));
                controller.on_packet_acked(ack.now, &packet.as_congestion());
                if summary
                    .largest_send_index
                    .is_none_or(|index| packet.controller.send_index() >= index)
                {
                    summary.largest_send_index = Some(packet.controller.send_index());
                    summary.largest_receipt = Some(packet.controller);
                }
            }
        };
        let mut known_in_a_row = 0;
        sent.start_frame();
        let mut ranges = ack.frame.ranges();
        while let Some(range) = ranges.next() {
            let (first, last) = (range.start().get(), range.end().get());
            let is_new = sent.acknowledge_next(first, last, &mut on_packet, &mut |receipt| {
                sink.acked(space, receipt);
            })?;
            known_in_a_row = if is_new { 0 } else { known_in_a_row + 1 };
            if known_in_a_row == KNOWN_RANGES_MAX || sent.is_rest_known(first, ranges.encoded()) {
                break;
            }
        }
        sent.end_frame(ack.frame.ranges());
        Ok(summary)
    }

    // ---- losses ---------------------------------------------------------------------------------------------------

    /// Declares packets of a space lost, informs frame sources and controller of each, and sets the timer for those
    /// that may still be lost. Returns how many there were, and the largest number.
    fn detect_losses(
        &mut self,
        now: Time,
        space: Space,
        sink: &mut impl ReceiptSink,
        observer: &mut impl PacketObserver,
    ) -> (u64, Option<u64>) {
        let thresholds = self.thresholds;
        let delay = thresholds.delay(self.rtt());
        let sent = self.spaces.get_mut(space);
        let Some(largest_acked) = sent.largest_acked() else {
            return (0, None);
        };
        let (controller, _) = self.control.change();
        let (statistics, ecn) = (&mut self.statistics, &mut self.ecn);
        let at_first_loss = &mut self.measurements.in_flight_at_first_loss;
        let in_flight = &mut self.in_flight;
        let (mut count, mut newest) = (0, None);
        let next_loss = sent.declare_lost(
            |number, packet| {
                let sent_at = packet.sent_at;
                detect_loss(number, sent_at, largest_acked, now, delay, &thresholds)
            },
            &mut |number, packet, decision, receipts| {
                count += 1;
                newest = Some(number);
                statistics.packets_lost += 1;
                statistics.bytes_lost += u64::from(packet.bytes);
                statistics.packets_lost_by_time += u64::from(decision == LossDecision::LostByTime);
                if packet.ecn != Ecn::NotEct {
                    ecn.on_marked_lost();
                }
                if packet.is_in_flight {
                    if !packet.is_mtu_probe {
                        at_first_loss.get_or_insert(*in_flight);
                    }
                    *in_flight = in_flight.saturating_sub(u64::from(packet.bytes));
                    if !packet.is_mtu_probe {
                        controller.on_packet_lost(now, &packet.as_congestion());
                    }
                }
                receipts.for_each(|receipt| sink.lost(space, receipt));
                observer.packet_lost(now, space, number, packet, decision);
            },
        );
        self.timer.set_loss_time(space, next_loss);
        (count, newest)
    }

    /// Ends a batch of losses for the controller, and decides on persistent congestion (RFC 9002 §7.6).
    fn close_losses(
        &mut self,
        now: Time,
        space: Space,
        newest: Option<u64>,
        max_ack_delay: Duration,
    ) {
        let Some(newest) = newest else {
            return;
        };
        let persistent = self.is_persistent(space, newest, max_ack_delay);
        let (controller, rtt) = self.control.change();
        controller.on_lost(&Loss {
            now,
            in_flight: self.in_flight,
            rtt,
            persistent,
        });
        if persistent {
            rtt.reset_min(); // RFC 9002 §5.2
        }
    }

    fn is_persistent(&self, space: Space, newest: u64, max_ack_delay: Duration) -> bool {
        let Some(since) = self.rtt().first_sample_at() else {
            return false;
        };
        let Some((earliest, latest)) = self.sent(space).lost_run(newest, since) else {
            return false;
        };
        latest.since(earliest) > self.rtt().persistent_congestion_duration(max_ack_delay)
            && !Space::ALL
                .iter()
                .filter(|other| **other != space) // in this one the run would have ended
                .any(|other| self.sent(*other).has_acked_between(earliest, latest))
    }

    // ---- the timer ------------------------------------------------------------------------------------------------

    /// When [`Recovery::on_timeout`] is due (RFC 9002 §A.8).
    pub fn deadline(&self, context: &TimerContext) -> Option<Time> {
        let has_ack_eliciting = Space::ALL.map(|space| self.sent(space).has_ack_eliciting());
        self.timer
            .deadline(self.rtt(), has_ack_eliciting, context)
            .map(|(at, _)| at)
    }

    /// The timer expired (RFC 9002 §A.9).
    pub fn on_timeout(
        &mut self,
        now: Time,
        context: &TimerContext,
        sink: &mut impl ReceiptSink,
        observer: &mut impl PacketObserver,
    ) -> Expired {
        if let Some((at, space)) = self.timer.loss_time() {
            if at > now {
                return Expired::Nothing;
            }
            let (_, newest) = self.detect_losses(now, space, sink, observer);
            self.close_losses(now, space, newest, context.max_ack_delay);
            self.expire(now, space, context.max_ack_delay);
            return Expired::Lost;
        }
        let has_ack_eliciting = Space::ALL.map(|space| self.sent(space).has_ack_eliciting());
        match self.timer.deadline(self.rtt(), has_ack_eliciting, context) {
            Some((at, space)) if at <= now => {
                self.timer.on_probe_timeout();
                self.statistics.probe_timeouts += 1;
                Expired::Probe(space)
            }
            _ => Expired::Nothing,
        }
    }

    /// Sends the frames of the oldest `count` packets in flight again without declaring them lost, since a probe must
    /// carry something (RFC 9002 §6.2.4). The packets stay in flight.
    pub fn repeat_oldest(&self, space: Space, count: usize, sink: &mut impl ReceiptSink) {
        self.sent(space)
            .oldest(count, &mut |receipt| sink.lost(space, receipt));
    }

    /// Probe timeouts since the last acknowledgment of something new (RFC 9002 §A.3: `pto_count`).
    pub const fn consecutive_probe_timeouts(&self) -> u32 {
        self.timer.pto_count()
    }

    /// Gives up the packets in flight in a space, without informing the congestion controller: after a Retry, a change of
    /// version, or rejected 0-RTT (RFC 9002 §6.3, RFC 9001 §4.6.2). `sink` decides what is sent again.
    pub fn give_up(&mut self, now: Time, space: Space, sink: &mut impl ReceiptSink) {
        let in_flight = &mut self.in_flight;
        let forgotten = &mut self.statistics.packets_forgotten;
        self.spaces.get_mut(space).give_up(&mut |packet, receipts| {
            *forgotten += 1;
            if packet.is_in_flight {
                *in_flight = in_flight.saturating_sub(u64::from(packet.bytes));
            }
            receipts.for_each(|receipt| sink.lost(space, receipt));
        });
        self.timer.on_discarded(space, now);
    }

    // ---- the path -------------------------------------------------------------------------------------------------

    /// The connection uses another path from now on, with `control`; returns the state of the previous path (RFC 9000
    /// §9.4). Packets outstanding since the previous change are given up: `sink` receives its frames as lost.
    pub fn change_path(
        &mut self,
        control: PathControl,
        sink: &mut impl ReceiptSink,
    ) -> PathControl {
        self.leave_path(sink);
        self.last_sent_at = None;
        self.rebound_at = None;
        self.ecn.on_new_path();
        mem::replace(&mut self.control, control)
    }

    /// Only the port of an address changed, as after a NAT rebinding: window and RTT stay, and packets sent before
    /// contribute to neither, whether they are acknowledged or lost (RFC 9000 §9.4). Returns whether this applies.
    ///
    /// It applies once per round trip. On faster changes, packets in flight stay so: a peer, or an attacker on the path,
    /// that alternates between ports could otherwise make the sender ignore congestion.
    pub fn rebind(&mut self, now: Time, sink: &mut impl ReceiptSink) -> bool {
        let round_trip = self.rtt().smoothed();
        if self
            .rebound_at
            .is_some_and(|before| now.since(before) < round_trip)
        {
            return false;
        }
        self.rebound_at = Some(now);
        self.leave_path(sink);
        let (controller, _) = self.control.change();
        controller.on_rebind();
        true
    }

    /// The packets in flight are of another path from now on.
    fn leave_path(&mut self, sink: &mut impl ReceiptSink) {
        let forgotten = &mut self.statistics.packets_forgotten;
        for (space, sent) in self.spaces.in_use_mut() {
            sent.leave_path(&mut |_, receipts| {
                *forgotten += 1;
                receipts.for_each(|receipt| sink.lost(space, receipt));
            });
        }
        self.in_flight = 0;
        self.measurements.on_interruption();
    }

    /// The keys of a space were discarded (RFC 9002 §6.4): nothing of it is in flight any more, and nothing is
    /// reported.
    pub fn discard_space(&mut self, now: Time, space: Space) {
        let in_flight = &mut self.in_flight;
        let forgotten = &mut self.statistics.packets_forgotten;
        for packet in self.spaces.get(space).outstanding() {
            *forgotten += 1;
            if packet.is_in_flight {
                *in_flight = in_flight.saturating_sub(u64::from(packet.bytes));
            }
        }
        self.spaces.discard(space);
        *self.discarded.get_mut(space) = true;
        self.timer.on_discarded(space, now);
    }
}

/// The newly acknowledged packets of an ACK frame.
#[derive(Default)]
struct AckSummary {
    packets: u64,
    marked: u64,
    has_ack_eliciting: bool,
    largest_sent_at: Option<Time>,
    largest_send_index: Option<u64>,
    largest_receipt: Option<lastbyte_congestion::Receipt>,
    late: u64,
}

/// Number of probe timeouts for which lost packets are kept.
const LOST_KEPT_TIMEOUTS: u32 = 4;
/// An ACK frame is read up to this many ranges in a row without news, since each costs a search for two bytes of the peer's. A
/// packet below them that is acknowledged late counts as lost.
const KNOWN_RANGES_MAX: u32 = 128;

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
