//! Thresholds of a run, for continuous integration: exit code 3 if one fails.

use core::{str::FromStr, time::Duration};

use clap::Args;
use lastbyte_load::{
    Measurement, Settings,
    histogram::{Histogram, needed_for},
    report::silent_end,
};
use lastbyte_units as units;

use super::compare::millis;

#[cfg(test)]
mod tests;

/// The exit code of a run that fails a threshold.
pub(super) const FAILED: u8 = 3;

/// The highest rate, in requests per second.
const RATE_MAX: f64 = 1e8;

/// Limits of the results.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Thresholds (exit code 3 if one fails)")]
pub(crate) struct Thresholds {
    /// Most requests that may fail: a number, or a share such as 1%
    #[arg(long, value_name = "N|SHARE", conflicts_with_all = ["compare", "against"])]
    pub(crate) max_errors: Option<MostErrors>,
    /// Highest 99th percentile of the latency
    #[arg(long, value_name = "SPAN", value_parser = units::span, conflicts_with_all = ["compare", "against"])]
    pub(crate) max_p99: Option<Duration>,
    /// Fewest responses per second
    #[arg(long, value_name = "REQUESTS", value_parser = rate, conflicts_with_all = ["compare", "against"])]
    pub(crate) min_rate: Option<f64>,
}

/// The most requests that may fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MostErrors {
    /// This number.
    Count(u64),
    /// This share of all requests, from 0 to 1.
    Share(f64),
}

impl FromStr for MostErrors {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = text
            .strip_suffix('%')
            .map(|number| number.trim().parse::<f64>());
        let found = match percent {
            Some(Ok(percent)) if (0.0..=100.0).contains(&percent) => {
                Some(Self::Share(percent / 100.0))
            }
            Some(_) => None,
            None => text.parse().ok().map(Self::Count),
        };
        found.ok_or_else(|| "expected a number, or a share from 0% to 100%".to_owned())
    }
}

impl Thresholds {
    /// The thresholds that a run fails: what, its value, and the limit.
    pub(super) fn failures(&self, settings: &Settings, measurement: &Measurement) -> Vec<String> {
        let counts = &measurement.recorder.counts;
        let (failed, total) = (counts.failed, measurement.total(settings));
        let share = failed as f64 / total.max(1) as f64;
        let errors = match self.max_errors {
            Some(MostErrors::Count(most)) if failed > most => Some(format!(
                "{failed} requests failed (expected at most {most}: --max-errors)"
            )),
            Some(MostErrors::Share(most)) if share > most => Some(format!(
                "{failed} of {total} requests failed, {:.2} % (expected at most {} %: --max-errors)",
                share * 100.0,
                most * 100.0
            )),
            _ => None,
        };
        let latency = &measurement.recorder.latency;
        let rate = measurement.rate();
        let slow = self.min_rate.filter(|least| rate < *least);
        let slow = slow
            .map(|least| format!("{rate:.2} requests/s (expected at least {least}: --min-rate)"));
        let p99 = percentile("P99", 0.99, self.max_p99, "--max-p99", latency);
        let is_set = self.max_errors.is_some() || self.max_p99.is_some() || self.min_rate.is_some();
        let silent = silent_end(settings, measurement).filter(|_| is_set);
        let silent = silent.map(|silent| {
            format!(
                "no response in the last {:.1} s (expected responses to the end of the run)",
                silent.as_secs_f64()
            )
        });
        [errors, p99, slow, silent].into_iter().flatten().collect()
    }
}

/// Why a percentile fails its limit. One that is unknown fails as well, since the limit cannot be checked.
fn percentile(
    name: &str,
    share: f64,
    most: Option<Duration>,
    option: &str,
    latency: &Histogram,
) -> Option<String> {
    let most = most?;
    let limit = millis(most.as_nanos() as f64);
    let expected = format!("expected at most {limit}: {option}");
    match latency.supported_quantile(share) {
        None => Some(format!(
            "{name} is unknown: it needs {} responses, and there were {} ({expected})",
            needed_for(share),
            latency.count()
        )),
        Some(nanos) if u128::from(nanos) > most.as_nanos() => {
            Some(format!("{name} {} ({expected})", millis(nanos as f64)))
        }
        Some(_) => None,
    }
}

/// A rate in requests per second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.strip_suffix("/s").unwrap_or(text).parse::<f64>().ok();
    rate.filter(|rate| *rate > 0.0 && *rate <= RATE_MAX)
        .ok_or_else(|| "expected requests per second, such as `500` or `0.5`".to_owned())
}
