//! CUBIC and `HyStart` as in Linux (`tcp_cubic.c`), as parts of a [`WindowController`].
//!
//! Differences from `lastbyte_congestion`'s CUBIC (RFC 9438) and HyStart++ (RFC 9406), all from Linux:
//! - `HyStart` ends slow start at once (`hystart_update`): at a train of acknowledgments at most 2 ms apart that lasts half the minimum
//!   round-trip time, or when the smallest of eight samples of a round exceeds the minimum by an eighth (4 to 16 ms). It starts at 16 segments.
//! - Until the first loss, the window grows by at least a segment for every 20 acknowledged, 5 % a round trip (`bictcp_update`).
//! - The target is that of now and the minimum round-trip time; it is computed 32 times a second at most.
//! - A retransmission timeout resets the curve (`bictcp_state`).
//!
//! Not modelled: `HyStart` in slow start after a timeout; fixed-point rounding.

use core::time::Duration;

use lastbyte_congestion::{
    Config, Controller, ControllerFactory, Environment, IdlePolicy, Time, WindowController,
    WindowSize,
    avoidance::{Avoidance, AvoidanceAck, Cause, Reduction},
    startup::{Growth, Startup, StartupAck},
};

/// CUBIC as in Linux: `HyStart`, CUBIC, and an initial window of ten segments (RFC 6928).
#[derive(Clone, Copy, Debug)]
pub struct LinuxCubic {
    /// The initial window, in segments. Default: 10.
    pub initial_window: u32,
}

impl Default for LinuxCubic {
    fn default() -> Self {
        Self { initial_window: 10 }
    }
}

impl ControllerFactory for LinuxCubic {
    fn build(&self, environment: &Environment) -> Box<dyn Controller> {
        let segment_size = environment.max_datagram_size;
        let config = Config {
            initial_window: WindowSize::Datagrams(self.initial_window.into()),
            idle: IdlePolicy::Rfc2861,
            ..Config::default()
        };
        Box::new(WindowController::new(
            config,
            segment_size,
            Box::new(HyStart::new(segment_size)),
            Box::new(Cubic::default()),
        ))
    }
}

/// `HyStart`, by delay and by trains of acknowledgments.
#[derive(Clone, Debug)]
struct HyStart {
    segment_size: u64,
    /// The send index that ends the round.
    round_end: Option<u64>,
    round_start: Time,
    /// The latest acknowledgment of the train.
    train_at: Time,
    samples: u32,
    current_min: Option<Duration>,
    delay_min: Option<Duration>,
}

impl HyStart {
    const fn new(segment_size: u64) -> Self {
        Self {
            segment_size,
            round_end: None,
            round_start: Time::ZERO,
            train_at: Time::ZERO,
            samples: 0,
            current_min: None,
            delay_min: None,
        }
    }

    /// `bictcp_hystart_reset`, with the first acknowledgment of a round. Rounds are counted below [`LOW_WINDOW`] too: counted from there,
    /// they would begin in the middle of a flight, and the queue of that flight would end slow start, which the kernel does not do.
    const fn begin_round(&mut self, now: Time, next: u64) {
        self.round_end = Some(next);
        self.round_start = now;
        self.train_at = now;
        self.samples = 0;
        self.current_min = None;
    }

    /// `hystart_update`.
    fn has_found(&mut self, ack: &StartupAck<'_>, sample: Duration, delay_min: Duration) -> bool {
        if ack.now.since(self.train_at) <= TRAIN_GAP {
            self.train_at = ack.now;
            // `hystart_ack_delay`: the delay that the sender's own bursts may cause, at the pacing rate of slow start.
            let rate = 2.0 * ack.window as f64 / ack.rtt.smoothed().as_secs_f64().max(1e-9);
            let burst = Duration::from_secs_f64((BURST / rate.max(1.0)).min(1e-3));
            if ack.now.since(self.round_start) > (delay_min + burst) / 2 {
                return true;
            }
        }
        let current = self.current_min.map_or(sample, |min| min.min(sample));
        self.current_min = Some(current);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        current > delay_min + (delay_min / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

impl Startup for HyStart {
    fn name(&self) -> &'static str {
        "linux-hystart"
    }

    fn on_ack(&mut self, ack: &StartupAck<'_>) -> Growth {
        if let Some(sample) = ack.rtt_sample {
            let delay_min = self.delay_min.map_or(sample, |min| min.min(sample));
            self.delay_min = Some(delay_min);
            if self.round_end.is_none_or(|end| ack.largest_acked >= end) {
                self.begin_round(ack.now, ack.next);
            }
            if ack.window >= LOW_WINDOW * self.segment_size
                && self.has_found(ack, sample, delay_min)
            {
                return Growth {
                    done: true,
                    ..Growth::by(0)
                };
            }
        }
        Growth::by(ack.bytes)
    }
}

/// CUBIC. Windows are in segments.
#[derive(Clone, Debug, Default)]
struct Cubic {
    /// The window at the latest reduction; `None` before the first, and after a timeout.
    last_max: Option<f64>,
    epoch: Option<Epoch>,
    paused_at: Option<Time>,
    /// Acknowledged segments that have not grown the window yet.
    credit: f64,
    /// The window after the latest call; 0 if unknown.
    segments: u64,
}

/// The growth since the latest reduction.
#[derive(Clone, Debug)]
struct Epoch {
    start: Time,
    /// Seconds until the window is `origin` again.
    k: f64,
    origin: f64,
    /// The window that Reno would have.
    friendly: f64,
    /// Acknowledged segments that have not grown `friendly` yet.
    acked: f64,
    /// When `count` was computed, and for which window.
    updated: Option<(Time, u64)>,
    /// Acknowledged segments for each segment of growth.
    count: f64,
}

impl Cubic {
    /// `bictcp_update`.
    fn count(&mut self, ack: &AvoidanceAck<'_>, window: u64, acked: f64) -> f64 {
        let size = window as f64;
        let last_max = self.last_max;
        let epoch = self.epoch.get_or_insert_with(|| {
            let origin = last_max.unwrap_or(0.0).max(size);
            Epoch {
                start: ack.now,
                k: ((origin - size) / C).cbrt(),
                origin,
                friendly: size,
                acked: 0.0,
                updated: None,
                count: 0.0,
            }
        });
        if let Some(paused_at) = self.paused_at.take() {
            epoch.start = epoch.start + ack.now.since(paused_at);
        }
        epoch.acked += acked;
        if let Some((at, of)) = epoch.updated
            && of == window
            && ack.now.since(at) <= UPDATE
        {
            return epoch.count;
        }
        epoch.updated = Some((ack.now, window));
        let t = (ack.now.since(epoch.start) + ack.rtt.min()).as_secs_f64() - epoch.k;
        let target = epoch.origin + C * t * t * t;
        let mut count = if target > size {
            size / (target - size)
        } else {
            100.0 * size
        };
        if last_max.is_none() {
            count = count.min(20.0);
        }
        let step = size * FRIENDLY_STEP;
        let steps = (epoch.acked / step).floor();
        epoch.acked -= steps * step;
        epoch.friendly += steps;
        if epoch.friendly > size {
            count = count.min(size / (epoch.friendly - size));
        }
        epoch.count = count.max(2.0);
        epoch.count
    }
}

impl Avoidance for Cubic {
    fn name(&self) -> &'static str {
        "linux-cubic"
    }

    /// The threshold is a whole number of segments, two at least (`cubictcp_recalc_ssthresh`).
    fn beta(&self, _: Cause) -> f64 {
        if self.segments < 3 {
            return BETA;
        }
        let segments = self.segments as f64;
        (segments * BETA).floor().max(2.0) / segments
    }

    fn on_congestion(&mut self, reduction: &Reduction<'_>) {
        let full = (reduction.full / reduction.max_datagram_size.max(1)) as f64;
        let has_less = self.last_max.is_some_and(|max| full < max);
        // Fast convergence.
        let max = if has_less {
            full * (1.0 + BETA) / 2.0
        } else {
            full
        };
        self.last_max = Some(max);
        self.epoch = None;
        self.segments = reduction.after / reduction.max_datagram_size.max(1);
    }

    fn on_slow_start_exit(&mut self, _: u64) {
        self.segments = 0;
    }

    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64 {
        let size = ack.max_datagram_size.max(1);
        let acked = ack.bytes as f64 / size as f64;
        let count = self.count(ack, (ack.window / size).max(1), acked);
        // `tcp_cong_avoid_ai`: credit that was gathered for a larger count grows the window once.
        let mut steps = 0;
        if self.credit >= count {
            self.credit = 0.0;
            steps = 1;
        }
        self.credit += acked;
        let more = (self.credit / count).floor();
        self.credit -= more * count;
        let window = ack.window + (steps + more as u64) * size;
        self.segments = window / size;
        window
    }

    fn on_app_limited(&mut self, now: Time) {
        self.paused_at.get_or_insert(now);
    }

    fn on_persistent_congestion(&mut self) {
        *self = Self::default();
    }

    fn undo(&mut self, _: usize) {}

    fn pacing_gain(&self) -> f64 {
        1.2 // `tcp_pacing_ca_ratio`
    }
}

/// `beta`: 717 / 1024.
const BETA: f64 = 717.0 / 1024.0;
/// `bic_scale`: 410 / 1024 segments per second³.
const C: f64 = 410.0 / 1024.0;
/// `beta_scale` / 8: acknowledged windows for each segment of growth of Reno with the same beta.
const FRIENDLY_STEP: f64 = 15.0 / 8.0;
/// `HZ / 32`
const UPDATE: Duration = Duration::from_micros(31_250);
/// `hystart_low_window`
const LOW_WINDOW: u64 = 16;
/// `hystart_ack_delta_us`
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// `HYSTART_MIN_SAMPLES`
const SAMPLES: u32 = 8;
/// `HYSTART_DELAY_MIN`
const DELAY_MIN: Duration = Duration::from_millis(4);
/// `HYSTART_DELAY_MAX`
const DELAY_MAX: Duration = Duration::from_millis(16);
/// Four segments of GSO, in bytes.
const BURST: f64 = 4.0 * 65_536.0;

#[cfg(test)]
mod tests;
