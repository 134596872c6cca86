//! Retries of failed fetches, by the same rules as curl's `--retry`. Pure functions.
//!
//! A retry repeats a fetch after a failure that may be temporary. This is independent of
//! [`Settings::retries`](crate::Settings::retries), which limits how often a request that the server did not process moves
//! to another connection.

use core::time::Duration;

use crate::failure::Failure;

/// The longest pause between attempts.
const DELAY_MAX: Duration = Duration::from_secs(600);

/// When a failed fetch is retried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// The largest number of retries.
    pub max: u32,
    /// The pause before each retry; `None` for 1 s before the first, doubled each time up to 10 minutes.
    pub delay: Option<Duration>,
    /// No retry starts later than this after the start of the first attempt; `None` for no limit.
    pub max_time: Option<Duration>,
    /// Whether refused connections are retried.
    pub refused: bool,
    /// Whether all failures are retried.
    pub all: bool,
}

impl Retry {
    /// The pause before the next retry; `None` if there is none. `attempts` is the number of retries so far, `spent`
    /// the time since the start of the first attempt, and `retry_after` the server's `retry-after`.
    pub(crate) fn pause(
        &self,
        attempts: u32,
        spent: Duration,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        let growing = Duration::from_secs(1 << attempts.min(10));
        let pause = retry_after.or(self.delay).unwrap_or(growing).min(DELAY_MAX);
        let is_in_time = self.max_time.is_none_or(|max| spent + pause <= max);
        (attempts < self.max && is_in_time).then_some(pause)
    }

    /// Whether a status may be temporary.
    pub(crate) const fn is_transient(status: u16) -> bool {
        matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
    }

    /// Whether a failure may be temporary, or is retried because the settings say so.
    pub(crate) fn is_retryable(&self, failure: &Failure) -> bool {
        match failure {
            Failure::Interrupted | Failure::Rewind | Failure::Scheme(_) => false,
            Failure::Resolve(_)
            | Failure::ResolveProxy(_)
            | Failure::ConnectTimeout(_)
            | Failure::TimeLimit(_) => true,
            Failure::Connect(_) => self.refused || self.all,
            _ => self.all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_limits() {
        let seconds = Duration::from_secs;
        let mut retry = Retry {
            max: 12,
            ..Retry::default()
        };
        let pauses = (0..13).map(|attempts| retry.pause(attempts, seconds(0), None));
        let pauses: Vec<Option<u64>> = pauses.map(|it| it.map(|it| it.as_secs())).collect();
        let expected = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600].map(Some);
        assert_eq!((&pauses[..12], pauses[12]), (&expected[..], None));
        assert_eq!(
            retry.pause(0, seconds(0), Some(seconds(7))),
            Some(seconds(7))
        );
        retry.delay = Some(seconds(3));
        assert_eq!(retry.pause(5, seconds(0), None), Some(seconds(3)));
        retry.max_time = Some(seconds(10));
        assert_eq!(retry.pause(0, seconds(7), None), Some(seconds(3)));
        assert_eq!(retry.pause(0, seconds(8), None), None);
    }

    #[test]
    fn retryable_failures_are_those_of_curl() {
        let default = Retry::default();
        let refused = Failure::Connect("refused".to_owned());
        let empty = Failure::Empty;
        let late = Failure::TimeLimit(Duration::ZERO);
        assert!(
            default.is_retryable(&late)
                && !default.is_retryable(&refused)
                && !default.is_retryable(&empty)
        );
        let more = Retry {
            refused: true,
            ..default
        };
        assert!(more.is_retryable(&refused) && !more.is_retryable(&empty));
        let all = Retry {
            all: true,
            ..default
        };
        assert!(all.is_retryable(&refused) && all.is_retryable(&empty));
        assert!(!all.is_retryable(&Failure::Interrupted));
        let passing: Vec<u16> = (100..600)
            .filter(|status| Retry::is_transient(*status))
            .collect();
        assert_eq!(passing, [408, 429, 500, 502, 503, 504]);
    }
}
