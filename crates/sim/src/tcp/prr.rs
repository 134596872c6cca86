//! Proportional rate reduction (RFC 6937, with slow start as the reduction bound), as in Linux (`tcp_cwnd_reduction`).

/// The window during a recovery. Sizes are in bytes.
#[derive(Clone, Debug)]
pub(super) struct Prr {
    segment_size: u64,
    /// The window before the recovery.
    prior: u64,
    delivered: u64,
    sent: u64,
    window: u64,
}

/// An acknowledgment in recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Newly acknowledged, also by SACK.
    pub(super) delivered: u64,
    pub(super) in_flight: u64,
    /// The window at the end of recovery.
    pub(super) threshold: u64,
    /// Whether the cumulative acknowledgment advanced, and no segment was declared lost.
    pub(super) is_good: bool,
}

impl Prr {
    /// Starts a recovery.
    pub(super) const fn new(segment_size: u64, prior: u64) -> Self {
        Self {
            segment_size,
            prior,
            delivered: 0,
            sent: 0,
            window: 0,
        }
    }

    pub(super) fn on_ack(&mut self, ack: &Delivery) {
        if ack.delivered == 0 || self.prior == 0 {
            return;
        }
        self.delivered += ack.delivered;
        let allowed = match ack.threshold.checked_sub(ack.in_flight) {
            // Above the threshold: in proportion.
            None | Some(0) => {
                let share = u128::from(ack.threshold) * u128::from(self.delivered);
                (share.div_ceil(self.prior.into()) as u64).saturating_sub(self.sent)
            }
            Some(room) => {
                let mut allowed = self.delivered.saturating_sub(self.sent).max(ack.delivered);
                if ack.is_good {
                    allowed += self.segment_size;
                }
                allowed.min(room)
            }
        };
        // The first retransmission is sent regardless of the bytes in flight.
        let least = if self.sent == 0 { self.segment_size } else { 0 };
        self.window = ack.in_flight + allowed.max(least);
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// The window, in bytes.
    pub(super) const fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests;
