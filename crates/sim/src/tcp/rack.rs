//! Loss detection by time (RFC 8985; Linux `tcp_recovery.c`).

use core::time::Duration;

use lastbyte_units::Time;

/// State of RACK: the most recently sent segment among those delivered (RFC 8985 §5.2).
#[derive(Debug)]
pub(super) struct Rack {
    delivered: Option<(Time, u64)>,
    rtt: Duration,
    rtt_min: Option<Duration>,
    has_reordering: bool,
    /// The end of the highest segment delivered.
    highest: u64,
}

/// A transmission of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) sent_at: Time,
    pub(super) end: u64,
    pub(super) is_retransmission: bool,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            delivered: None,
            rtt: Duration::ZERO,
            rtt_min: None,
            has_reordering: false,
            highest: 0,
        }
    }

    pub(super) fn on_rtt(&mut self, sample: Duration) {
        self.rtt_min = Some(self.rtt_min.map_or(sample, |min| min.min(sample)));
    }

    /// RFC 8985 §6.2, steps 2 and 3 (`tcp_rack_advance`).
    pub(super) fn on_delivered(&mut self, now: Time, sent: Transmission) {
        if !sent.is_retransmission && sent.end < self.highest {
            self.has_reordering = true;
        }
        self.highest = self.highest.max(sent.end);
        let rtt = now.since(sent.sent_at);
        if sent.is_retransmission && self.rtt_min.is_some_and(|min| rtt < min) {
            return; // more likely, that of the original
        }
        let this = (sent.sent_at, sent.end);
        if self.delivered.is_none_or(|latest| this > latest) {
            self.delivered = Some(this);
            self.rtt = rtt;
        }
    }

    /// RFC 8985 §6.2, step 4 (`tcp_rack_reo_wnd`).
    pub(super) fn reordering_window(
        &self,
        is_recovering: bool,
        sacked: usize,
        smoothed: Duration,
    ) -> Duration {
        if !self.has_reordering && (is_recovering || sacked >= DUPLICATES) {
            return Duration::ZERO;
        }
        (self.rtt_min.unwrap_or_default() / 4).min(smoothed)
    }

    /// Whether a transmission precedes the delivered one.
    pub(super) fn is_before(&self, sent: Transmission) -> bool {
        self.delivered
            .is_some_and(|latest| (sent.sent_at, sent.end) < latest)
    }

    /// Time until a transmission counts as lost; zero if it does now (RFC 8985 §6.2, step 5).
    pub(super) fn remaining(&self, now: Time, sent: Transmission, window: Duration) -> Duration {
        (self.rtt + window).saturating_sub(now.since(sent.sent_at))
    }
}

/// `tcp_reordering`, RFC 8985 §6.2: `DupThresh`
const DUPLICATES: usize = 3;

#[cfg(test)]
mod tests;
