//! BBR version 3, as of draft-ietf-ccwg-bbr-06 (July 2026).
//!
//! BBR builds a model of the path, its bandwidth and its round-trip time, and sends at the rate and with the volume in
//! flight that the model requires. Loss is one signal among others: tolerated below 2 % a round, and a bound above.
//! Comments name the draft's functions (`UpdateMaxBw()`) and variables (`BBR.max_bw`), so that a search for them leads
//! here.
//!
//! | file | owns | draft |
//! |---|---|---|
//! | `bbr.rs` | the order of steps | §5.2 |
//! | `mode.rs` | states, gains, caps | §5.6.1 |
//! | `constants.rs` | numbers | §2 |
//! | `startup.rs`, `full_pipe.rs`, `drain.rs` | the first search | §5.3.1, §5.3.2 |
//! | `probe_bandwidth.rs` | the cycle | §5.3.3 |
//! | `probe_rtt.rs` | measuring the empty path, restart from idle | §5.3.4, §5.4 |
//! | `model.rs` | filters and bounds | §5.5.1 to §5.5.9 |
//! | `loss.rs` | losses into bounds | §5.5.10 |
//! | `recovery.rs` | episodes, undo, persistent congestion | §5.5.11, §5.6.4.4 |
//! | `control.rs` | pacing rate, quantum, window | §5.6 |
//! | `random.rs` | random waiting times | §5.3.3.8 |
//!
//! Delivery-rate samples come from the [`sampler`](crate::sampler).
//!
//! # Decisions
//!
//! Where the draft contradicts itself or is silent:
//!
//! 1. In Drain the long-term bound caps no window: the pseudocode of §5.6.4.7 is followed, not the table of §5.6.1. The
//!    two differ only after loss ended Startup, and then the gain of Drain empties the queue.
//! 2. `Inflight()` takes the bandwidth: `bw` to leave Drain, `max_bw` to leave DOWN.
//! 3. Gains are functions of the state. So `SetPacingRate()` uses the state's (the draft writes `C.pacing_gain`), and
//!    the window gain 2.25 of UP ends with UP.
//! 4. `ProbeRTT` takes the window down to max(0.5 × BDP, 4 datagrams), as the pseudocode has it, and saves the window
//!    before the state changes: saved after, as written, it would be mixed with a much older one.
//! 5. Drain ends by time when `round_count` exceeds its start by more than 3, as the pseudocode has it: in the fourth
//!    round.
//! 6. High loss in Startup sets only `full_bw_reached`, as in the body; `full_bw_now` of the test appendix would be
//!    reset before it is read.
//! 7. The time scale of Reno counts datagrams: target in flight ÷ datagram size, at least 4. Without the minimum, a
//!    path that holds less than a datagram would probe continuously.
//! 8. `min_rtt` and its companion start infinite, and their times with the first sample. A fresh `extra_acked` interval
//!    starts with the first ACK.
//! 9. An ACK whose rate sample is not plausible ([`RateSample::rate`] is `None`) advances rounds and the window but is
//!    no evidence of a plateau or of a maximum. An ACK that acknowledges nothing in flight changes nothing.
//! 10. A bandwidth of zero sets no pacing rate, and none is set below one datagram a second: either could stall.
//! 11. "In flight reaches the long-term bound" (§5.3.3.6) is evaluated before the ACK and to within a datagram, since
//!     the window, capped at the bound, is never full after an ACK.
//! 12. `C.is_cwnd_limited`: a packet was sent, in this round or the last, after which no further one fitted the window.
//! 13. State is saved once, when an episode begins, not again with each round's first loss, which would save what the
//!     episode itself has changed. An episode is undone when the last of its losses turns out spurious, unless packets
//!     were marked CE in it.
//! 14. An ECN-CE mark is a loss of zero bytes: it opens an episode and makes the short-term bounds adapt at the round's
//!     end, as RFC 8311 and RFC 3168 ask for a response, but it adds nothing to a loss rate, so it ends neither Startup
//!     nor a probe. The draft specifies no response.
//! 15. Persistent congestion is the draft's RTO. The window is then reduced to the bytes in flight plus a datagram, but
//!     not below 4
//!     datagrams, to which the next ACK would raise it anyway.
//! 16. The burst after a pause is two quanta: one as in the draft, and one to compensate for late timers.
//! 17. Restarting from idle paces at `bw` less the margin of 1 %, by the draft's pseudocode. It is noticed in
//!     [`on_sent`](Controller::on_sent) too, so that short pauses, which a transport need not announce, count.
//! 18. Startup's first pacing rate is that for 1 ms until the first RTT sample (§5.6.2); BBR never leaves pacing off.
//!
//! # Known limits
//!
//! - Only the latest four episodes can be undone. Reordering that lasts longer, with loss thresholds that do not adapt
//!   to it, multiplies the short-term bounds by 0.7 in each round.
//! - Where a round takes more than a second or so, `ProbeRTT`, due every five seconds, can end each probe before its
//!   last ACKs have arrived. Then the bandwidth filter does not advance, and a path that became slower is noticed only
//!   by its losses. The draft requires both.
//! - An initial window that is many times what the path holds is lost in part, round by round: with the preset's 30 datagrams
//!   over 64 kb/s, 100 ms and a queue of 30 packets, Startup lasts for 88 s and 31 % of the packets of 1 MB are lost; with ten, none
//!   are. The losses of a round are one contiguous range, so the rule that wants six ranges does not end Startup, and `ProbeRTT`
//!   interrupts each plateau. Over 128 kb/s it is 26 s and 21 %, over 256 kb/s 3 s and 6 %.
//! - After a blackout of seconds, `ProbeRTT` may be due as the path returns. Its window is then below what is in flight, and
//!   where the tail of that was dropped nothing is sent until the probe timeout, which counts from a round trip as long as the
//!   blackout: 20 MB over 20 Mb/s with a blackout of 6 s take 19 s, and 14.4 to 15.1 s with the other controllers.

mod constants;
mod control;
mod drain;
mod full_pipe;
mod loss;
mod mode;
mod model;
mod probe_bandwidth;
mod probe_rtt;
mod random;
mod recovery;
mod startup;

use lastbyte_units::Time;

use self::{
    constants::NOMINAL_RTT,
    control::initial_pacing_rate,
    full_pipe::FullPipe,
    loss::LossRound,
    mode::Mode,
    model::{Bounds, ExtraAcked, MaxBandwidth, MinRtt, Rounds},
    probe_bandwidth::Cycle,
    probe_rtt::Hold,
    random::Random,
    recovery::Recovery,
};
use crate::{
    bandwidth::Bandwidth,
    controller::{
        Ack, Controller, DATAGRAM_SIZE_MAX, EcnCe, IdleRestart, Loss, Pacing, Packet, Receipt,
        Sent, WINDOW_MAX,
    },
    rtt::Rtt,
    sampler::{DeliveryRateSampler, RateSample},
    state::{State, Statistics},
};

/// The initial configuration of a [`Bbr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The initial window in bytes (`C.InitialCwnd`; RFC 9002 §7.2 recommends ten datagrams). Less than four datagrams
    /// counts as four. If it is too large, the first flight overflows the queue.
    pub initial_window: u64,
    /// The size of a full datagram, in bytes of UDP payload (`C.SMSS`). Zero counts as one; values above 65 527 are
    /// clamped.
    pub max_datagram_size: u64,
    /// The seed of the random waits between bandwidth probes. Flows that share a path should use different seeds; the
    /// same seed gives the same behaviour.
    pub seed: u64,
    /// The burst after a pause in bytes, at least a quantum; `None` for two quanta.
    pub burst: Option<u64>,
}

/// BBR version 3. See the [module](self).
///
/// ```
/// use lastbyte_congestion::{Bbr, Controller, bbr::Config};
///
/// let bbr = Bbr::new(Config { initial_window: 12_000, max_datagram_size: 1200, seed: 1, burst: None });
/// assert_eq!(bbr.window(), 12_000);
/// assert_eq!(bbr.state().phase.name(), "startup");
/// ```
#[derive(Clone, Debug)]
pub struct Bbr {
    initial_window: u64,
    burst: Option<u64>,
    max_datagram_size: u64,
    random: Random,
    sampler: DeliveryRateSampler,
    /// The send index of the next packet.
    next_send_index: u64,
    mode: Mode,

    // The model.
    rounds: Rounds,
    max_bandwidth: MaxBandwidth,
    min_rtt: MinRtt,
    extra_acked: ExtraAcked,
    full_pipe: FullPipe,
    losses: LossRound,
    bounds: Bounds,
    /// `BBR.bw`: the bandwidth estimate within its short-term bound.
    bandwidth: Bandwidth,

    // The states.
    drain_start_round: u64,
    cycle: Cycle,
    /// In `ProbeRTT`, once the bytes in flight are low enough.
    probe_rtt_hold: Option<Hold>,
    is_idle_restart: bool,
    recovery: Recovery,

    // The controls.
    window: u64,
    /// The last round in which the window was full.
    window_limited_round: Option<u64>,
    pacing_rate: Bandwidth,
    has_rtt: bool,
    statistics: Statistics,
}

impl Bbr {
    /// A controller for a path about which nothing is known (`OnInit()`, §5.2.1).
    #[must_use]
    pub fn new(config: Config) -> Self {
        let max_datagram_size = config.max_datagram_size.clamp(1, DATAGRAM_SIZE_MAX);
        let minimum = max_datagram_size.saturating_mul(constants::MIN_PIPE_DATAGRAMS);
        let initial_window = config.initial_window.max(minimum).min(WINDOW_MAX);
        Self {
            initial_window,
            burst: config.burst,
            max_datagram_size,
            random: Random::new(config.seed),
            sampler: DeliveryRateSampler::default(),
            next_send_index: 0,
            mode: Mode::Startup,
            rounds: Rounds::default(),
            max_bandwidth: MaxBandwidth::default(),
            min_rtt: MinRtt::default(),
            extra_acked: ExtraAcked::default(),
            full_pipe: FullPipe::default(),
            losses: LossRound::default(),
            bounds: Bounds::NONE,
            bandwidth: Bandwidth::ZERO,
            drain_start_round: 0,
            cycle: Cycle::default(),
            probe_rtt_hold: None,
            is_idle_restart: false,
            recovery: Recovery::default(),
            window: initial_window,
            window_limited_round: None,
            pacing_rate: initial_pacing_rate(initial_window, NOMINAL_RTT),
            has_rtt: false,
            statistics: Statistics::new(initial_window),
        }
    }

    /// `UpdateModelAndState()`, §5.2.3.
    fn update_model_and_state(&mut self, ack: &Ack<'_>, sample: &RateSample) {
        let delivered = self.sampler.delivered();
        self.losses.on_sample(sample, delivered);
        self.rounds.on_sample(sample, delivered);
        self.max_bandwidth.on_sample(sample);
        if self.losses.round_ended {
            self.adapt_lower_bounds();
        }
        self.extra_acked.on_ack(
            ack.now,
            sample.newly_acked,
            self.bandwidth,
            self.window,
            &self.rounds,
        );
        if self.rounds.started {
            self.full_pipe.on_round(sample);
        }
        self.check_startup_done(ack.now, sample);
        self.check_drain_done(ack.now, ack.in_flight);
        self.update_cycle(ack.now, ack.in_flight, sample);
        self.min_rtt.on_sample(ack.now, sample.rtt);
        self.check_probe_rtt(ack.now, ack.in_flight, sample);
        self.losses.advance(sample);
        self.bandwidth = self
            .max_bandwidth
            .value()
            .min(self.bounds.bandwidth_shortterm);
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, sent: &Sent<'_>) -> Receipt {
        if sent.in_flight <= sent.bytes && self.sampler.is_app_limited() {
            self.restart_from_idle(sent.now);
        }
        if sent.in_flight.saturating_add(self.max_datagram_size) > self.window {
            self.window_limited_round = Some(self.rounds.count);
        }
        let send_index = self.next_send_index;
        self.next_send_index = send_index.saturating_add(1);
        Receipt::with_delivery(send_index, self.sampler.on_sent(sent))
    }

    fn on_app_limited(&mut self, _now: Time, in_flight: u64) {
        self.sampler.on_app_limited(in_flight);
    }

    fn on_packet_acked(&mut self, now: Time, packet: &Packet) {
        self.sampler.on_packet_acked(now, packet);
        self.check_recovery_done(packet.receipt.send_index());
    }

    fn on_packet_lost(&mut self, now: Time, packet: &Packet) {
        self.sampler.on_packet_lost(packet);
        self.statistics.on_packet_lost(packet.sent_at);
        self.join_episode(packet.receipt.send_index());
        self.handle_lost_packet(now, packet);
    }

    fn on_lost(&mut self, loss: &Loss<'_>) {
        if loss.persistent {
            self.enter_persistent_congestion(loss);
        }
    }

    fn on_ecn_ce(&mut self, ce: &EcnCe<'_>) {
        if self.mark_episode(ce.largest_acked.send_index()) {
            self.losses.note(self.sampler.delivered());
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let Some(sample) = self.sampler.take_sample(ack.rtt.min_or_zero()) else {
            return;
        };
        self.update_model_and_state(ack, &sample);
        self.learn_first_rtt(ack);
        self.set_pacing_rate(self.mode.pacing_gain());
        self.update_window(sample.newly_acked);
    }

    fn on_spurious_loss(&mut self, now: Time, packet: &Packet) {
        self.sampler.on_spurious_loss(now, packet);
        self.check_spurious(packet.receipt.send_index());
    }

    fn on_mtu(&mut self, max_datagram_size: u64) {
        self.max_datagram_size = max_datagram_size.clamp(1, DATAGRAM_SIZE_MAX);
        self.set_window(self.window.max(self.min_pipe()));
    }

    fn on_idle_restart(&mut self, restart: &IdleRestart<'_>) {
        self.restart_from_idle(restart.now);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing(&self, _rtt: &Rtt) -> Pacing {
        let quantum = self.quantum();
        Pacing {
            rate: self.pacing_rate,
            quantum,
            burst: quantum.saturating_mul(2),
        }
        .with_burst(self.burst)
    }

    fn state(&self) -> State {
        State {
            startup: "bbr",
            avoidance: None,
            phase: self.mode.phase(),
            window: self.window,
            slow_start_threshold: None,
            bandwidth: Some(self.bandwidth),
            statistics: self.statistics.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
