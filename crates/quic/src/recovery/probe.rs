//! The probe timeout and the loss timer: one timer for all spaces (RFC 9002 §6.2, §A.8).

use core::time::Duration;

use lastbyte_congestion::{Rtt, Time};

use crate::space::Space;

/// The inputs of the timer from the connection.
#[derive(Clone, Copy, Debug)]
pub struct TimerContext {
    /// The peer's `max_ack_delay`; it applies only in the application space.
    pub max_ack_delay: Duration,
    /// Whether the handshake is confirmed: before, there are no probes in the application space (RFC 9002 §6.2.1).
    pub is_handshake_confirmed: bool,
    /// Whether Handshake keys are available.
    pub has_handshake_keys: bool,
    /// Whether a server has reached the anti-amplification limit (RFC 9000 §8.1): then no timer runs.
    pub is_amplification_limited: bool,
    /// Whether this is a client whose address the server may not have validated yet: it keeps a timer with nothing in
    /// flight, since otherwise both sides could wait forever (RFC 9002 §6.2.2.1). So does either side whose handshake
    /// data is blocked by a window full of application data, which the peer cannot acknowledge before the handshake is
    /// done.
    pub must_keep_alive: bool,
}

/// The timer's state.
#[derive(Clone, Debug)]
pub struct ProbeTimer {
    /// When the earliest packet of each space will be lost by time threshold.
    loss_times: [Option<Time>; 3],
    /// When the last ack-eliciting packet of each space was sent.
    last_sent: [Option<Time>; 3],
    /// Consecutive probe timeouts (RFC 9002 §A.3).
    pto_count: u32,
    /// The reference time of a client with nothing in flight.
    idle_since: Time,
}

impl ProbeTimer {
    /// Nothing sent yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            loss_times: [None; 3],
            last_sent: [None; 3],
            pto_count: 0,
            idle_since: Time::ZERO,
        }
    }

    /// An ack-eliciting packet was sent.
    pub fn on_ack_eliciting_sent(&mut self, space: Space, now: Time) {
        if let Some(last) = self.last_sent.get_mut(space.index()) {
            *last = Some(now);
        }
        self.idle_since = now;
    }

    /// Something was newly acknowledged. (A client whose address may not be validated yet must not call this for Initial
    /// packets: RFC 9002 §6.2.1.)
    pub fn reset_pto_count(&mut self) {
        self.pto_count = 0;
    }

    /// Consecutive probe timeouts (RFC 9002 §A.3).
    pub const fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// Sets the earliest time at which a packet of the space is lost unless it is acknowledged before.
    pub fn set_loss_time(&mut self, space: Space, at: Option<Time>) {
        if let Some(loss_time) = self.loss_times.get_mut(space.index()) {
            *loss_time = at;
        }
    }

    /// The earliest loss time of all spaces.
    pub fn loss_time(&self) -> Option<(Time, Space)> {
        let mut earliest: Option<(Time, Space)> = None;
        for (space, at) in Space::ALL.into_iter().zip(&self.loss_times) {
            if let Some(at) = *at
                && earliest.is_none_or(|(earliest, _)| at < earliest)
            {
                earliest = Some((at, space));
            }
        }
        earliest
    }

    /// A probe timeout expired.
    pub fn on_probe_timeout(&mut self) {
        self.pto_count = self.pto_count.saturating_add(1);
    }

    /// The keys of a space were discarded.
    pub fn on_discarded(&mut self, space: Space, now: Time) {
        self.set_loss_time(space, None);
        if let Some(last) = self.last_sent.get_mut(space.index()) {
            *last = None;
        }
        self.pto_count = 0;
        self.idle_since = now;
    }

    /// When the timer expires, and for which space.
    pub fn deadline(
        &self,
        rtt: &Rtt,
        has_ack_eliciting: [bool; 3],
        context: &TimerContext,
    ) -> Option<(Time, Space)> {
        if let Some(loss) = self.loss_time() {
            return Some(loss);
        }
        if context.is_amplification_limited {
            return None;
        }
        let [initial, handshake, application] = has_ack_eliciting;
        if !(initial || handshake || (application && context.is_handshake_confirmed)) {
            if !context.must_keep_alive {
                return None;
            }
            // No packet is in flight that the peer could acknowledge now.
            let space = if context.has_handshake_keys {
                Space::Handshake
            } else {
                Space::Initial
            };
            return Some((self.idle_since + self.timeout(rtt, Duration::ZERO), space));
        }
        let mut earliest: Option<(Time, Space)> = None;
        let mut consider = |space: Space, max_ack_delay: Duration| {
            if let Some(Some(last)) = self.last_sent.get(space.index()) {
                let at = *last + self.timeout(rtt, max_ack_delay);
                if earliest.is_none_or(|(earliest, _)| at < earliest) {
                    earliest = Some((at, space));
                }
            }
        };
        if initial {
            consider(Space::Initial, Duration::ZERO);
        }
        if handshake {
            consider(Space::Handshake, Duration::ZERO);
        }
        if application && context.is_handshake_confirmed {
            consider(Space::Application, context.max_ack_delay);
        }
        earliest
    }

    /// RFC 9002 §6.2.1.
    fn timeout(&self, rtt: &Rtt, max_ack_delay: Duration) -> Duration {
        let timeout = rtt.probe_timeout(max_ack_delay);
        match self.pto_count {
            0 => timeout,
            count => timeout.saturating_mul(2_u32.saturating_pow(count)),
        }
    }
}

impl Default for ProbeTimer {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
