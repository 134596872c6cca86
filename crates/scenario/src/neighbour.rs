//! Neighbours: other users of a path, observed while a transfer runs. The difference between two arms is the harm that
//! congestion control does to others.
//!
//! A neighbour is observed on the downlink from the transfer's start until its horizon, which is the same in every arm: a transfer
//! that ends early leaves more of the path for its neighbour, which counts as well.

use core::time::Duration;

use lastbyte_congestion::Registry;

use crate::{cross::CrossKind, setting::SettingError};

/// A kind of neighbour.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its name in the log: its text.
    pub name: String,
    /// Its traffic.
    pub kind: CrossKind,
}

impl Neighbour {
    /// Parses a kind of cross traffic without its options: `cubic`, `cbr:2mbit`, `pages:cubic 300kB 500ms`.
    ///
    /// # Errors
    ///
    /// Returns the error of [`CrossKind::parse`], and an error for `stack:SPEC`, whose packets are those of a measured
    /// flow.
    pub fn parse(text: &str, registry: &Registry) -> Result<Self, SettingError> {
        let kind = CrossKind::parse(text, registry)?;
        if matches!(kind, CrossKind::Stack(_)) {
            return Err(SettingError::of_value(
                format!("`{text}`"),
                "a neighbour without `stack:`",
            ));
        }
        Ok(Self {
            name: text.to_owned(),
            kind,
        })
    }
}

/// A neighbour of a draw, and its observation window in simulation time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// The neighbour's name.
    pub name: String,
    /// When the transfer starts.
    pub from: Duration,
    /// The horizon.
    pub until: Duration,
}

impl Observation {
    /// The length of the observation.
    pub const fn span(&self) -> Duration {
        self.until.saturating_sub(self.from)
    }
}
