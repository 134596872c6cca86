//! Which configuration each connection gets, and the name of the arm that it is in.

use std::{net::SocketAddr, sync::Arc};

use lastbyte_quic::{connection::Config, endpoint::ChooseConfig};

#[cfg(test)]
mod tests;

/// An arm of an experiment.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Its name, as logs have it.
    pub name: String,
    /// How many of the connections it gets, beside the others' shares.
    pub share: f64,
    /// What is set for its connections.
    pub config: Arc<Config>,
}

/// The arms of an experiment: each connection is drawn into one.
#[derive(Clone, Debug)]
pub struct Arms {
    arms: Vec<Arm>,
    total: f64,
}

impl Arms {
    /// These arms. `None` without one, or if the shares are not numbers above 0.
    #[must_use]
    pub fn new(arms: Vec<Arm>) -> Option<Self> {
        let total: f64 = arms.iter().map(|arm| arm.share).sum();
        let are_shares = arms
            .iter()
            .all(|arm| arm.share.is_finite() && arm.share > 0.0);
        (!arms.is_empty() && are_shares).then_some(Self { arms, total })
    }

    /// The arm of a draw.
    fn draw(&self, random: u64) -> &Arm {
        // 53 bits: all that a number between 0 and 1 can have.
        let mut at = (random >> 11) as f64 / (1_u64 << 53) as f64 * self.total;
        for arm in &self.arms {
            if at < arm.share {
                return arm;
            }
            at -= arm.share;
        }
        // What rounding leaves over.
        &self.arms[self.arms.len() - 1]
    }

    /// The arm whose configuration this is.
    #[must_use]
    pub fn of(&self, config: &Arc<Config>) -> Option<&Arm> {
        self.arms
            .iter()
            .find(|arm| Arc::ptr_eq(&arm.config, config))
    }

    /// All arms.
    #[must_use]
    pub fn all(&self) -> &[Arm] {
        &self.arms
    }
}

impl ChooseConfig for Arms {
    fn choose(&self, _remote: SocketAddr, random: u64) -> Arc<Config> {
        Arc::clone(&self.draw(random).config)
    }
}
