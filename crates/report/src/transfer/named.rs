//! Names of what happens in a transfer, the same for simulated transfers and for those of qlog files.
//!
//! A name with a number ends with a preposition, since its time follows it in the picture.

use crate::scale::Unit;

#[cfg(test)]
mod tests;

/// Packets of the first flight, between which pauses have no name.
const FIRST_FLIGHT: u64 = 10;

/// Ends the name of the first losses, after their number.
pub(crate) const LOST: &str = "packets lost at";

/// What has happened to a sender so far. Times are in milliseconds, and the calls are in their order.
#[derive(Clone, Debug, Default)]
pub struct Named {
    startup_ends: Option<f64>,
    conservative: Option<f64>,
    recoveries: u64,
    second_recovery: Option<f64>,
    first_loss: Option<f64>,
    /// Packets declared lost within a round trip after the first loss.
    first_packets: u64,
    /// When startup, or any later growth, first filled a queue of the path, as far as known.
    queue_full: Option<f64>,
    sent_packets: u64,
    last_sent: Option<f64>,
    /// The first pause in which the path had nothing to do, and when it starts.
    gap: Option<(f64, f64)>,
    closed: Option<f64>,
}

impl Named {
    /// A packet was sent. `was_limited` is whether the window, outside of recovery, kept the sender from sending it earlier, as far as
    /// known; `rtt_min` is the smallest round-trip time so far. Returns the pause before it, if the path was idle in it: longer than
    /// half of that.
    pub fn sent(
        &mut self,
        now: f64,
        was_limited: bool,
        rtt_min: Option<f64>,
    ) -> Option<(f64, f64)> {
        self.sent_packets += 1;
        let from = self.last_sent.replace(now)?;
        let is_idle = self.sent_packets > FIRST_FLIGHT
            && was_limited
            && rtt_min.is_some_and(|rtt| now - from > 0.5 * rtt);
        if !is_idle {
            return None;
        }
        self.gap.get_or_insert((now - from, from));
        Some((from, now))
    }

    /// Packets were declared lost; `round_trip` is the smoothed round-trip time.
    pub fn lost(&mut self, now: f64, packets: u64, round_trip: f64) {
        let first = *self.first_loss.get_or_insert(now);
        if now <= first + round_trip {
            self.first_packets += packets;
        }
    }

    /// A packet of the sender was dropped because a queue of the path was full. Only a path that is known shows that.
    pub fn queue_overflowed(&mut self, now: f64) {
        self.queue_full.get_or_insert(now);
    }

    /// Conservative Slow Start starts (RFC 9406 §4.2).
    pub fn conservative(&mut self, now: f64) {
        self.conservative.get_or_insert(now);
    }

    /// Startup is over.
    pub fn startup_ends(&mut self, now: f64) {
        self.startup_ends.get_or_insert(now);
    }

    /// A recovery period starts.
    pub fn recovery(&mut self, now: f64) {
        self.recoveries += 1;
        if self.recoveries == 2 {
            self.second_recovery = Some(now);
        }
    }

    /// The connection is closed.
    pub fn closed(&mut self, now: f64) {
        self.closed.get_or_insert(now);
    }

    /// All names, with their times.
    pub fn events(&self) -> Vec<(f64, String)> {
        let mut events = Vec::new();
        let mut add = |at: Option<f64>, what: String| {
            if let Some(at) = at {
                events.push((at, what));
            }
        };
        add(self.conservative, "CSS starts".to_owned());
        add(self.startup_ends, "startup ends".to_owned());
        if self.first_packets > 1 {
            let is_overshoot = self
                .queue_full
                .zip(self.first_loss)
                .is_some_and(|(full, loss)| full <= loss);
            let overshoot = if is_overshoot { "overshoot: " } else { "" };
            let what = format!("{overshoot}{} {LOST}", self.first_packets);
            add(self.first_loss, what);
        }
        add(self.second_recovery, "second recovery".to_owned());
        if let Some((gap, from)) = self.gap {
            let gap = Unit::Milliseconds.format(gap);
            add(Some(from), format!("idle for {gap} from"));
        }
        add(self.closed, "closed".to_owned());
        events
    }
}
