//! NewReno (RFC 9002 §7.3.3): one datagram for each window acknowledged, half the window at congestion.

use lastbyte_units::Time;

use super::{Avoidance, AvoidanceAck, Cause, Reduction};
use crate::config::Config;

/// NewReno's additive increase.
#[derive(Clone, Debug)]
pub struct NewReno {
    beta: f64,
    beta_ecn: f64,
    /// Bytes acknowledged since the window last grew.
    credit: u64,
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
            credit: 0,
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
        self.credit = 0;
    }

    fn on_slow_start_exit(&mut self, _: u64) {
        self.credit = 0;
    }

    fn on_ack(&mut self, ack: &AvoidanceAck<'_>) -> u64 {
        self.credit = self.credit.saturating_add(ack.bytes);
        if self.credit < ack.window {
            return ack.window;
        }
        // At most one datagram for each window acknowledged; a frame that acknowledges more does not count more.
        self.credit = (self.credit - ack.window).min(ack.window);
        ack.window.saturating_add(ack.max_datagram_size)
    }

    fn on_app_limited(&mut self, _: Time) {}

    fn on_persistent_congestion(&mut self) {
        self.credit = 0;
    }

    fn undo(&mut self, _: usize) {}
}
