//! Whether and when a fetch that came to nothing is begun again, as curl's `--retry` has it. Pure.
//!
//! This is about failures that may pass. That a request goes to another connection, since the server did not process it, is
//! a matter of the protocol, and happens without being asked for.

use core::time::Duration;

use crate::failure::Failure;

/// The longest pause.
const DELAY_MAX: Duration = Duration::from_secs(600);

/// Whether and when a fetch is begun again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retry {
    /// How often at most.
    pub max: u32,
    /// The pause before each; `None` for a second, and then twice as long each time, up to ten minutes.
    pub delay: Option<Duration>,
    /// For how long since the first began; `None` for ever.
    pub max_time: Option<Duration>,
    /// Whether also where nobody listens.
    pub refused: bool,
    /// Whether after all failures.
    pub all: bool,
}

impl Retry {
    /// How long to wait before the next attempt; `None` if there is to be none. `attempts` have been made again by now, in
    /// `spent` since the first began; `asked` is the pause that the server asks for.
    pub(crate) fn pause(
        &self,
        attempts: u32,
        spent: Duration,
        asked: Option<Duration>,
    ) -> Option<Duration> {
        let growing = Duration::from_secs(1 << attempts.min(10));
        let pause = asked.or(self.delay).unwrap_or(growing).min(DELAY_MAX);
        let is_in_time = self.max_time.is_none_or(|max| spent + pause <= max);
        (attempts < self.max && is_in_time).then_some(pause)
    }

    /// Whether a status may pass.
    pub(crate) const fn is_transient(status: u16) -> bool {
        matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
    }

    /// Whether a failure may pass.
    pub(crate) fn is_retryable(&self, failure: &Failure) -> bool {
        match failure {
            Failure::Interrupted | Failure::Rewind | Failure::Scheme(_) => false,
            Failure::Resolve(_)
            | Failure::ResolveProxy(_)
            | Failure::ConnectTimeout(_)
            | Failure::TimeLimit(_)
            | Failure::Slow(..) => true,
            Failure::Connect(_) => self.refused || self.all,
            _ => self.all,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end() {
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
    fn what_may_pass_is_what_curl_takes_for_it() {
        let some = Retry::default();
        let refused = Failure::Connect("refused".to_owned());
        let broken = Failure::Empty;
        let late = Failure::TimeLimit(Duration::ZERO);
        assert!(
            some.is_retryable(&late) && !some.is_retryable(&refused) && !some.is_retryable(&broken)
        );
        let more = Retry {
            refused: true,
            ..some
        };
        assert!(more.is_retryable(&refused) && !more.is_retryable(&broken));
        let all = Retry { all: true, ..some };
        assert!(all.is_retryable(&refused) && all.is_retryable(&broken));
        assert!(!all.is_retryable(&Failure::Interrupted));
        let passing: Vec<u16> = (100..600)
            .filter(|status| Retry::is_transient(*status))
            .collect();
        assert_eq!(passing, [408, 429, 500, 502, 503, 504]);
    }
}
