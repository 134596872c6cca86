//! Sending and retransmission.
//!
//! Owns the states of `tcp_fastretrans_alert`, the retransmission timer with its three uses (timeout, tail loss probe, reordering), and the calls
//! of congestion control.
//!
//! # Decisions
//!
//! - A window-based controller is informed of losses as in Linux: one congestion event for each recovery. Retransmissions that are lost again, and new
//!   data lost in a recovery, count as an event of their own only if they are still missing when the recovery ends. Other controllers (BBR)
//!   are informed of each loss at once.
//! - The window of a recovery is that of proportional rate reduction; after a timeout, it grows from one segment.
//! - A timeout that proves spurious is undone by timestamps (RFC 3522), in place of F-RTO (RFC 5682).

use core::time::Duration;

use lastbyte_congestion::{
    Ack, Controller, Environment, IdleRestart, Loss, Pacer, Packet, Rtt, Sent,
};
use lastbyte_units::Time;

use super::{
    config::Config,
    outgoing::{Outgoing, Payload},
    prr::{Delivery, Prr},
    rack::Rack,
    rto::{RTO_MAX, RTO_MIN, RtoEstimator, timer},
    segment::Segment,
    sent::{Lost, Scoreboard, SentSegment, State},
    statistics::Statistics,
};

/// The sending half of an end.
#[derive(Debug)]
pub(super) struct Sender {
    segment_size: u32,
    pub(super) outgoing: Outgoing,
    sent: Scoreboard,
    /// All bytes below are acknowledged.
    una: u64,
    next: u64,
    /// End of the peer's receive window.
    edge: u64,
    controller: Box<dyn Controller>,
    /// Whether the controller has a window as Linux's own, which proportional rate reduction replaces in recovery.
    is_window_based: bool,
    is_paced: bool,
    slow_start_after_idle: bool,
    rtt: Rtt,
    pub(super) rto: RtoEstimator,
    backoff: u32,
    rack: Rack,
    phase: Phase,
    /// Recovery ends when all bytes below are acknowledged.
    high: u64,
    timer: Option<(Timer, Time)>,
    probe: Option<Probe>,
    /// Whether the next segment is a tail loss probe.
    must_probe: bool,
    pacer: Pacer,
    release_at: Option<Time>,
    sent_at: Option<Time>,
}

/// The states of Linux (`tcp_ca_state`), without those that make no difference here.
#[derive(Debug)]
enum Phase {
    Open,
    Recovery(Prr),
    /// After a retransmission timeout, with the window in bytes.
    Loss(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Retransmission,
    Probe,
    Reordering,
}

/// An outstanding tail loss probe (RFC 8985 §7).
#[derive(Clone, Copy, Debug)]
struct Probe {
    high: u64,
    /// The retransmitted packet and the time, unless it carried new data.
    original: Option<(Packet, Time)>,
}

/// A segment to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmit {
    pub(super) sequence: u64,
    pub(super) payload: Payload,
}

/// Data delivered by an acknowledgment.
#[derive(Debug, Default)]
struct Delivered {
    bytes: u64,
    /// Round-trip times of original transmissions: of the first and the last.
    first_rtt: Option<Duration>,
    last_rtt: Option<Duration>,
}

impl Sender {
    pub(super) fn new(config: &Config) -> Self {
        let controller = config.congestion.build(&Environment {
            max_datagram_size: config.segment_size.into(),
            seed: config.seed,
        });
        let is_window_based = controller.state().avoidance.is_some();
        Self {
            segment_size: config.segment_size,
            outgoing: Outgoing::new(&config.tls),
            sent: Scoreboard::default(),
            una: 0,
            next: 0,
            edge: 0,
            is_paced: config.is_paced || !is_window_based,
            is_window_based,
            controller,
            slow_start_after_idle: config.slow_start_after_idle,
            rtt: Rtt::default(),
            rto: RtoEstimator::default(),
            backoff: 0,
            rack: Rack::new(),
            phase: Phase::Open,
            high: 0,
            timer: None,
            probe: None,
            must_probe: false,
            pacer: Pacer::new(),
            release_at: None,
            sent_at: None,
        }
    }

    /// The handshake took a sample of the round-trip time, and the peer accepts data up to `edge`.
    pub(super) fn on_established(&mut self, now: Time, sample: Option<Duration>, edge: u64) {
        self.edge = edge;
        if let Some(sample) = sample {
            self.take_rtt(now, sample, sample);
        }
    }

    pub(super) fn window(&self) -> u64 {
        let window = self.controller.window();
        match &self.phase {
            Phase::Recovery(prr) if self.is_window_based => prr.window(),
            Phase::Loss(limit) => window.min(*limit),
            _ => window,
        }
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Payload that was written and not acknowledged, in bytes.
    pub(super) fn buffered(&self) -> u64 {
        self.next - self.una + self.outgoing.unsent()
    }

    // ---- sending --------------------------------------------------------------------------------------------------

    pub(super) fn poll(&mut self, now: Time, statistics: &mut Statistics) -> Option<Transmit> {
        if core::mem::take(&mut self.must_probe) {
            return self.send_probe(now, statistics);
        }
        let room = self.window().saturating_sub(self.sent.in_flight());
        if room < u64::from(self.segment_size) {
            return None;
        }
        if self.sent.lost() == 0 && !self.outgoing.has_data() {
            self.controller.on_app_limited(now, self.sent.in_flight());
            return None;
        }
        if self.sent.len() == 0 {
            self.restart_after_idle(now);
        }
        if self.is_paced {
            let pacing = self.controller.pacing(&self.rtt);
            if self.pacer.budget(now, &pacing) < u64::from(self.segment_size) {
                self.release_at = self.pacer.next_release(now, &pacing);
                return None;
            }
        }
        if self.sent.lost() > 0 {
            return self.retransmit_lost(now, statistics);
        }
        self.send_new(now, statistics)
    }

    fn send_new(&mut self, now: Time, statistics: &mut Statistics) -> Option<Transmit> {
        let room = self.edge.saturating_sub(self.next);
        let max = u64::from(self.segment_size).min(room) as u32;
        // A segment that the peer's window would truncate waits while others are in flight (`tcp_snd_wnd_test`).
        if max < self.segment_size && self.sent.len() > 0 {
            return None;
        }
        let payload = self.outgoing.take(max)?;
        let sequence = self.next;
        let was_empty = self.sent.len() == 0;
        let segment = SentSegment {
            sequence,
            payload,
            sent_at: now,
            receipt: self.on_sent(now, payload.len, payload.len, statistics),
            state: State::InFlight,
            retransmissions: 0,
            lost: None,
        };
        self.sent.push(segment);
        self.next += u64::from(payload.len);
        if was_empty || self.timer.is_none_or(|(timer, _)| timer == Timer::Probe) {
            self.set_timer(now, false);
        }
        Some(Transmit { sequence, payload })
    }

    fn retransmit_lost(&mut self, now: Time, statistics: &mut Statistics) -> Option<Transmit> {
        let is_head = self
            .sent
            .front()
            .is_some_and(|head| head.state == State::Lost);
        let len = self.sent.next_lost()?.payload.len;
        let receipt = self.on_sent(now, len, len, statistics);
        statistics.bytes_retransmitted += u64::from(len);
        let segment = self.sent.next_lost()?;
        segment.sent_at = now;
        segment.receipt = receipt;
        segment.state = State::InFlight;
        segment.retransmissions += 1;
        let transmit = Transmit {
            sequence: segment.sequence,
            payload: segment.payload,
        };
        self.sent.on_retransmitted(len);
        if is_head
            && self
                .timer
                .is_none_or(|(timer, _)| timer != Timer::Reordering)
        {
            self.timer = Some((Timer::Retransmission, timer(now, self.backed_off())));
        }
        Some(transmit)
    }

    /// RFC 8985 §7.3 (`tcp_send_loss_probe`): new data, regardless of the window, or the last segment again.
    fn send_probe(&mut self, now: Time, statistics: &mut Statistics) -> Option<Transmit> {
        statistics.tail_loss_probes += 1;
        let has_room = self.edge.saturating_sub(self.next) >= u64::from(self.segment_size);
        self.timer = Some((Timer::Retransmission, timer(now, self.backed_off())));
        if self.outgoing.has_data() && has_room {
            let transmit = self.send_new(now, statistics);
            self.probe = Some(Probe {
                high: self.next,
                original: None,
            });
            return transmit;
        }
        let last = self
            .sent
            .last()
            .filter(|last| last.state == State::InFlight)?;
        let (packet, len) = (last.packet(), last.payload.len);
        let receipt = self.on_sent(now, len, 0, statistics);
        statistics.bytes_retransmitted += u64::from(len);
        let last = self.sent.last()?;
        last.sent_at = now;
        last.receipt = receipt;
        last.retransmissions += 1;
        let transmit = Transmit {
            sequence: last.sequence,
            payload: last.payload,
        };
        self.probe = Some(Probe {
            high: self.next,
            original: Some((packet, now)),
        });
        Some(transmit)
    }

    /// `added`: increase of the bytes in flight.
    fn on_sent(
        &mut self,
        now: Time,
        len: u32,
        added: u32,
        statistics: &mut Statistics,
    ) -> lastbyte_congestion::Receipt {
        statistics.bytes_sent += u64::from(len);
        if let Phase::Recovery(prr) = &mut self.phase {
            prr.on_sent(len.into());
        }
        if self.is_paced {
            let pacing = self.controller.pacing(&self.rtt);
            self.pacer.on_sent(now, len.into(), &pacing);
        }
        self.release_at = None;
        self.sent_at = Some(now);
        self.controller.on_sent(&Sent {
            now,
            bytes: len.into(),
            in_flight: self.sent.in_flight() + u64::from(added),
            rtt: &self.rtt,
        })
    }

    /// `tcp_slow_start_after_idle_check`: halves the window for each timeout of the pause but the first.
    fn restart_after_idle(&mut self, now: Time) {
        let Some(idle) = self.sent_at.map(|at| now.since(at)) else {
            return;
        };
        let rto = self.rto.timeout();
        if !self.slow_start_after_idle || !self.is_window_based || idle <= rto {
            return;
        }
        let halvings = (idle.as_nanos() - 1) / rto.as_nanos().max(1);
        let halvings = u32::try_from(halvings).unwrap_or(u32::MAX).min(64);
        // The controller counts in probe timeouts of its own.
        let idle = self
            .rtt
            .probe_timeout(Duration::ZERO)
            .saturating_mul(halvings);
        self.controller.on_idle_restart(&IdleRestart {
            now,
            idle,
            rtt: &self.rtt,
        });
        self.sent_at = Some(now);
    }

    // ---- acknowledgments ------------------------------------------------------------------------------------------

    pub(super) fn on_ack(&mut self, now: Time, segment: &Segment, statistics: &mut Statistics) {
        if segment.ack < self.una || segment.ack > self.next {
            return;
        }
        self.edge = self.edge.max(segment.ack + segment.window);
        let has_advanced = segment.ack > self.una;
        let mut delivered = Delivered::default();
        let mut has_retransmitted = false;
        while let Some(sent) = self.sent.acknowledge(segment.ack) {
            has_retransmitted |= sent.retransmissions > 0;
            if sent.state != State::Sacked {
                let (controller, rack) = (&mut *self.controller, &mut self.rack);
                deliver(now, &sent, segment.echo, controller, rack, &mut delivered);
            }
        }
        self.una = segment.ack;
        if has_retransmitted {
            // The acknowledgment may have waited for a retransmission (`FLAG_RETRANS_DATA_ACKED`): its echo is the sample.
            (delivered.first_rtt, delivered.last_rtt) = (None, None);
        }
        let blocks = segment.sack.iter().take(segment.sack_count.into());
        for block in blocks.skip(usize::from(segment.is_dsack)) {
            let (controller, rack) = (&mut *self.controller, &mut self.rack);
            self.sent.sack(*block, |sent| {
                deliver(now, sent, None, controller, rack, &mut delivered);
            });
        }
        if delivered.bytes == 0 && !has_advanced {
            return;
        }
        let echoed = segment
            .echo
            .filter(|_| has_advanced)
            .map(|at| now.since(at));
        if let Some(sample) = delivered.first_rtt.or(echoed) {
            self.backoff = 0;
            self.take_rtt(now, sample, delivered.last_rtt.unwrap_or(sample));
        }
        if has_advanced {
            self.backoff = 0;
        }
        self.end_probe(now, segment);
        let (found, wait) = self.detect_loss(now, statistics);
        self.advance_phase(now, found, delivered.bytes, has_advanced);
        let is_recovering = matches!(self.phase, Phase::Recovery(_));
        if is_recovering && self.is_window_based {
            // Recovery sets the window: it does not grow.
            self.controller.on_app_limited(now, 0);
        }
        self.controller.on_ack(&Ack {
            now,
            in_flight: self.sent.in_flight(),
            rtt: &self.rtt,
            has_rtt_sample: delivered.last_rtt.is_some(),
        });
        if self.sent.len() == 0 {
            self.timer = None;
        } else if let Some(wait) = wait {
            let span = (wait + TIMEOUT_MIN).min(self.rto.timeout());
            self.timer = Some((Timer::Reordering, timer(now, span)));
        } else if has_advanced
            || self
                .timer
                .is_none_or(|(timer, _)| timer == Timer::Reordering)
        {
            self.set_timer(now, true);
        }
    }

    fn take_rtt(&mut self, now: Time, sample: Duration, last: Duration) {
        self.rto.update(sample, self.una, self.next);
        self.rack.on_rtt(last);
        self.rtt.update(now, last, Duration::ZERO, None);
    }

    /// RFC 8985 §7.4 (`tcp_process_tlp_ack`): a probe that repaired a loss is a congestion event.
    fn end_probe(&mut self, now: Time, segment: &Segment) {
        let Some(probe) = self.probe.take_if(|probe| segment.ack >= probe.high) else {
            return;
        };
        let Some((packet, sent_at)) = probe.original else {
            return;
        };
        let is_by_probe = segment.echo.is_some_and(|echo| echo >= sent_at) && !segment.is_dsack;
        if is_by_probe && matches!(self.phase, Phase::Open) {
            self.controller.on_packet_lost(now, &packet);
            self.report_losses(now, false);
        }
    }

    /// Declares segments lost (RFC 8985 §6.2, step 5). Returns whether there were any, and the time until more may be.
    fn detect_loss(&mut self, now: Time, statistics: &mut Statistics) -> (bool, Option<Duration>) {
        let smoothed = self.rto.smoothed().unwrap_or_default();
        let is_recovering = !matches!(self.phase, Phase::Open);
        let window = self
            .rack
            .reordering_window(is_recovering, self.sent.sacked(), smoothed);
        let (rack, mut wait) = (&self.rack, None);
        let found = self.sent.declare_lost(|sent| {
            let transmission = sent.transmission();
            if !rack.is_before(transmission) {
                // Later ones were sent later, except retransmissions.
                return transmission.is_retransmission.then_some(false);
            }
            let remaining = rack.remaining(now, transmission, window);
            if !remaining.is_zero() {
                wait = wait.max(Some(remaining));
            }
            Some(remaining.is_zero())
        });
        statistics.segments_lost += found as u64;
        (found > 0, wait)
    }

    /// The transitions of `tcp_fastretrans_alert`.
    fn advance_phase(&mut self, now: Time, has_found: bool, delivered: u64, has_advanced: bool) {
        let has_ended = !matches!(self.phase, Phase::Open) && self.una >= self.high;
        if has_ended {
            self.phase = Phase::Open;
        }
        if !self.is_window_based && has_found {
            self.report_lost_segments(now, |_| true);
        }
        match &mut self.phase {
            Phase::Open => {
                let is_missing = self.sent.lost() > 0
                    || (has_ended && self.sent.iter_mut().any(|sent| is_unreported(sent)));
                if is_missing {
                    self.enter_recovery(now);
                }
            }
            Phase::Recovery(_) => {
                // Losses of earlier transmissions belong to this event.
                if has_found && self.is_window_based {
                    let high = self.high;
                    self.report_lost_segments(now, |sent| {
                        sent.retransmissions == 0 && sent.sequence < high
                    });
                }
            }
            Phase::Loss(limit) => {
                *limit += delivered;
                let has_lost_again = has_found
                    && self
                        .sent
                        .iter_mut()
                        .any(|sent| sent.retransmissions > 0 && sent.state == State::Lost);
                if has_lost_again {
                    self.enter_recovery(now);
                }
            }
        }
        let in_flight = self.sent.in_flight();
        let threshold = self.controller.window();
        if let Phase::Recovery(prr) = &mut self.phase {
            prr.on_ack(&Delivery {
                delivered,
                in_flight,
                threshold,
                is_good: has_advanced && !has_found,
            });
        }
    }

    fn enter_recovery(&mut self, now: Time) {
        let prior = self.controller.window();
        self.high = self.next;
        self.probe = None;
        self.phase = Phase::Recovery(Prr::new(self.segment_size.into(), prior));
        self.report_lost_segments(now, |_| true);
    }

    /// Reports lost segments that congestion control has not been informed of.
    fn report_lost_segments(&mut self, now: Time, belongs: impl Fn(&SentSegment) -> bool) {
        let mut has_any = false;
        for sent in self.sent.iter_mut() {
            if belongs(sent)
                && sent.state != State::Sacked
                && let Some(lost) = &mut sent.lost
                && !core::mem::replace(&mut lost.is_reported, true)
            {
                has_any = true;
                self.controller.on_packet_lost(now, &lost.packet);
            }
        }
        if has_any {
            self.report_losses(now, false);
        }
    }

    fn report_losses(&mut self, now: Time, persistent: bool) {
        self.controller.on_lost(&Loss {
            now,
            in_flight: self.sent.in_flight(),
            rtt: &self.rtt,
            persistent,
        });
    }

    // ---- timers ---------------------------------------------------------------------------------------------------

    pub(super) fn deadline(&self) -> Option<Time> {
        Time::earlier(self.timer.map(|(_, at)| at), self.release_at)
    }

    pub(super) fn on_timeout(&mut self, now: Time, statistics: &mut Statistics) {
        self.release_at.take_if(|at| *at <= now);
        let Some((timer, _)) = self.timer.take_if(|(_, at)| *at <= now) else {
            return;
        };
        match timer {
            Timer::Probe if self.probe.is_none() => self.must_probe = true,
            Timer::Probe => self.set_timer(now, false),
            Timer::Reordering => {
                // Counts as the delivery of a segment where recovery begins (`tcp_rack_reo_timeout`).
                let is_new = matches!(self.phase, Phase::Open);
                let delivered = if is_new { self.segment_size.into() } else { 0 };
                let (found, _) = self.detect_loss(now, statistics);
                self.advance_phase(now, found, delivered, false);
                self.set_timer(now, false);
            }
            Timer::Retransmission => self.on_retransmission_timeout(now, statistics),
        }
    }

    /// `tcp_retransmit_timer`, `tcp_enter_loss`
    fn on_retransmission_timeout(&mut self, now: Time, statistics: &mut Statistics) {
        statistics.retransmission_timeouts += 1;
        let is_new_event = matches!(self.phase, Phase::Open);
        let (rack, mut is_head) = (&self.rack, true);
        // Segments sent within the last round trip may still arrive (`tcp_timeout_mark_lost`).
        let found = self.sent.declare_lost(|sent| {
            let is_recent = !rack
                .remaining(now, sent.transmission(), Duration::ZERO)
                .is_zero();
            Some(core::mem::take(&mut is_head) || !is_recent)
        });
        statistics.segments_lost += found as u64;
        if is_new_event || !self.is_window_based {
            self.high = self.next;
            self.report_lost_segments(now, |_| true);
        } else {
            // The window was reduced for this.
            for sent in self.sent.iter_mut() {
                if let Some(lost) = &mut sent.lost {
                    lost.is_reported = true;
                }
            }
        }
        self.high = self.next;
        self.report_losses(now, true);
        self.phase = Phase::Loss(self.sent.in_flight() + u64::from(self.segment_size));
        self.probe = None;
        self.backoff = (self.backoff + 1).min(16);
        self.timer = Some((Timer::Retransmission, timer(now, self.backed_off())));
    }

    fn backed_off(&self) -> Duration {
        self.rto
            .timeout()
            .saturating_mul(1 << self.backoff)
            .min(RTO_MAX)
    }

    /// A tail loss probe if one may be sent (`tcp_schedule_loss_probe`), else the timeout (`tcp_rearm_rto`).
    fn set_timer(&mut self, now: Time, is_by_ack: bool) {
        let Some(head) = self.sent.front() else {
            self.timer = None;
            return;
        };
        let rto = self.backed_off();
        // With a probe or reordering timer before, the timeout counts from the transmission of the first segment.
        let since_head = (head.sent_at + rto).since(now);
        let may_probe = matches!(self.phase, Phase::Open)
            && self.sent.sacked() == 0
            && self.sent.lost() == 0
            && self.probe.is_none();
        if may_probe && let Some(smoothed) = self.rto.smoothed() {
            let more = if self.sent.len() == 1 {
                RTO_MIN
            } else {
                TIMEOUT_MIN
            };
            let limit = if is_by_ack { rto } else { since_head };
            let span = (2 * smoothed + more).min(if limit.is_zero() { rto } else { limit });
            self.timer = Some((Timer::Probe, timer(now, span)));
            return;
        }
        let was = self.timer.map(|(timer, _)| timer);
        let span = match was {
            Some(Timer::Probe | Timer::Reordering) => since_head.max(Duration::from_micros(1)),
            _ => rto,
        };
        self.timer = Some((Timer::Retransmission, timer(now, span)));
    }
}

/// A segment is acknowledged for the first time; `echo` is the timestamp echoed, if all below is acknowledged.
fn deliver(
    now: Time,
    sent: &SentSegment,
    echo: Option<Time>,
    controller: &mut dyn Controller,
    rack: &mut Rack,
    delivered: &mut Delivered,
) {
    delivered.bytes += u64::from(sent.payload.len);
    if sent.retransmissions == 0 {
        let rtt = now.since(sent.sent_at);
        delivered.first_rtt.get_or_insert(rtt);
        delivered.last_rtt = Some(rtt);
        rack.on_rtt(rtt);
    }
    rack.on_delivered(now, sent.transmission());
    let is_original = echo.is_some_and(|echo| echo < sent.sent_at);
    match sent.lost {
        // Not retransmitted, or the acknowledgment is for the original transmission (RFC 3522).
        Some(lost) if lost.is_reported && (sent.state == State::Lost || is_original) => {
            controller.on_spurious_loss(now, &lost.packet);
            if sent.state == State::InFlight {
                controller.on_packet_acked(now, &sent.packet());
            }
        }
        _ => controller.on_packet_acked(now, &sent.packet()),
    }
}

/// Whether congestion control has not been informed of the loss of a segment that is still missing.
const fn is_unreported(sent: &SentSegment) -> bool {
    match sent.lost {
        Some(Lost { is_reported, .. }) => !is_reported && !matches!(sent.state, State::Sacked),
        None => false,
    }
}

/// `TCP_TIMEOUT_MIN_US`
const TIMEOUT_MIN: Duration = Duration::from_millis(2);
