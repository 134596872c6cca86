//! NewReno (RFC 9002 §7.3.3): one datagram for each window acknowledged, half the window at congestion.
//!
//! Growth is in fractions of a datagram, as in RFC 9002 §B.5: what was acknowledged of a window before a loss has its effect.
//! Counting whole windows, as Linux does, forgets it at each loss, which is most of the growth where losses are frequent.

use lastbyte_units::Time;

use super::{Avoidance, AvoidanceAck, Cause, Reduction};
use crate::config::Config;

/// NewReno's additive increase.
#[derive(Clone, Debug)]
pub struct NewReno {
    beta: f64,
    beta_ecn: f64,
    /// The fraction of a byte by which the window exceeds its whole bytes.
    fraction: f64,
}

impl NewReno {
    /// `kLossReductionFactor`, RFC 9002 §B.1.
    pub const BETA: f64 = 0.5;

    /// NewReno with the factors of `config`, by default [`NewReno::BETA`] for loss and ECN alike.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let beta = config.beta.unwrap_or(Self::BETA);
        Self {
            beta,
            beta_ecn: config.beta_ecn.unwrap_or(beta),
            fraction: 0.0,
        }
    }
}

impl Avoidance for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }

    fn beta(&self, cause: Cause) -> f64 {
        match cause {
            Cause::Loss => self.beta,
            Cause::EcnCe => self.beta_ecn,
        }
    }

    fn on_congestion(&mut self, _: &Reduction<'_>) {
        self.fraction = 0.0;
    }

    fn on_slow_start_exit(&mut self, _: u64) {
        self.fraction = 0.0;
    }

    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64 {
        // At most one datagram for each window acknowledged; a frame that acknowledges more does not count more.
        let share = (ack.bytes as f64 / ack.window.max(1) as f64).min(1.0);
        let growth = self.fraction + ack.max_datagram_size as f64 * share;
        let whole = growth as u64;
        self.fraction = growth - whole as f64;
        ack.window.saturating_add(whole)
    }

    fn on_app_limited(&mut self, _: Time) {}

    fn on_persistent_congestion(&mut self) {
        self.fraction = 0.0;
    }

    fn undo(&mut self, _: usize) {}
}
