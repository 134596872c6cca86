//! Window-based congestion control (RFC 9002 §7): a startup, an avoidance, and what all combinations have in common.
//!
//! [`WindowController`] owns the window and the slow start threshold. It manages recovery periods (§7.3.2), lets the window grow only while it is used (§7.8), keeps it above the minimum, undoes spurious congestion events, and delegates the rest:
//!
//! | part | decides |
//! |---|---|
//! | `Jump` | may the first flight be larger than the initial window? |
//! | `Resume` | may the window jump to the rate of an earlier connection? |
//! | [`Startup`](crate::startup::Startup) | how does the window grow before the first congestion? |
//! | `Proportional` | how does it fall in the first recovery, if not by a cut? |
//! | [`Avoidance`](crate::avoidance::Avoidance) | how does it grow afterwards, and shrink at congestion? |
//! | `after_idle` | how large is it after a pause? |
//!
//! # Decisions
//!
//! - A recovery period ends by the order of sending, not by time: an ACK of a packet sent after it began ends it. With
//!   times, packets sent at the very instant of the loss would count as sent before.
//! - Acknowledged bytes are counted packet by packet: of an ACK frame that ends recovery, only the packets sent after
//!   its start grow the window.
//! - "Used" means: the sender was not application-limited when it last stopped, or, in slow start, at least half the
//!   window was in flight. (A window that doubles each round trip was full one round trip ago.)
//! - An episode is undone when every packet declared lost in it turns out to have arrived (RFC 9438 §4.9.2 for QUIC).
//!   Of several in a row, each may be: on a path that reorders, the packets of one arrive when the next has begun. CE
//!   marks are never spurious, so an episode with one is not undone. A startup that resumes in this way continues as
//!   plain slow start: neither HyStart++ (RFC 9406 §4.3) nor Rapid Start runs twice.
//! - A jumpstart whose first congestion is a cut is reduced to the bytes that the jump delivered, or to the initial
//!   window if that is more, times beta; as more of the jump is acknowledged in recovery, the window rises to beta ×
//!   that. This is what quicly does.
//! - On persistent congestion the window is the minimum and the threshold stays where the loss put it (RFC 9002
//!   §7.6.2). The recovery period ends, but the response covers all packets sent before it, where Appendix B.8 of the
//!   RFC would let each further loss of one halve the threshold once more.

mod episode;
mod idle;
mod jump;
mod proportional;
mod rate_limited;
mod resume;

use alloc::{boxed::Box, sync::Arc};

use lastbyte_units::Time;

use self::{
    episode::Recovery,
    idle::{Windows, after_idle},
    jump::Jump,
    proportional::{Entry, Proportional},
    rate_limited::MaxFlight,
    resume::{Resume, Sender},
};
use crate::{
    avoidance::{Avoidance, AvoidanceAck, Cause, Marks, Reduction},
    bandwidth::Bandwidth,
    config::{AppLimited, Config, FirstFlight, FirstRecovery},
    controller::{
        Ack, Controller, DATAGRAM_SIZE_MAX, EcnCe, IdleRestart, Loss, Pacing, Packet, Receipt,
        Sent, WINDOW_MAX,
    },
    rtt::Rtt,
    saved_path::SavedPath,
    startup::{Startup, StartupAck},
    state::{Phase, State, Statistics},
};

/// A startup and an avoidance, composed.
#[derive(Debug)]
pub struct WindowController {
    config: Arc<Config>,
    max_datagram_size: u64,
    window: u64,
    /// `u64::MAX` while infinite.
    slow_start_threshold: u64,
    stage: Stage,
    startup: Box<dyn Startup>,
    avoidance: Box<dyn Avoidance>,
    jump: Jump,
    resume: Resume,
    /// The rule of the first recovery, while it lasts.
    proportional: Option<Proportional>,
    /// Whether nothing has changed the window yet: neither growth nor congestion.
    is_untouched: bool,
    /// The send index of the next packet.
    next: u64,
    largest_acked: u64,
    /// Bytes sent and acknowledged so far.
    sent: u64,
    delivered: u64,
    recovery: Recovery,
    batch: Batch,
    is_app_limited: bool,
    /// With [`AppLimited::RateLimitedIncrease`].
    max_flight: Option<MaxFlight>,
    statistics: Statistics,
}

/// The progress of the connection, apart from recovery periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The startup's growth rule applies.
    Startup,
    /// The startup was interrupted by a spurious congestion event: slow start, without a threshold.
    ResumedStartup,
    /// After the first congestion: slow start below the threshold, avoidance above.
    Found,
}

/// Totals of the packets of the ACK frame or loss timer being processed, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// Acknowledged, sent before the latest congestion event.
    acked_before: u64,
    /// Acknowledged, sent after it.
    acked_after: u64,
    lost_before: u64,
    lost_after: u64,
    packets_lost_after: u64,
    /// The lowest send index of the packets lost after it.
    first_lost_after: Option<u64>,
    /// Reported as marked with ECN-CE.
    marked: u64,
}

impl Batch {
    /// Bytes in flight when the ACK frame arrived, of which `left` still are.
    fn in_flight_before(&self, left: u64) -> u64 {
        left.saturating_add(self.acked_before)
            .saturating_add(self.acked_after)
            .saturating_add(self.lost_before)
            .saturating_add(self.lost_after)
    }

    /// A congestion event starts now: everything sent so far was sent before it.
    fn begin_episode(&mut self) {
        self.acked_before = self.acked_before.saturating_add(self.acked_after);
        self.lost_before = self.lost_before.saturating_add(self.lost_after);
        self.acked_after = 0;
        self.lost_after = 0;
        self.first_lost_after = None;
    }
}

impl WindowController {
    /// Creates a controller for a path whose datagrams carry `max_datagram_size` bytes of UDP payload.
    #[must_use]
    pub fn new(
        config: impl Into<Arc<Config>>,
        max_datagram_size: u64,
        startup: Box<dyn Startup>,
        avoidance: Box<dyn Avoidance>,
    ) -> Self {
        let config = config.into();
        let max_datagram_size = max_datagram_size.clamp(1, DATAGRAM_SIZE_MAX);
        let minimum = minimum_window(&config, max_datagram_size);
        let window = initial_window(&config, max_datagram_size).max(minimum);
        let jump = match config.first_flight {
            FirstFlight::InitialWindow { .. } => None,
            FirstFlight::Jump { window: None } => Some(window.saturating_mul(2)),
            FirstFlight::Jump { window: Some(size) } => Some(size.bytes(max_datagram_size)),
        };
        Self {
            sent: 0,
            delivered: 0,
            max_datagram_size,
            window,
            slow_start_threshold: u64::MAX,
            stage: Stage::Startup,
            startup,
            avoidance,
            jump: Jump::new(jump.map(|window| window.min(WINDOW_MAX))),
            resume: Resume::new(),
            proportional: None,
            is_untouched: true,
            next: 0,
            largest_acked: 0,
            recovery: Recovery::new(),
            batch: Batch::default(),
            is_app_limited: false,
            max_flight: (config.app_limited == AppLimited::RateLimitedIncrease)
                .then(|| MaxFlight::new(window)),
            statistics: Statistics::new(window),
            config,
        }
    }

    fn minimum(&self) -> u64 {
        minimum_window(&self.config, self.max_datagram_size)
    }

    fn initial(&self) -> u64 {
        initial_window(&self.config, self.max_datagram_size).max(self.minimum())
    }

    fn is_in_slow_start(&self) -> bool {
        self.window < self.slow_start_threshold
    }

    fn set_window(&mut self, window: u64) {
        let window = window.clamp(self.minimum(), WINDOW_MAX);
        self.is_untouched &= window == self.window;
        if window < self.window
            && let Some(max_flight) = &mut self.max_flight
        {
            max_flight.on_reduction();
        }
        self.window = window;
        self.statistics.window_max = self.statistics.window_max.max(self.window);
    }

    /// RFC 9002 §7.8.
    fn is_window_in_use(&self, in_flight: u64) -> bool {
        self.config.app_limited != AppLimited::NoGrowth
            || !self.is_app_limited
            || (self.is_in_slow_start() && in_flight >= self.window / 2)
    }

    fn note_startup_exit(&mut self, now: Time, rtt: &Rtt) {
        self.statistics
            .exit_startup(now, self.window, rtt.latest_sample());
    }

    // ---- congestion -----------------------------------------------------------------------------------------------

    /// A congestion event starts (RFC 9002 §7.3.2). `in_flight` is the bytes in flight when its signal arrived.
    fn begin_episode(&mut self, now: Time, cause: Cause, in_flight: u64, rtt: &Rtt) {
        let jump_was_hit = self
            .batch
            .first_lost_after
            .is_some_and(|send_index| self.jump.is_before_end(send_index));
        let before = Windows {
            window: self.window,
            slow_start_threshold: self.slow_start_threshold,
        };
        self.recovery.begin(cause, self.next, before, self.stage);
        self.statistics.loss_episodes += 1;
        self.statistics.ecn_episodes += u64::from(cause == Cause::EcnCe);
        self.batch.begin_episode();
        self.is_untouched = false;
        self.proportional = None;

        let is_first = self.stage != Stage::Found;
        if is_first {
            self.note_startup_exit(now, rtt);
        }
        match (
            self.config.first_recovery,
            self.resume.on_congestion(self.next),
        ) {
            (_, Some(pipe)) => {
                self.set_window(pipe / 2);
                self.inform_avoidance(now, cause, pipe, false, rtt);
            }
            (FirstRecovery::Proportional(variant), None)
                if self.stage == Stage::Startup && in_flight >= self.window / 2 =>
            {
                let entry = Entry {
                    window: self.window,
                    in_flight,
                    initial: self.initial(),
                    minimum: self.minimum(),
                    jump_delivered: jump_was_hit.then(|| self.jump.acked()),
                    beta: self.beta(cause, true),
                };
                let proportional = Proportional::new(variant, &entry);
                self.set_window(proportional.window());
                if let Some(capacity) = proportional.capacity_on_entry() {
                    self.inform_avoidance(now, cause, capacity, true, rtt);
                }
                self.proportional = Some(proportional);
            }
            _ => {
                let full = if is_first && jump_was_hit {
                    self.jump.acked().max(self.initial())
                } else if self.jump.is_unvalidated() {
                    in_flight.max(self.initial()).min(self.window)
                } else {
                    self.window
                };
                let beta = self.beta(cause, is_first);
                self.set_window(share(full, beta));
                self.inform_avoidance(now, cause, full, false, rtt);
            }
        }
        self.slow_start_threshold = self.window;
        self.stage = Stage::Found;
        self.jump.on_congestion(self.next);
        self.note_reduction();
    }

    fn beta(&self, cause: Cause, is_first: bool) -> f64 {
        let by_mark = self.config.startup_beta_ecn;
        let of_startup = by_mark
            .filter(|_| cause == Cause::EcnCe)
            .or(self.config.startup_beta);
        of_startup
            .filter(|_| is_first)
            .unwrap_or_else(|| self.avoidance.beta(cause))
    }

    fn inform_avoidance(&mut self, now: Time, cause: Cause, full: u64, measured: bool, rtt: &Rtt) {
        self.recovery.on_avoidance_informed();
        self.avoidance.on_congestion(&Reduction {
            now,
            full,
            is_measured: measured,
            after: self.window,
            cause,
            rtt,
            max_datagram_size: self.max_datagram_size,
        });
    }

    fn note_reduction(&mut self) {
        let smallest = self.statistics.window_min.unwrap_or(u64::MAX);
        self.statistics.window_min = Some(smallest.min(self.window));
    }

    /// The window follows the round's totals while a proportional recovery lasts.
    fn follow_proportional(&mut self, threshold_follows: bool) {
        if let Some(proportional) = &self.proportional {
            let window = proportional.window();
            self.set_window(window);
            if threshold_follows {
                self.slow_start_threshold = self.window;
            }
            self.note_reduction();
        }
    }

    /// An ACK frame arrived in recovery, which ends if the frame acknowledges a packet sent since it started.
    fn recover(&mut self, ack: &Ack<'_>, acked: u64) {
        if let Some(proportional) = &mut self.proportional {
            proportional.on_acked(acked);
            let threshold_follows = proportional.threshold_follows_acks();
            self.follow_proportional(threshold_follows);
        } else if self.recovery.is_first() {
            let delivered = share(self.jump.acked(), self.avoidance.beta(Cause::Loss));
            if self.window < delivered {
                self.set_window(delivered);
                self.slow_start_threshold = self.window;
            }
        }
        if self.recovery.answers(self.largest_acked) {
            return;
        }
        self.recovery.finish();
        if let Some(pipe) = self.resume.on_recovered() {
            let beta = self.config.startup_beta.unwrap_or(RETREAT_BETA);
            self.slow_start_threshold = share(pipe, beta).max(self.minimum());
        }
        if let Some(proportional) = self.proportional.take()
            && let Some(capacity) = proportional.capacity_on_exit(self.window)
        {
            self.inform_avoidance(ack.now, Cause::Loss, capacity, true, ack.rtt);
        }
    }

    // ---- growth ---------------------------------------------------------------------------------------------------

    fn grow(&mut self, ack: &Ack<'_>, acked: u64, in_flight_before: u64) {
        let is_in_use = self.is_window_in_use(in_flight_before);
        if !is_in_use {
            self.avoidance.on_app_limited(ack.now);
        }
        let bytes = if is_in_use { acked } else { 0 };
        match self.stage {
            Stage::Startup => self.grow_startup(ack, bytes),
            _ if bytes == 0 => {}
            Stage::ResumedStartup => {
                let grown = self.window.saturating_add(bytes);
                self.set_window(self.allowed(grown, in_slow_start(SLOW_START_GAIN)));
            }
            Stage::Found if self.is_in_slow_start() => {
                let grown = self.window.saturating_add(bytes);
                let grown = self.allowed(grown, in_slow_start(SLOW_START_GAIN));
                self.set_window(grown.min(self.slow_start_threshold.max(self.minimum())));
                if !self.is_in_slow_start() {
                    self.avoidance.on_slow_start_exit(self.window);
                }
            }
            Stage::Found => {
                let window = self.avoidance.on_ack(&AvoidanceAck {
                    now: ack.now,
                    bytes,
                    window: self.window,
                    rtt: ack.rtt,
                    max_datagram_size: self.max_datagram_size,
                });
                let limit = |flight| self.avoidance.limit(flight, self.max_datagram_size);
                let allowed = self.allowed(window, limit);
                if allowed < window {
                    self.avoidance.on_app_limited(ack.now);
                }
                self.set_window(allowed.max(self.window));
            }
        }
    }

    /// The window after growth to `grown`, at most `limit` of the largest flight, but not less than now.
    fn allowed(&self, grown: u64, limit: impl Fn(u64) -> u64) -> u64 {
        match &self.max_flight {
            Some(max_flight) => grown.min(limit(max_flight.bytes()).max(self.window)),
            None => grown,
        }
    }

    fn grow_startup(&mut self, ack: &Ack<'_>, bytes: u64) {
        let growth = self.startup.on_ack(&StartupAck {
            now: ack.now,
            bytes,
            delivered: self.delivered,
            sent: self.sent,
            in_flight: ack.in_flight,
            window: self.window,
            largest_acked: self.largest_acked,
            next: self.next,
            rtt: ack.rtt,
            rtt_sample: ack.has_rtt_sample.then(|| ack.rtt.adjusted()),
        });
        let grown = self.window.saturating_add(growth.bytes);
        let gain = self.startup.pacing_gain();
        self.set_window(self.allowed(grown, in_slow_start(gain)));
        if growth.done {
            self.note_startup_exit(ack.now, ack.rtt);
        }
        if let Some(limit) = growth.limit.filter(|limit| *limit < self.window) {
            self.set_window(limit);
            self.note_reduction();
        }
        if growth.done {
            self.stage = Stage::Found;
            self.slow_start_threshold = self.window;
            self.jump.on_congestion(self.next);
            self.avoidance.on_slow_start_exit(self.window);
        }
    }

    // ---- undoing --------------------------------------------------------------------------------------------------

    /// All losses of a congestion event were spurious.
    fn undo(&mut self, age: usize) {
        let Some(undo) = self.recovery.undo(age, self.window) else {
            return;
        };
        self.statistics.episodes_undone += 1;
        self.resume.stop();
        if let Some((before, _)) = undo.to {
            self.proportional = None;
            self.set_window(before.window);
            self.slow_start_threshold = before.slow_start_threshold;
        }
        if let Some(age) = undo.avoidance_age {
            self.avoidance.undo(age);
        }
        if let Some((_, Stage::Startup | Stage::ResumedStartup)) = undo.to {
            self.stage = Stage::ResumedStartup;
            self.statistics.episodes_undone_in_startup += 1;
            self.statistics.resume_startup();
        }
    }

    // ---- pacing ---------------------------------------------------------------------------------------------------

    /// Pacing gain: how many windows are released in a round trip.
    fn pacing_gain(&self) -> f64 {
        if self.jump.is_unvalidated() || self.resume.is_unvalidated() {
            return 1.0;
        }
        match (self.stage, self.config.first_flight) {
            (Stage::Startup, FirstFlight::InitialWindow { round_trips }) if self.is_untouched => {
                1.0 / round_trips
            }
            (Stage::Startup, _) => {
                let configured = self.config.startup_pacing_gain;
                configured
                    .filter(|_| !self.is_untouched)
                    .unwrap_or_else(|| self.startup.pacing_gain())
            }
            (Stage::ResumedStartup, _) => SLOW_START_GAIN,
            (Stage::Found, _) if self.is_in_slow_start() && !self.recovery.is_active() => {
                SLOW_START_GAIN
            }
            (Stage::Found, _) => self
                .config
                .pacing_gain
                .unwrap_or_else(|| self.avoidance.pacing_gain()),
        }
    }
}

impl Controller for WindowController {
    fn on_sent(&mut self, sent: &Sent<'_>) -> Receipt {
        self.sent = self.sent.saturating_add(sent.bytes);
        let receipt = Receipt::new(self.next);
        self.next = self.next.saturating_add(1);
        self.is_app_limited = false;
        if let Some(max_flight) = &mut self.max_flight {
            max_flight.on_sent(sent.in_flight);
        }
        if self.resume.is_waiting() {
            let jump = self.resume.on_sent(&Sender {
                in_flight: sent.in_flight,
                delivered: self.delivered,
                window: self.window,
                initial: self.initial(),
                burst: Pacing::burst_of(self.max_datagram_size),
                next: self.next,
                rtt: sent.rtt,
            });
            if let Some(window) = jump {
                self.set_window(window);
                self.statistics.jump_window = Some(self.window);
            }
        }
        if self.jump.is_armed() {
            let burst = Pacing::burst_of(self.max_datagram_size);
            let jump = self
                .jump
                .on_sent(sent.in_flight, burst, self.next, self.window, sent.rtt);
            if let Some(window) = jump {
                self.set_window(window);
                self.statistics.jump_window = Some(self.window);
            }
        }
        receipt
    }

    fn on_app_limited(&mut self, now: Time, in_flight: u64) {
        self.is_app_limited = true;
        if !self.is_window_in_use(in_flight) {
            self.avoidance.on_app_limited(now);
        }
    }

    fn on_packet_acked(&mut self, _: Time, packet: &Packet) {
        self.delivered = self.delivered.saturating_add(packet.bytes);
        let send_index = packet.receipt.send_index();
        let acked = if self.recovery.answers(send_index) {
            &mut self.batch.acked_before
        } else {
            &mut self.batch.acked_after
        };
        *acked = acked.saturating_add(packet.bytes);
        self.largest_acked = self.largest_acked.max(send_index);
        self.jump.on_packet_acked(send_index, packet.bytes);
        self.resume.on_packet_acked(send_index, packet.bytes);
    }

    fn on_packet_lost(&mut self, _: Time, packet: &Packet) {
        self.statistics.on_packet_lost(packet.sent_at);
        let send_index = packet.receipt.send_index();
        if !self.recovery.answers(send_index) {
            self.batch.lost_after = self.batch.lost_after.saturating_add(packet.bytes);
            let lowest = self.batch.first_lost_after.unwrap_or(u64::MAX);
            self.batch.first_lost_after = Some(lowest.min(send_index));
            self.batch.packets_lost_after = self.batch.packets_lost_after.saturating_add(1);
            return;
        }
        self.batch.lost_before = self.batch.lost_before.saturating_add(packet.bytes);
        self.recovery.on_answered_loss(send_index);
    }

    fn on_lost(&mut self, loss: &Loss<'_>) {
        let packets_lost_after = core::mem::take(&mut self.batch.packets_lost_after);
        if self.batch.first_lost_after.is_some() {
            let in_flight = self.batch.in_flight_before(loss.in_flight);
            self.begin_episode(loss.now, Cause::Loss, in_flight, loss.rtt);
        }
        if self.recovery.on_losses(packets_lost_after) {
            self.statistics.ecn_episodes = self.statistics.ecn_episodes.saturating_sub(1);
        }
        if let Some(proportional) = &mut self.proportional {
            proportional.on_lost(core::mem::take(&mut self.batch.lost_before));
            self.follow_proportional(true);
        }
        if loss.persistent {
            self.statistics.persistent_congestions += 1;
            self.proportional = None;
            self.recovery.forget();
            self.resume.stop();
            self.is_untouched = false;
            self.set_window(self.minimum());
            self.note_reduction();
            self.avoidance.on_persistent_congestion();
        }
        self.batch.lost_before = 0;
    }

    fn on_ecn_ce(&mut self, ce: &EcnCe<'_>) {
        let marked = ce.newly_marked.saturating_mul(self.max_datagram_size);
        self.batch.marked = self.batch.marked.saturating_add(marked);
        if !self.recovery.answers(ce.largest_acked.send_index()) && self.next > 0 {
            if !self.avoidance.responds_to_marks(ce.now, ce.rtt) {
                return;
            }
            let in_flight = self.batch.in_flight_before(ce.in_flight);
            let was_found = self.stage == Stage::Found;
            self.begin_episode(ce.now, Cause::EcnCe, in_flight, ce.rtt);
            if was_found && self.avoidance.is_scalable() {
                self.recovery.finish();
            }
        } else {
            self.recovery.on_answered_mark();
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let batch = core::mem::take(&mut self.batch);
        let in_flight_before = batch.in_flight_before(ack.in_flight);
        let is_scalable = self.avoidance.is_scalable();
        let acked = batch.acked_before.saturating_add(batch.acked_after);
        if is_scalable {
            self.avoidance.on_marks(&Marks {
                now: ack.now,
                acked,
                marked: batch.marked,
                window: self.window as f64 / self.max_datagram_size as f64,
                rtt: ack.rtt,
            });
        }
        if self.recovery.is_active() {
            self.recover(ack, batch.acked_before);
        }
        let is_jump_validated = self.jump.validate(self.largest_acked, self.next);
        if is_jump_validated && !self.recovery.is_active() {
            let window = in_flight_before.clamp(self.initial().min(self.window), self.window);
            self.set_window(window);
            self.statistics.window_exiting_jump = Some(self.window);
        }
        if !self.recovery.is_active() {
            let (next, initial) = (self.next, self.initial());
            let resumed = self
                .resume
                .on_ack(self.largest_acked, next, ack.in_flight, initial);
            if let Some(window) = resumed {
                self.set_window(window.min(self.window));
                self.statistics.window_exiting_jump = Some(self.window);
            }
            let grows = if is_scalable {
                acked.saturating_sub(batch.marked)
            } else {
                batch.acked_after
            };
            self.grow(ack, grows, in_flight_before);
        }
    }

    fn on_spurious_loss(&mut self, _: Time, packet: &Packet) {
        if let Some(age) = self.recovery.on_late(packet.receipt.send_index()) {
            self.undo(age);
        }
    }

    fn on_mtu(&mut self, max_datagram_size: u64) {
        self.max_datagram_size = max_datagram_size.clamp(1, DATAGRAM_SIZE_MAX);
        if self.is_untouched {
            // RFC 9002 §7.2: the initial window follows the datagram size while nothing has changed it.
            self.window = self.initial();
            self.statistics.initial_window = self.window;
            self.statistics.window_max = self.window;
        } else {
            self.set_window(self.window); // at least the new minimum
        }
    }

    fn on_idle_restart(&mut self, restart: &IdleRestart<'_>) {
        self.avoidance.on_app_limited(restart.now);
        let before = Windows {
            window: self.window,
            slow_start_threshold: self.slow_start_threshold,
        };
        let after = after_idle(self.config.idle, before, self.initial(), restart);
        if after != before {
            self.set_window(after.window);
            if self.slow_start_threshold != u64::MAX {
                self.slow_start_threshold = after.slow_start_threshold;
            }
            self.note_reduction();
        }
    }

    fn on_rebind(&mut self) {
        self.startup.on_rebind();
    }

    fn on_saved_path(&mut self, saved: &SavedPath) {
        let Some(max_jump) = self.config.resume else {
            return;
        };
        let max_jump = max_jump.bytes(self.max_datagram_size).min(WINDOW_MAX);
        self.resume.start(*saved, max_jump);
        self.jump = Jump::new(None);
        self.statistics.saved_path = Some(*saved);
    }

    fn uses_saved_path(&self) -> bool {
        self.config.resume.is_some()
    }

    fn is_scalable(&self) -> bool {
        self.avoidance.is_scalable()
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing(&self, rtt: &Rtt) -> Pacing {
        if !rtt.has_sample() {
            return Pacing::UNLIMITED;
        }
        let rate = Bandwidth::from_delivery(self.window, rtt.smoothed());
        let pacing = Pacing::at(rate.scaled(self.pacing_gain()), self.max_datagram_size);
        let pacing = if self.avoidance.is_scalable() {
            pacing.in_releases_of(SCALABLE_RELEASE, self.max_datagram_size)
        } else {
            pacing
        };
        let burst = self.config.burst;
        pacing.with_burst(burst.map(|burst| burst.bytes(self.max_datagram_size)))
    }

    fn state(&self) -> State {
        State {
            startup: self.startup.name(),
            avoidance: Some(self.avoidance.name()),
            phase: match self.stage {
                _ if self.recovery.is_active() => Phase::Recovery,
                Stage::Startup => self.startup.phase(),
                Stage::ResumedStartup => Phase::Startup,
                Stage::Found if self.is_in_slow_start() => Phase::SlowStart,
                Stage::Found => Phase::Avoidance,
            },
            window: self.window,
            slow_start_threshold: (self.slow_start_threshold != u64::MAX)
                .then_some(self.slow_start_threshold),
            bandwidth: None,
            statistics: self.statistics.clone(),
        }
    }
}

fn minimum_window(config: &Config, max_datagram_size: u64) -> u64 {
    config
        .minimum_window
        .bytes(max_datagram_size)
        .clamp(max_datagram_size, WINDOW_MAX)
}

fn initial_window(config: &Config, max_datagram_size: u64) -> u64 {
    config
        .initial_window
        .bytes(max_datagram_size)
        .min(WINDOW_MAX)
}

/// `bytes × factor`, to the nearest byte.
fn share(bytes: u64, factor: f64) -> u64 {
    libm::round(bytes as f64 * factor) as u64
}

/// `limit` of draft-ietf-ccwg-ratelimited-increase §3 in slow start, where a flight acknowledged adds itself `factor` − 1
/// times.
fn in_slow_start(factor: f64) -> impl Fn(u64) -> u64 {
    move |flight| share(flight, factor)
}

/// What a scalable rule releases at a time, also after a pause, so that its own bursts are not marked: `prague_burst_shift` of
/// Linux.
const SCALABLE_RELEASE: core::time::Duration = core::time::Duration::from_micros(250);
/// Beta of RFC 9959 §3.5, by default.
const RETREAT_BETA: f64 = 0.5;
/// Slow start releases two windows in a round trip, one for those acknowledged and one for growth.
const SLOW_START_GAIN: f64 = 2.0;

#[cfg(test)]
mod tests;
