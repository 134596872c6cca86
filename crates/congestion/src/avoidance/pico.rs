//! Pico: quicly's rule, which grows like NewReno or CUBIC, whichever is faster, with the arithmetic of NewReno.
//!
//! Between two congestion events the window grows by one datagram whenever a certain number of bytes is acknowledged.
//! That number is set once at each event, so that the average slope is that of CUBIC on the same path:
//!
//! ```text
//! reno  = beta × full                                                   NewReno: a window (after the cut) a datagram
//! cubic = c / (1 − beta) × cbrt((1 − beta) / C × full / M) / rtt × M    CUBIC: K seconds to come back to `full`
//! bytes acknowledged per datagram of growth = min(reno, cubic)
//! ```
//!
//! with C = 0.4 /s³, `full` the window at which the path was full, M the datagram size, `rtt` in seconds, and c = (1 +
//! 2 × cbrt(0.85)) / 2 ≈ 1.447, the mean over a normal epoch and one of fast convergence. That is quicly of April 2026;
//! autumn's has 1.2937. Source: quicly `cc-pico.c`.

use lastbyte_units::Time;

use super::{Avoidance, AvoidanceAck, Cause, Reduction};
use crate::{config::Config, history::History};

/// quicly's avoidance.
#[derive(Clone, Debug)]
pub struct Pico {
    beta: f64,
    beta_ecn: f64,
    slope: Slope,
    saved: History<Slope>,
}

#[derive(Clone, Copy, Debug)]
struct Slope {
    /// Bytes to be acknowledged for one datagram of growth; `None` until the path was full for the first time.
    bytes_per_datagram: Option<u64>,
    /// Bytes acknowledged since the window last grew.
    credit: u64,
}

impl Pico {
    /// quicly's factor for both loss and ECN-CE.
    pub const BETA: f64 = 0.7;

    /// Pico with the factors of `config`, by default [`Pico::BETA`].
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let beta = config.beta.unwrap_or(Self::BETA);
        let slope = Slope {
            bytes_per_datagram: None,
            credit: 0,
        };
        Self {
            beta,
            beta_ecn: config.beta_ecn.unwrap_or(beta),
            slope,
            saved: History::new(),
        }
    }

    fn bytes_per_datagram(&self, reduction: &Reduction<'_>) -> u64 {
        const EPOCH_MEAN: f64 = 1.447;
        const CUBIC_C: f64 = 0.4;
        let full = reduction.full as f64;
        let datagram = reduction.max_datagram_size.max(1) as f64;
        let rtt = reduction.rtt.smoothed().as_secs_f64().max(1e-9);
        let cut = 1.0 - self.beta;
        let reno = self.beta * full;
        let cubic = EPOCH_MEAN / cut * libm::cbrt(cut / CUBIC_C * full / datagram) / rtt * datagram;
        (reno.min(cubic) as u64).max(1)
    }
}

impl Avoidance for Pico {
    fn name(&self) -> &'static str {
        "pico"
    }

    fn beta(&self, cause: Cause) -> f64 {
        match cause {
            Cause::Loss => self.beta,
            Cause::EcnCe => self.beta_ecn,
        }
    }

    fn on_congestion(&mut self, reduction: &Reduction<'_>) {
        self.saved.push(self.slope);
        self.slope = Slope {
            bytes_per_datagram: Some(self.bytes_per_datagram(reduction)),
            credit: self.slope.credit,
        };
    }

    fn on_slow_start_exit(&mut self, window: u64) {
        // Nothing is known of the path but this window: NewReno's slope.
        let reno = ((self.beta * window as f64) as u64).max(1);
        self.slope.bytes_per_datagram.get_or_insert(reno);
    }

    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64 {
        let per_datagram = self.slope.bytes_per_datagram.unwrap_or(ack.window).max(1);
        self.slope.credit = self.slope.credit.saturating_add(ack.bytes);
        let datagrams = self.slope.credit / per_datagram;
        self.slope.credit %= per_datagram;
        ack.window
            .saturating_add(datagrams.saturating_mul(ack.max_datagram_size))
    }

    fn on_app_limited(&mut self, _: Time) {}

    fn limit(&self, flight: u64, max_datagram_size: u64) -> u64 {
        let per_datagram = self.slope.bytes_per_datagram.unwrap_or(flight).max(1);
        let datagrams = (flight / per_datagram).max(1);
        flight.saturating_add(datagrams.saturating_mul(max_datagram_size))
    }

    fn on_persistent_congestion(&mut self) {
        self.slope.bytes_per_datagram = None;
        self.slope.credit = 0;
    }

    fn undo(&mut self, age: usize) {
        let Some(before) = self.saved.remove(age) else {
            return;
        };
        match age.checked_sub(1).map(|next| self.saved.get_mut(next)) {
            None => self.slope = before,
            Some(next) => {
                if let Some(next) = next {
                    *next = before;
                }
            }
        }
    }

    /// quicly paces at two windows a round trip in every phase except the jump.
    fn pacing_gain(&self) -> f64 {
        2.0
    }
}

#[cfg(test)]
mod tests;
