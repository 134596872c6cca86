//! The effect of a pause in sending on the window: the table of [`IdlePolicy`].

use core::time::Duration;

use crate::{config::IdlePolicy, controller::IdleRestart};

/// A window and its slow start threshold, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    pub(super) window: u64,
    pub(super) slow_start_threshold: u64,
}

/// The windows after the pause of `restart`; `initial` is the initial window. Never more than before.
pub(super) fn after_idle(
    policy: IdlePolicy,
    before: Windows,
    initial: u64,
    restart: &IdleRestart<'_>,
) -> Windows {
    let timeout = restart.rtt.probe_timeout(Duration::ZERO);
    match policy {
        IdlePolicy::Rfc9002 => decay(before, initial, periods(restart.idle, NON_VALIDATED_PERIOD)),
        IdlePolicy::Rfc5681 if restart.idle > timeout => Windows {
            window: before.window.min(initial),
            ..before
        },
        IdlePolicy::Keep | IdlePolicy::Rfc5681 => before,
        IdlePolicy::Rfc2861 => decay(before, initial, periods(restart.idle, timeout)),
    }
}

/// Halves the window once per period, down to the initial one, and stores three quarters of it as the threshold.
fn decay(before: Windows, initial: u64, periods: u32) -> Windows {
    if periods == 0 {
        return before;
    }
    let floor = before.window.min(initial);
    Windows {
        window: before.window.checked_shr(periods).unwrap_or(0).max(floor),
        // RFC 2861 §3.2, RFC 7661 §4.4.3
        slow_start_threshold: before.slow_start_threshold.max(before.window / 4 * 3),
    }
}

fn periods(idle: Duration, period: Duration) -> u32 {
    let periods = idle.as_nanos() / period.as_nanos().max(1);
    u32::try_from(periods).unwrap_or(u32::MAX)
}

/// RFC 7661 §4.1: the non-validated period, five minutes.
const NON_VALIDATED_PERIOD: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests;
