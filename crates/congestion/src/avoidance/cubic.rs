//! CUBIC (RFC 9438), in bytes.
//!
//! ```text
//! W_cubic(t) = C × M × (t − K)³ + W_max           C = 0.4 /s³, M = datagram size
//! K          = cbrt((W_max − cwnd_epoch) / (C × M))
//! target     = W_cubic(t + rtt), between cwnd and 1.5 × cwnd
//! each ACK:    W_est += alpha × M × acked / cwnd,  alpha = 3 (1 − beta) / (1 + beta), and 1 once W_est ≥ cwnd_prior
//!              cwnd   = W_est                             if W_cubic(t) < W_est     (§4.3, as friendly as Reno)
//!              cwnd  += (target − cwnd) × acked / cwnd    otherwise                 (§4.4, §4.5)
//! ```
//!
//! Decisions:
//! - The epoch starts with the first ACK after recovery, as §4.2 counts the time of the avoidance stage.
//! - §4.2 says that `t` must not include time in which the window was not updated because of an application limit: the
//!   clock stops at [`Avoidance::on_app_limited`], and the epoch is shifted by the pause at the next ACK. `W_est` does
//!   not change either.
//! - A reduction is by the window, not the bytes in flight, as §4.6 requires where growth stops while the window is not
//!   fully used (which it does: [`WindowController`](crate::WindowController)).
//! - After slow start without a loss: `W_max = cwnd_prior = cwnd`, K = 0 (§4.10). After persistent congestion likewise,
//!   when slow start has reached the threshold (§4.8).
//! - Where a startup measured the capacity, `W_max` is twice that if fast convergence is on (since there may be
//!   competing flows, and slow start would have overshot as far), otherwise the measurement itself: the editor's copy
//!   of September 2026 of draft-kazuho-ccwg-rapid-start, §3.3.3. The -02 text is silent.
//! - An undo (§4.9.2) restores the state saved at the event; the controller restores the window.
//! - The cube root is `libm`'s, in software, so that every platform computes the same result.

use core::time::Duration;

use lastbyte_units::Time;

use super::{Avoidance, AvoidanceAck, Cause, Reduction};
use crate::{config::Config, history::History};

/// CUBIC's window growth.
#[derive(Clone, Debug)]
pub struct Cubic {
    beta: f64,
    beta_ecn: f64,
    fast_convergence: bool,
    curve: Curve,
    /// The curve before each of the latest congestion events, for undoing.
    saved: History<Curve>,
}

/// The position of the window on the curve.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// `W_max`, bytes; `None` until the path was full for the first time, and after persistent congestion.
    max: Option<f64>,
    /// `cwnd_prior`, bytes: the window just before the latest reduction.
    prior: f64,
    /// The factor of the latest reduction, from which alpha follows.
    beta: f64,
    epoch: Option<Epoch>,
}

/// The present avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// `t_epoch`, shifted by the time in which the window was not fully used.
    start: Time,
    /// Since when the window has not been fully used.
    paused_at: Option<Time>,
    /// K, seconds.
    k: f64,
    /// `W_est`, bytes.
    estimate: f64,
    /// The fraction of a byte by which the window exceeds its whole bytes.
    fraction: f64,
}

impl Cubic {
    /// The multiplicative decrease factor, RFC 9438 §4.6.
    pub const BETA: f64 = 0.7;
    /// C, in datagrams per second³, RFC 9438 §5.
    pub const C: f64 = 0.4;

    /// CUBIC with the factors of `config`, by default [`Cubic::BETA`] for loss and ECN alike; and with fast convergence
    /// (RFC 9438 §4.7) unless its settings have `fast-convergence` off, for a flow that is alone.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let beta = config.beta.unwrap_or(Self::BETA);
        let curve = Curve {
            max: None,
            prior: 0.0,
            beta,
            epoch: None,
        };
        Self {
            beta,
            beta_ecn: config.beta_ecn.unwrap_or(beta),
            fast_convergence: config.settings.switch("fast-convergence").unwrap_or(true),
            curve,
            saved: History::new(),
        }
    }

    /// The constant of the cubic term: C × M, in bytes per second³.
    fn scale(max_datagram_size: u64) -> f64 {
        Self::C * max_datagram_size.max(1) as f64
    }

    fn start_epoch(&mut self, ack: &AvoidanceAck<'_>) -> Epoch {
        let window = ack.window as f64;
        let max = *self.curve.max.get_or_insert(window);
        let missing = (max - window).max(0.0);
        Epoch {
            start: ack.now,
            paused_at: None,
            k: libm::cbrt(missing / Self::scale(ack.max_datagram_size)),
            estimate: window,
            fraction: 0.0,
        }
    }
}

impl Epoch {
    /// Shifts the start by a pause that ends now.
    fn resume(&mut self, now: Time) {
        if let Some(paused_at) = self.paused_at.take() {
            self.start = self.start + now.since(paused_at);
        }
    }

    /// `W_cubic` at `elapsed` since the start, in bytes.
    fn w_cubic(&self, elapsed: Duration, max: f64, scale: f64) -> f64 {
        let t = elapsed.as_secs_f64() - self.k;
        scale * t * t * t + max
    }
}

impl Avoidance for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn beta(&self, cause: Cause) -> f64 {
        match cause {
            Cause::Loss => self.beta,
            Cause::EcnCe => self.beta_ecn,
        }
    }

    fn on_congestion(&mut self, reduction: &Reduction<'_>) {
        self.saved.push(self.curve);
        let full = reduction.full as f64;
        let beta = self.beta(reduction.cause);
        // §4.7, fast convergence: a window that did not reach the last maximum again has a competitor to make room for.
        // Where there may be competitors, a measured capacity counts twice, as the overshoot of slow start would.
        let has_less = self.curve.max.is_some_and(|max| full < max);
        let max = match (self.fast_convergence, reduction.is_measured) {
            (true, true) => full * 2.0,
            (true, false) if has_less => full * (1.0 + beta) / 2.0,
            _ => full,
        };
        self.curve = Curve {
            max: Some(max),
            prior: full,
            beta,
            epoch: None,
        };
    }

    fn on_slow_start_exit(&mut self, window: u64) {
        self.curve.max = Some(window as f64);
        self.curve.prior = window as f64;
        self.curve.epoch = None;
    }

    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64 {
        let mut epoch = match self.curve.epoch {
            Some(epoch) => epoch,
            None => self.start_epoch(ack),
        };
        epoch.resume(ack.now);
        let max = self.curve.max.unwrap_or(ack.window as f64);
        let scale = Self::scale(ack.max_datagram_size);
        let window = ack.window as f64 + epoch.fraction;
        let share = ack.bytes as f64 / window.max(1.0);

        let alpha = if epoch.estimate >= self.curve.prior {
            1.0
        } else {
            3.0 * (1.0 - self.curve.beta) / (1.0 + self.curve.beta)
        };
        epoch.estimate += alpha * ack.max_datagram_size as f64 * share;

        let elapsed = ack.now.since(epoch.start);
        let next = if epoch.w_cubic(elapsed, max, scale) < epoch.estimate {
            epoch.estimate.max(window)
        } else {
            let ahead = elapsed.saturating_add(ack.rtt.smoothed());
            let target = epoch.w_cubic(ahead, max, scale).clamp(window, 1.5 * window);
            window + (target - window) * share.min(1.0)
        };
        let whole = next as u64;
        epoch.fraction = (next - whole as f64).clamp(0.0, 1.0);
        self.curve.epoch = Some(epoch);
        whole.max(ack.window)
    }

    fn on_app_limited(&mut self, now: Time) {
        if let Some(epoch) = &mut self.curve.epoch {
            epoch.paused_at.get_or_insert(now);
        }
    }

    fn limit(&self, flight: u64, _: u64) -> u64 {
        flight.saturating_add(flight / 2) // §4.4: the target is at most 1.5 windows
    }

    fn on_persistent_congestion(&mut self) {
        self.curve.max = None;
        self.curve.epoch = None;
    }

    fn undo(&mut self, age: usize) {
        let Some(before) = self.saved.remove(age) else {
            return;
        };
        match age.checked_sub(1).map(|next| self.saved.get_mut(next)) {
            None => self.curve = before,
            Some(next) => {
                if let Some(next) = next {
                    *next = before;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
