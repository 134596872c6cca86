//! Factors that scale a population, to test whether a result depends on them.

use serde::Deserialize;

use super::text::factor;
use crate::setting::SettingError;

/// Factors on the parameters of a population. The default changes nothing. Every other field of a draw stays the same under the
/// same seed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Sweep {
    /// The size of queues, before their minimum in packets applies.
    pub queue: f64,
    /// The share of paths with random loss, including classes whose paths all have it, so that 0 leaves none. Bursts are unaffected.
    pub lossy: f64,
    /// The round-trip time between site and access.
    pub path_rtt: f64,
    /// The rate of lines, but not of policers.
    pub rate: f64,
    /// The rate up of classes that limit it.
    pub up_rate: f64,
    /// The weight of classes with poor access.
    pub poor: f64,
    /// The share of paths with cross traffic.
    pub cross: f64,
    /// The interval of ACK batching; 0: no batching.
    pub ack_batching: f64,
    /// The share of policed paths.
    pub policing: f64,
    /// The mix of sizes, by its name in the population.
    pub sizes: Option<String>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self {
            queue: 1.0,
            lossy: 1.0,
            path_rtt: 1.0,
            rate: 1.0,
            up_rate: 1.0,
            poor: 1.0,
            cross: 1.0,
            ack_batching: 1.0,
            policing: 1.0,
            sizes: None,
        }
    }
}

impl Sweep {
    /// The keys.
    pub const KEYS: [&str; 10] = [
        "queue",
        "lossy",
        "path-rtt",
        "rate",
        "up-rate",
        "poor",
        "cross",
        "ack-batching",
        "policing",
        "sizes",
    ];

    /// Parses one change: a factor, or the name of a mix of sizes.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] for an unknown key or an invalid factor.
    pub fn of(key: &str, text: &str) -> Result<Self, SettingError> {
        let mut sweep = Self::default();
        let factor = match key {
            "queue" => &mut sweep.queue,
            "lossy" => &mut sweep.lossy,
            "path-rtt" => &mut sweep.path_rtt,
            "rate" => &mut sweep.rate,
            "up-rate" => &mut sweep.up_rate,
            "poor" => &mut sweep.poor,
            "cross" => &mut sweep.cross,
            "ack-batching" => &mut sweep.ack_batching,
            "policing" => &mut sweep.policing,
            "sizes" => {
                sweep.sizes = Some(text.to_owned());
                return Ok(sweep);
            }
            _ => {
                let keys = Self::KEYS.join(", ");
                return Err(SettingError::new(key, "unknown", keys));
            }
        };
        let number: Result<f64, _> = text.parse();
        *factor =
            number.map_err(|_| SettingError::new(key, format!("`{text}`"), "a factor: 0.5, 2"))?;
        sweep.check()?;
        Ok(sweep)
    }

    /// The factors other than 1, with their keys.
    pub fn changes(&self) -> Vec<(&'static str, f64)> {
        let all = self.factors();
        all.into_iter()
            .filter(|(_, factor)| (factor - 1.0).abs() > f64::EPSILON)
            .collect()
    }

    fn factors(&self) -> [(&'static str, f64); 9] {
        [
            ("queue", self.queue),
            ("lossy", self.lossy),
            ("path-rtt", self.path_rtt),
            ("rate", self.rate),
            ("up-rate", self.up_rate),
            ("poor", self.poor),
            ("cross", self.cross),
            ("ack-batching", self.ack_batching),
            ("policing", self.policing),
        ]
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        for (key, value) in self.factors() {
            factor(key, value)?;
        }
        for (key, factor) in [("rate", self.rate), ("up-rate", self.up_rate)] {
            if factor < 1e-6 {
                return Err(SettingError::because(key, "it must be above zero"));
            }
        }
        Ok(())
    }

    /// Combines two sweeps: factors are multiplied.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            queue: self.queue * other.queue,
            lossy: self.lossy * other.lossy,
            path_rtt: self.path_rtt * other.path_rtt,
            rate: self.rate * other.rate,
            up_rate: self.up_rate * other.up_rate,
            poor: self.poor * other.poor,
            cross: self.cross * other.cross,
            ack_batching: self.ack_batching * other.ack_batching,
            policing: self.policing * other.policing,
            sizes: other.sizes.clone().or_else(|| self.sizes.clone()),
        }
    }
}
