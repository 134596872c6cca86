//! C4, Christian's Congestion Control Code, as of the editors' copy of draft-huitema-ccwg-c4-spec after -04 (summer of 2026).
//!
//! C4 is made for real-time media: it sends at its estimate of the available rate (*nominal rate*), and counts delays as
//! congestion that exceed what the path's jitter explains (*nominal max RTT*). The more a flow uses, the more sensitive it is
//! to delays, losses and CE marks, so that flows converge. Comments name the draft's variables (`nominal_rate`).
//!
//! | state | rate and window, of the nominal ones | until |
//! |---|---|---|
//! | Initial | 2 | the nominal rate has not increased for 3 eras, or congestion |
//! | Resuming, after an earlier connection's visit (RFC 9959) | half of the saved window, in a round trip | 2 eras, or congestion; then Recovery |
//! | Recovery | 15/16, to drain a queue 7/8 | one era |
//! | Cruising | 1 | 2 eras, or congestion |
//! | Probing | 17/16, with CE marks 33/32 | one era, or congestion; then Recovery |
//! | Pushing, after a Recovery that shows that Probing succeeded | 5/4 | the rate stops growing, or congestion; after 3 eras: Initial |
//!
//! An *era* is a round trip: it ends when a packet sent in it is acknowledged. Rates are those of the [`sampler`](crate::sampler),
//! round-trip times are adjusted for the peer's delay ([`Rtt::adjusted`]).
//!
//! # Decisions
//!
//! Where the draft contradicts itself or is silent:
//!
//! 1. §3.1: the nominal rate is *raised* to a higher estimate, as the text says; the comparison in the formula is the other way round.
//! 2. §4.1: the margin is a time (at most 15 ms) and is added to the nominal max RTT; the formula adds it to the rate. The quantum is
//!    the largest burst, as of the token bucket in §6.2; what is released at a time is [`Pacing::at`]'s millisecond.
//! 3. §5.5.1: beta of a delay signal is (sample − reference) ÷ threshold; the formula's parentheses are misplaced.
//! 4. §4.5, Probing after two eras of Cruising, is followed, not the overview in §4 (Pushing after four round trips).
//! 5. "Does not increase" in Initial (§4.2) means: by less than 1/16 in an era. Estimates rise a little for as long as the queue grows,
//!    so that Initial would not end before packets are lost. "If the data rate did increase" after Probing (§4.4) means: by three
//!    quarters of what was added, as §4.7 requires of Pushing (3/16 of 1/4).
//! 6. Eras in which the application had nothing to send do not count towards the end of Cruising, as in §4, nor of Initial.
//!    The first estimate is of a packet that was sent with half of the initial window in flight or more: the few packets of a
//!    handshake would set the pacing rate of the first flight.
//! 7. Congestion reduces the nominal rate only in Cruising (§5.5). §4.7 can be read as if it did in Pushing as well, for packets sent
//!    before.
//! 8. The nominal max RTT at the end of Initial (§4.2) is limited like a measurement (§3.2): 250 ms above the running minimum.
//!    A sample above that limit ends Initial even if the nominal rate increases: while another flow yields, it does, and two seconds of
//!    queue were seen in a bottleneck that marks and does not drop.
//! 9. Persistent congestion within the meaning of §5.5.2 never raises the nominal rate: it is set to the recent maximum rate if that is
//!    lower. RFC 9002's persistent congestion, about which the draft says nothing, restarts Initial with the minimum window.
//! 10. The share of marks (§5.4) is updated at most four times in a round trip, by 16 packets or more ([`signals`]); `delta_ect1` is the
//!     number of packets acknowledged less the increase of CE marks.
//! 11. Before the first estimate, the initial window is sent without pacing, as §4.1 says, and its size is that of the other
//!     presets. Window growth in Initial requires that the sender is not application-limited (RFC 9002 §7.8).
//! 12. High jitter restarts Initial once (§4.4.1), as in the text of 7 July 2026; the later one does not repeat that limit. It is
//!     looked for only after a measurement, not after the estimate at the end of Initial.
//! 13. A Recovery that drains a queue has alpha 7/8, as in the section on draining; the table in §4.1 has 3/4. "If the path RTT is
//!     reduced": an era's minimum is below the running minimum. A cycle, for trimming, begins with Cruising.
//! 14. Resuming (§4.3) is entered from Initial, as in the state diagram, once RFC 9959 allows a jump: the initial window is acknowledged
//!     without a loss, and the minimum round-trip time fits the saved one (§3.2 and §4.2.1 there). What is remembered is used as
//!     §3.3 there requires: at most half of the saved window, in the present round-trip time. A queue is drained after it, as after
//!     Initial and Pushing. Without `resume=on` (`Config::resume_max`) it is not entered.

mod signals;

use core::time::Duration;

use lastbyte_units::Time;

use self::signals::Signals;
use crate::{
    bandwidth::Bandwidth,
    controller::{
        Ack, Controller, DATAGRAM_SIZE_MAX, EcnCe, Loss, Pacing, Packet, Receipt, Sent, WINDOW_MAX,
    },
    rtt::Rtt,
    sampler::{DeliveryRateSampler, RateSample},
    saved_path::SavedPath,
    state::{Phase, State, Statistics},
};

/// The least pacing rate in Initial, 1,048,576 bit/s (§4.1).
const INITIAL_RATE_MIN: Bandwidth = Bandwidth::from_bits_per_second(1 << 20);
/// The largest addition to the nominal max RTT for errors of its estimate (§4.1).
const MARGIN_MAX: Duration = Duration::from_millis(15);
/// `MAX_JITTER` (§3.2).
const JITTER_MAX: Duration = Duration::from_millis(250);
/// The least nominal max RTT (§6.3).
const RTT_FLOOR: Duration = Duration::from_millis(1);
/// The time of transmission of a burst, and its largest size: `quantum` (§4.1).
const BURST_TIME: Duration = Duration::from_millis(4);
const BURST_MAX: u64 = 64 << 10;
/// The least window and burst, in datagrams (§4.1).
const DATAGRAMS_MIN: u64 = 2;
/// Eras without a higher nominal rate: after this many, Initial ends (§4.2), also on signals of delay and marks.
const FLAT_ERAS: u32 = 3;
const FLAT_ERAS_FOR_DELAY: u32 = 2;
/// A loss ends Initial if more packets than this were acknowledged (§4.2).
const PACKETS_FOR_LOSS: u64 = 20;
/// Eras of Resuming, the first without those in which the application had nothing to send (§4.3).
const RESUMING_ERAS: u32 = 2;
/// Eras of Cruising (§4.5), the least number of eras of Pushing (§4.7), and the number after which it becomes Initial (§4).
const CRUISING_ERAS: u32 = 2;
const PUSHING_ERAS_MIN: u32 = 2;
const PUSHING_ERAS_MAX: u32 = 3;
/// The rate of a Recovery that drains a queue, of the nominal rate (§5.7).
const DRAIN: f64 = 7.0 / 8.0;
/// The least increase of the nominal rate that counts in Initial.
const INITIAL_INCREASE: f64 = 17.0 / 16.0;

/// The initial configuration of a [`C4`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The initial window in bytes; §4.1 recommends ten datagrams. Less than two datagrams counts as two.
    pub initial_window: u64,
    /// The size of a full datagram, in bytes of UDP payload. Zero counts as one; values above 65 527 are clamped.
    pub max_datagram_size: u64,
    /// The largest window that Resuming uses, in bytes; `None` to ignore what an earlier connection saved.
    pub resume_max: Option<u64>,
    /// The burst after a pause in bytes, at least what is released at a time; `None` for that of §4.1.
    pub burst: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Initial,
    /// Window and pacing rate are these.
    Resuming(u64, Bandwidth),
    Recovery,
    Cruising,
    Probing,
    Pushing,
}

/// A signal of congestion, and the factor `beta` of its reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Congestion {
    kind: Signal,
    beta: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Delay,
    Loss,
    Ecn,
}

/// C4. See the [module](self).
///
/// ```
/// use lastbyte_congestion::{C4, Controller, c4::Config};
///
/// let c4 = C4::new(Config { initial_window: 12_000, max_datagram_size: 1200, resume_max: None, burst: None });
/// assert_eq!(c4.window(), 12_000);
/// assert_eq!(c4.state().phase.name(), "startup");
/// ```
#[derive(Clone, Debug)]
pub struct C4 {
    max_datagram_size: u64,
    burst: Option<u64>,
    sampler: DeliveryRateSampler,
    /// The send index of the next packet.
    next_send_index: u64,
    packets_acked: u64,
    bytes_acked: u64,
    signals: Signals,

    nominal_rate: Option<Bandwidth>,
    nominal_max_rtt: Option<Duration>,
    running_min_rtt: Option<Duration>,

    mode: Mode,
    era: Era,
    /// Eras of the current state that are over, without those that do not count.
    eras: u32,
    /// Eras of Initial in a row without a higher nominal rate.
    flat_eras: u32,
    /// `nominal_rate` when Probing began, unless there was congestion since.
    probed_from: Option<Bandwidth>,
    /// Whether Recovery began with congestion, or there was congestion in it.
    is_congested: bool,
    /// Congestion events in a row.
    congestion_events: u32,
    /// The highest estimate since the previous Recovery ended.
    recent_max_rate: Option<Bandwidth>,
    /// Whether high jitter has restarted Initial already.
    has_restarted: bool,
    /// `nominal_rate` when Cruising began, unless the application had nothing to send since.
    cycle_from: Option<Bandwidth>,
    /// Whether the next Recovery has to drain a queue.
    needs_drain: bool,
    /// `initial_cwnd` (§4.2).
    initial_window: u64,
    resume_max: Option<u64>,
    /// What an earlier connection saved, until it is used or does not fit.
    saved: Option<SavedPath>,

    window: u64,
    /// The latest round-trip time, for the statistics.
    latest_rtt: Option<Duration>,
    statistics: Statistics,
}

/// A round trip.
#[derive(Clone, Copy, Debug)]
struct Era {
    /// The send index of its first packet.
    first: u64,
    alpha: f64,
    alpha_previous: f64,
    /// Of the samples in it.
    min_rtt: Option<Duration>,
    max_rtt: Option<Duration>,
    /// `nominal_rate` at its beginning.
    rate: Option<Bandwidth>,
    is_app_limited: bool,
    is_over: bool,
}

impl C4 {
    /// A controller for a path about which nothing is known.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let max_datagram_size = config.max_datagram_size.clamp(1, DATAGRAM_SIZE_MAX);
        let minimum = max_datagram_size.saturating_mul(DATAGRAMS_MIN);
        let window = config.initial_window.max(minimum).min(WINDOW_MAX);
        Self {
            max_datagram_size,
            sampler: DeliveryRateSampler::default(),
            next_send_index: 0,
            packets_acked: 0,
            bytes_acked: 0,
            signals: Signals::default(),
            nominal_rate: None,
            nominal_max_rtt: None,
            running_min_rtt: None,
            mode: Mode::Initial,
            era: Era {
                first: 0,
                alpha: Mode::Initial.alpha(false),
                alpha_previous: Mode::Initial.alpha(false),
                min_rtt: None,
                max_rtt: None,
                rate: None,
                is_app_limited: false,
                is_over: false,
            },
            eras: 0,
            flat_eras: 0,
            probed_from: None,
            is_congested: false,
            congestion_events: 0,
            recent_max_rate: None,
            has_restarted: false,
            cycle_from: None,
            needs_drain: false,
            initial_window: window,
            resume_max: config.resume_max,
            burst: config.burst,
            saved: None,
            window,
            latest_rtt: None,
            statistics: Statistics::new(window),
        }
    }

    /// §3.1.
    fn update_rate(&mut self, sample: &RateSample) {
        let Some(rate) = sample.rate else {
            return;
        };
        self.recent_max_rate = self.recent_max_rate.max(Some(rate));
        let is_congested = self.mode == Mode::Recovery && self.is_congested;
        let is_small = sample.in_flight < self.statistics.initial_window / 2;
        if is_congested || (self.nominal_rate.is_none() && is_small) {
            return;
        }
        self.nominal_rate = self.nominal_rate.max(Some(rate));
    }

    fn update_rtt(&mut self, rtt: Duration) {
        self.era.min_rtt = Some(self.era.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.era.max_rtt = self.era.max_rtt.max(Some(rtt));
        self.running_min_rtt.get_or_insert(rtt);
        self.nominal_max_rtt.get_or_insert(rtt.max(RTT_FLOOR));
        if self.mode == Mode::Initial {
            self.running_min_rtt = self.running_min_rtt.map(|min| min.min(rtt));
        }
    }

    /// §3.2, at the end of an era: its samples are of packets sent in the previous one.
    fn learn_nominal_max_rtt(&mut self) {
        let (Some(min), Some(max)) = (self.era.min_rtt, self.era.max_rtt) else {
            return;
        };
        if self.era.alpha_previous > 1.0 {
            return;
        }
        self.running_min_rtt = Some(match self.running_min_rtt {
            Some(running) if running <= min => weigh(running, min),
            running => {
                self.needs_drain |= running.is_some();
                min
            }
        });
        let max = self.limited(max);
        self.nominal_max_rtt = Some(match self.nominal_max_rtt {
            Some(nominal) if nominal >= max => weigh(nominal, max).max(RTT_FLOOR),
            _ => max,
        });
    }

    /// `MAX_JITTER` above the running minimum.
    fn jitter_limit(&self) -> Option<Duration> {
        self.running_min_rtt
            .map(|min| min.saturating_add(JITTER_MAX))
    }

    /// At most that, and at least the floor.
    fn limited(&self, rtt: Duration) -> Duration {
        rtt.min(self.jitter_limit().unwrap_or(rtt)).max(RTT_FLOOR)
    }

    fn check_delay(&self, rtt: Duration) -> Option<Congestion> {
        let nominal_max_rtt = self.nominal_max_rtt?;
        let threshold = signals::delay_threshold(self.nominal_rate?, nominal_max_rtt);
        let excess = rtt.checked_sub(nominal_max_rtt.saturating_add(threshold))?;
        (!excess.is_zero()).then(|| Congestion {
            kind: Signal::Delay,
            beta: excess.as_secs_f64() / threshold.as_secs_f64(),
        })
    }

    /// §5.5, and what §4.2 requires of a signal in Initial.
    fn on_congestion(&mut self, now: Time, congestion: Congestion) {
        self.probed_from = None;
        match self.mode {
            Mode::Recovery => {
                self.is_congested = true;
                return;
            }
            Mode::Initial => {
                let counts = match congestion.kind {
                    Signal::Delay if self.era.max_rtt > self.jitter_limit() => true,
                    Signal::Delay | Signal::Ecn => self.flat_eras >= FLAT_ERAS_FOR_DELAY,
                    Signal::Loss => self.packets_acked > PACKETS_FOR_LOSS,
                };
                if !counts {
                    return;
                }
            }
            Mode::Cruising => {
                let beta = congestion.beta.clamp(0.0, signals::BETA_MAX);
                self.nominal_rate = self.nominal_rate.map(|rate| rate.scaled(1.0 - beta));
            }
            Mode::Resuming(..) | Mode::Probing | Mode::Pushing => {}
        }
        self.statistics.loss_episodes += 1;
        self.statistics.ecn_episodes += u64::from(congestion.kind == Signal::Ecn);
        self.enter_recovery(now);
        self.is_congested = true;
    }

    fn enter_recovery(&mut self, now: Time) {
        if let Mode::Initial | Mode::Resuming(..) = self.mode {
            if let Some(rate) = self.nominal_rate.filter(|rate| *rate > Bandwidth::ZERO)
                && self.mode == Mode::Initial
            {
                let estimate = self.limited(rate.time_for(self.window / 2));
                self.nominal_max_rtt = self.nominal_max_rtt.max(Some(estimate));
            }
            if self.statistics.startup_exited_at.is_none() {
                self.statistics
                    .exit_startup(now, self.window, self.latest_rtt);
            }
        }
        self.needs_drain |= matches!(
            self.mode,
            Mode::Initial | Mode::Resuming(..) | Mode::Pushing
        );
        self.is_congested = false;
        self.enter(Mode::Recovery);
        if core::mem::take(&mut self.needs_drain) {
            self.era.alpha = DRAIN;
        }
    }

    fn enter(&mut self, mode: Mode) {
        self.mode = mode;
        self.eras = 0;
        self.flat_eras = 0;
        match mode {
            Mode::Probing => self.probed_from = self.nominal_rate,
            Mode::Cruising => self.cycle_from = self.nominal_rate,
            Mode::Initial => {
                if let (Some(rate), Some(rtt)) = (self.nominal_rate, self.nominal_max_rtt) {
                    self.initial_window = rate.bytes_in(rtt);
                }
            }
            _ => {}
        }
        self.begin_era(mode.alpha(self.signals.has_marks()));
    }

    fn begin_era(&mut self, alpha: f64) {
        self.era = Era {
            first: self.next_send_index,
            alpha,
            alpha_previous: self.era.alpha,
            min_rtt: None,
            max_rtt: None,
            rate: self.nominal_rate,
            is_app_limited: self.sampler.is_app_limited(),
            is_over: false,
        };
    }

    fn end_era(&mut self, now: Time) {
        self.learn_nominal_max_rtt();
        let era = self.era;
        let is_extended = match self.mode {
            Mode::Resuming(..) => era.is_app_limited && self.eras == 0,
            _ => era.is_app_limited,
        };
        self.eras += u32::from(!is_extended);
        match self.mode {
            Mode::Initial => {
                if self.has_increased(era.rate, INITIAL_INCREASE) {
                    self.flat_eras = 0;
                } else if !era.is_app_limited && self.nominal_rate.is_some() {
                    self.flat_eras += 1;
                }
                if self.flat_eras >= FLAT_ERAS {
                    return self.enter_recovery(now);
                }
            }
            Mode::Resuming(..) if self.eras >= RESUMING_ERAS => return self.enter_recovery(now),
            Mode::Recovery => return self.end_recovery(era.alpha_previous <= 1.0),
            Mode::Cruising if self.eras >= CRUISING_ERAS => return self.enter(Mode::Probing),
            Mode::Probing => return self.enter_recovery(now),
            Mode::Pushing if self.eras >= PUSHING_ERAS_MIN || era.is_app_limited => {
                if !self.has_increased(era.rate, sufficient(era.alpha)) {
                    return self.enter_recovery(now);
                }
                if self.eras > PUSHING_ERAS_MAX {
                    return self.enter(Mode::Initial);
                }
            }
            Mode::Resuming(..) | Mode::Cruising | Mode::Pushing => {}
        }
        self.begin_era(era.alpha);
    }

    /// §4.3, if the path is confirmed to be the one that was saved (RFC 9959 §3.2).
    fn resume(&mut self, rtt: &Rtt) {
        let (Some(saved), Some(max)) = (self.saved, self.resume_max) else {
            return;
        };
        if self.bytes_acked < self.statistics.initial_window || self.nominal_rate.is_none() {
            return;
        }
        self.saved = None;
        let window = max.min(saved.window / 2).min(WINDOW_MAX);
        if self.mode != Mode::Initial || !saved.is_of_path(rtt.min()) || window <= self.window {
            return;
        }
        let rate = Bandwidth::from_delivery(window, rtt.smoothed());
        self.statistics.jump_window = Some(window);
        self.enter(Mode::Resuming(window, rate));
    }

    /// Whether the nominal rate has increased by this factor.
    fn has_increased(&self, before: Option<Bandwidth>, factor: f64) -> bool {
        self.nominal_rate
            .is_some_and(|rate| before.is_none_or(|before| rate >= before.scaled(factor)))
    }

    /// §4.4.1.
    fn has_high_jitter(&self) -> bool {
        match (self.running_min_rtt, self.nominal_max_rtt) {
            (Some(min), Some(max)) => min < max.mul_f64(0.4),
            _ => false,
        }
    }

    /// §4.4 and §5.5.2, and trimming; `was_measured`: whether the nominal max RTT has just been updated.
    fn end_recovery(&mut self, was_measured: bool) {
        self.congestion_events = if self.is_congested {
            self.congestion_events.saturating_add(1)
        } else {
            0
        };
        let cycle_from = self.cycle_from.take();
        if let (Some(recent), Some(nominal)) = (self.recent_max_rate.take(), self.nominal_rate) {
            let recent = recent.min(nominal);
            if self.congestion_events > 1 {
                self.nominal_rate = Some(recent);
            } else if !self.is_congested && cycle_from.is_some_and(|before| nominal <= before) {
                let mean = nominal
                    .bytes_per_second()
                    .midpoint(recent.bytes_per_second());
                self.nominal_rate = Some(Bandwidth::from_bytes_per_second(mean));
            }
        }
        self.signals.end_recovery();
        let probed_from = self.probed_from.take();
        let alpha = Mode::Probing.alpha(self.signals.has_marks());
        if probed_from.is_some() && self.has_increased(probed_from, sufficient(alpha)) {
            return self.enter(Mode::Pushing);
        }
        if was_measured && self.has_high_jitter() && !self.has_restarted {
            self.has_restarted = true;
            return self.enter(Mode::Initial);
        }
        self.enter(Mode::Cruising);
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        if let Mode::Resuming(_, rate) = self.mode {
            return Some(rate);
        }
        let rate = self.nominal_rate?.scaled(self.era.alpha);
        Some(match self.mode {
            Mode::Initial => rate.max(INITIAL_RATE_MIN),
            // §6.2: pauses take longer than asked for.
            Mode::Cruising if self.running_min_rtt < Some(RTT_FLOOR) => rate.scaled(67.0 / 64.0),
            // A rate of zero would stall.
            _ => rate.max(Bandwidth::from_bytes_per_second(self.max_datagram_size)),
        })
    }

    /// §4.1; in Initial, §4.2.
    fn update_window(&mut self, newly_acked: u64, is_app_limited: bool) {
        if let Mode::Resuming(window, _) = self.mode {
            return self.set_window(window);
        }
        if self.mode == Mode::Initial {
            if !is_app_limited {
                let grown = newly_acked >> (3 * self.flat_eras);
                self.initial_window = self.initial_window.saturating_add(grown).min(WINDOW_MAX);
            }
            let product = match (self.nominal_rate, self.nominal_max_rtt) {
                (Some(rate), Some(rtt)) => rate.scaled(self.era.alpha).bytes_in(rtt),
                _ => 0,
            };
            self.set_window(product.max(self.initial_window));
            return;
        }
        if let (Some(rate), Some(rtt)) = (self.pacing_rate(), self.nominal_max_rtt) {
            let margin = (rtt / 4).min(MARGIN_MAX);
            self.set_window(rate.bytes_in(rtt.saturating_add(margin)));
        }
    }

    fn set_window(&mut self, window: u64) {
        let window = window.max(self.window_min()).min(WINDOW_MAX);
        let statistics = &mut self.statistics;
        if window < self.window {
            let least = statistics.window_min.unwrap_or(window);
            statistics.window_min = Some(least.min(window));
        }
        statistics.window_max = statistics.window_max.max(window);
        self.window = window;
    }

    const fn window_min(&self) -> u64 {
        self.max_datagram_size.saturating_mul(DATAGRAMS_MIN)
    }
}

impl Mode {
    /// `alpha_current` (§4.1, table 1).
    const fn alpha(self, has_marks: bool) -> f64 {
        match self {
            // Resuming has a rate of its own. Above 1, its samples are no measure of the nominal max RTT.
            Self::Initial | Self::Resuming(..) => 2.0,
            Self::Recovery => 15.0 / 16.0,
            Self::Cruising => 1.0,
            Self::Probing if has_marks => 33.0 / 32.0,
            Self::Probing => 17.0 / 16.0,
            Self::Pushing => 5.0 / 4.0,
        }
    }

    const fn phase(self) -> Phase {
        match self {
            Self::Initial => Phase::Startup,
            Self::Resuming(..) => Phase::Resuming,
            Self::Recovery => Phase::Recovery,
            Self::Cruising => Phase::Cruising,
            Self::Probing => Phase::Probing,
            Self::Pushing => Phase::Pushing,
        }
    }
}

/// The increase that is sufficient after sending at this rate: 19/16 of 5/4 (§4.7), and as much of others.
const fn sufficient(alpha: f64) -> f64 {
    1.0 + (alpha - 1.0) * 0.75
}

/// `(7 × old + new) / 8`.
fn weigh(old: Duration, new: Duration) -> Duration {
    old.saturating_mul(7).saturating_add(new) / 8
}

impl Controller for C4 {
    fn on_sent(&mut self, sent: &Sent<'_>) -> Receipt {
        let send_index = self.next_send_index;
        self.next_send_index = send_index.saturating_add(1);
        Receipt::with_delivery(send_index, self.sampler.on_sent(sent))
    }

    fn on_app_limited(&mut self, _now: Time, in_flight: u64) {
        self.sampler.on_app_limited(in_flight);
        self.era.is_app_limited = true;
        self.cycle_from = None;
    }

    fn on_packet_acked(&mut self, now: Time, packet: &Packet) {
        self.sampler.on_packet_acked(now, packet);
        self.packets_acked = self.packets_acked.saturating_add(1);
        self.bytes_acked = self.bytes_acked.saturating_add(packet.bytes);
        self.signals.on_acked();
        self.era.is_over |= packet.receipt.send_index() >= self.era.first;
    }

    fn on_packet_lost(&mut self, _now: Time, packet: &Packet) {
        self.sampler.on_packet_lost(packet);
        self.statistics.on_packet_lost(packet.sent_at);
        self.signals.on_lost();
        self.saved = None;
    }

    fn on_lost(&mut self, loss: &Loss<'_>) {
        self.latest_rtt = loss.rtt.latest_sample();
        if !loss.persistent && !self.signals.has_loss(self.nominal_rate) {
            return;
        }
        let congestion = Congestion {
            kind: Signal::Loss,
            beta: signals::BETA_MAX,
        };
        self.on_congestion(loss.now, congestion);
        self.update_window(0, true);
        if loss.persistent {
            self.statistics.persistent_congestions += 1;
            self.nominal_rate = None;
            self.enter(Mode::Initial);
            self.initial_window = self.window_min();
            self.set_window(0);
        }
    }

    fn on_ecn_ce(&mut self, ce: &EcnCe<'_>) {
        self.signals.on_marked(ce.newly_marked);
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.latest_rtt = ack.rtt.latest_sample();
        let marks = self.signals.end_ack(ack, self.nominal_rate);
        let Some(sample) = self.sampler.take_sample(ack.rtt.min_or_zero()) else {
            return;
        };
        self.update_rate(&sample);
        if let Some(beta) = marks {
            let kind = Signal::Ecn;
            self.on_congestion(ack.now, Congestion { kind, beta });
        }
        if ack.has_rtt_sample {
            let rtt = ack.rtt.adjusted();
            self.update_rtt(rtt);
            if let Some(congestion) = self.check_delay(rtt) {
                self.on_congestion(ack.now, congestion);
            }
        }
        if core::mem::take(&mut self.era.is_over) {
            self.end_era(ack.now);
        }
        self.resume(ack.rtt);
        self.update_window(sample.newly_acked, sample.app_limited);
    }

    fn on_spurious_loss(&mut self, now: Time, packet: &Packet) {
        self.sampler.on_spurious_loss(now, packet);
    }

    fn on_mtu(&mut self, max_datagram_size: u64) {
        self.max_datagram_size = max_datagram_size.clamp(1, DATAGRAM_SIZE_MAX);
        self.set_window(self.window);
    }

    fn on_saved_path(&mut self, saved: &SavedPath) {
        if self.uses_saved_path() {
            self.saved = Some(*saved);
            self.statistics.saved_path = Some(*saved);
        }
    }

    fn uses_saved_path(&self) -> bool {
        self.resume_max.is_some()
    }

    fn is_scalable(&self) -> bool {
        true
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn pacing(&self, _rtt: &Rtt) -> Pacing {
        let Some(rate) = self.pacing_rate() else {
            return Pacing::UNLIMITED;
        };
        let burst = rate.bytes_in(BURST_TIME).min(BURST_MAX);
        let pacing = Pacing::at(rate, self.max_datagram_size);
        Pacing {
            burst: burst.max(pacing.quantum),
            ..pacing
        }
        .with_burst(self.burst)
    }

    fn state(&self) -> State {
        State {
            startup: "c4",
            avoidance: None,
            phase: self.mode.phase(),
            window: self.window,
            slow_start_threshold: None,
            bandwidth: self.nominal_rate,
            statistics: self.statistics.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
