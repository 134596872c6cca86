//! The plan of a ramp: the table `[plan]` of an experiment file.
//!
//! A plan has the shares through which an arm grows, and the conditions of each step. It is text and data; `lastbyte steer`
//! decides by it. All keys have defaults.

use core::time::Duration;

use lastbyte_units as units;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::{population::text, setting::SettingError};

pub use self::freeze::Freeze;

mod freeze;
#[cfg(test)]
mod tests;

/// How the share of an arm grows beside its baseline, and what ends that.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RampPlan {
    /// The share of the arm in each stage, ascending.
    #[serde(deserialize_with = "shares")]
    pub stages: Vec<f64>,
    /// The least duration of a stage, in whole hours.
    #[serde(deserialize_with = "text::span")]
    pub least_time: Duration,
    /// The least number of connections of each arm in a stage. Below it there is no decision.
    pub least_connections: u64,
    /// The duration after which an undecided ramp ends.
    #[serde(deserialize_with = "text::span")]
    pub most_time: Duration,
    /// The change of the time to last byte that matters: 0.05 for 5 %.
    #[serde(deserialize_with = "share")]
    pub detect: f64,
    /// The improvement of the time to last byte that a win must exceed: 0.02 for 2 %. Below zero, how much slower a winner may be.
    #[serde(deserialize_with = "signed_share")]
    pub win: f64,
    /// The largest acceptable rise of the share of lost packets: 0.005 for half a percentage point.
    #[serde(deserialize_with = "share")]
    pub loss: f64,
    /// The largest acceptable fall of the share of complete transfers.
    #[serde(deserialize_with = "share")]
    pub completion: f64,
    /// The largest acceptable rise of the smoothed round-trip time beside the minimum: 0.1 for 10 %. `None` for no limit.
    #[serde(deserialize_with = "optional_share")]
    pub rtt: Option<f64>,
    /// The time to last byte of incomplete transfers, and of longer ones.
    #[serde(deserialize_with = "text::span")]
    pub time_limit: Duration,
    /// The least length of a response that counts, in bytes.
    #[serde(deserialize_with = "text::bytes")]
    pub min_size: u64,
    /// The share that stays at the baseline after a win.
    #[serde(deserialize_with = "share")]
    pub holdback: f64,
    /// Windows of time in which the share does not grow.
    #[serde(deserialize_with = "windows")]
    pub freeze: Vec<Freeze>,
    /// The directory of the decisions, relative to the experiment file.
    pub state: Option<String>,
}

impl Default for RampPlan {
    fn default() -> Self {
        Self {
            stages: vec![0.01, 0.05, 0.25, 0.5],
            least_time: Duration::from_secs(24 * HOUR_SECS),
            least_connections: 500,
            most_time: Duration::from_secs(28 * 24 * HOUR_SECS),
            detect: 0.05,
            win: 0.0,
            loss: 0.005,
            completion: 0.005,
            rtt: None,
            time_limit: Duration::from_secs(60),
            min_size: 0,
            holdback: 0.05,
            freeze: Vec::new(),
            state: None,
        }
    }
}

const HOUR_SECS: u64 = 3600;
const HOUR: Duration = Duration::from_secs(HOUR_SECS);
const STAGES_MAX: usize = 16;
/// Statistics of fewer connections are not nearly normal.
const LEAST_CONNECTIONS: u64 = 100;

impl RampPlan {
    /// Checks the keys of `[plan]`, beside an experiment of this many arms.
    ///
    /// # Errors
    ///
    /// Returns a [`SettingError`] with the key if a value is out of range, or there are not two arms.
    pub(crate) fn check(&self, arms: usize) -> Result<(), SettingError> {
        let invalid = |key: &str, value: String, expected: String| {
            Err(SettingError::new(format!("plan.{key}"), value, expected))
        };
        if arms != 2 {
            return Err(SettingError::new(
                "plan",
                format!("{arms} arms"),
                "two: the baseline, and the arm whose share grows",
            ));
        }
        let shown: Vec<String> = self
            .stages
            .iter()
            .map(|one| units::show_share(*one))
            .collect();
        let ascend = self.stages.is_sorted_by(|one, next| one < next);
        if self.stages.is_empty() || self.stages.len() > STAGES_MAX || !ascend {
            let expected =
                format!("1 to {STAGES_MAX} shares that grow, such as \"1%\", \"10%\", \"50%\"");
            return invalid("stages", shown.join(", "), expected);
        }
        if let Some(out) = self
            .stages
            .iter()
            .position(|one| !(0.0001..=0.9).contains(one))
        {
            return invalid("stages", shown[out].clone(), "0.01% to 90%".into());
        }
        let last = self.stages[self.stages.len() - 1];
        if self.holdback > 1.0 - last {
            let expected = format!(
                "at most {}, what the last stage leaves",
                units::show_share(1.0 - last)
            );
            return invalid("holdback", units::show_share(self.holdback), expected);
        }
        for (key, value) in [
            ("detect", self.detect),
            ("loss", self.loss),
            ("completion", self.completion),
            ("rtt", self.rtt.unwrap_or(self.detect)),
        ] {
            if !(0.0001..=0.5).contains(&value) {
                return invalid(key, units::show_share(value), "0.01% to 50%".into());
            }
        }
        if self.win < -0.5 || self.win_margin() < 0.0001 {
            let expected = format!(
                "-50% to -0.01%, 0%, or at least 0.01% less than `detect`, {}, so that an arm with that change can win",
                units::show_share(self.detect)
            );
            return invalid("win", units::show_share(self.win), expected);
        }
        if self.least_connections < LEAST_CONNECTIONS {
            let expected = format!("{LEAST_CONNECTIONS} or more");
            return invalid(
                "least-connections",
                self.least_connections.to_string(),
                expected,
            );
        }
        let shortest = Self::hours(self.least_time) * self.stages.len() as u64;
        if self.least_time < HOUR || Self::hours(self.most_time) < shortest {
            let expected = format!(
                "1h or more, of which {} stages do not exceed `most-time`",
                self.stages.len()
            );
            return invalid("least-time", units::show_span(self.least_time), expected);
        }
        if self.state.as_deref() == Some("") {
            return invalid("state", "empty".into(), "the name of a directory".into());
        }
        if self.time_limit < Duration::from_secs(1) {
            return invalid(
                "time-limit",
                units::show_span(self.time_limit),
                "1s or more".into(),
            );
        }
        Ok(())
    }

    /// The improvement of an arm that the plan is made to let win: `detect`, or none where a winner may be slower.
    pub const fn expected(&self) -> f64 {
        if self.win < 0.0 { 0.0 } else { self.detect }
    }

    /// How far the expected improvement is above what a win must exceed.
    pub const fn win_margin(&self) -> f64 {
        self.expected() - self.win
    }

    /// A span in hours, rounded up.
    pub const fn hours(span: Duration) -> u64 {
        span.as_secs().div_ceil(HOUR_SECS)
    }
}

fn share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let text = String::deserialize(from)?;
    units::probability(&text).map_err(|error| D::Error::custom(SettingError::from(error)))
}

fn signed_share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let text = String::deserialize(from)?;
    let share = match text.strip_prefix('-') {
        Some(size) => units::probability(size).map(|share| -share),
        None => units::probability(&text),
    };
    share.map_err(|error| D::Error::custom(SettingError::from(error)))
}

fn optional_share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    share(from).map(Some)
}

fn shares<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let shares = texts.iter().map(|text| units::probability(text));
    let shares: Result<Vec<f64>, _> = shares.collect();
    shares.map_err(|error| D::Error::custom(SettingError::from(error)))
}

fn windows<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Freeze>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let windows = texts.iter().map(|text| text.parse());
    windows
        .collect::<Result<_, SettingError>>()
        .map_err(D::Error::custom)
}
