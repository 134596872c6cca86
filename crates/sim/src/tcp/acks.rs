//! When a receiver acknowledges (RFC 5681 §4.2), as Linux does.
//!
//! - Quick acknowledgments (`tcp_event_data_recv`): each segment is acknowledged at once for the first 16, after a pause longer than the
//!   retransmission timeout, and after a duplicate, unless the connection is interactive.
//! - Interactive (`pingpong`, `tcp_event_data_sent`): this end has answered within the delay of an acknowledgment. It stops with a delayed
//!   acknowledgment that timed out.
//! - Otherwise (`__tcp_ack_snd_check`, `tcp_cleanup_rbuf`): at once when more than a full segment has arrived since the latest acknowledgment,
//!   when something is missing or a gap was filled, or when a short or pushed segment was read; else after 40 ms.
//!
//! Not modelled: compressed SACKs (1 ms), and acknowledgments delayed while a backlog is processed.

use core::time::Duration;

use lastbyte_units::Time;

use super::{incoming::Arrival, rto::timer, segment::Segment};

/// The state of acknowledging.
#[derive(Debug)]
pub(super) struct Acks {
    /// Quick acknowledgments left.
    quick: u64,
    is_interactive: bool,
    /// The delay; `None` before the first payload.
    delay: Option<Duration>,
    received_at: Time,
    /// The largest payload seen, which counts as a full segment.
    segment_size: u64,
    /// All bytes below were acknowledged.
    acked: u64,
    is_due: bool,
    /// Whether it is due without a wait for data.
    is_urgent: bool,
    deadline: Option<Time>,
    /// Whether a short or pushed segment has arrived since the latest acknowledgment, and another.
    pushed: [bool; 2],
}

/// A segment with payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Received {
    pub(super) arrival: Arrival,
    /// All bytes below have arrived.
    pub(super) next: u64,
    /// The receive window.
    pub(super) window: u64,
    /// The retransmission timeout, and the smoothed round-trip time.
    pub(super) rto: Duration,
    pub(super) smoothed: Option<Duration>,
}

impl Acks {
    pub(super) const fn new() -> Self {
        Self {
            quick: 0,
            is_interactive: false,
            delay: None,
            received_at: Time::ZERO,
            segment_size: SEGMENT_DEFAULT,
            acked: 0,
            is_due: false,
            is_urgent: false,
            deadline: None,
            pushed: [false; 2],
        }
    }

    pub(super) fn on_segment(&mut self, now: Time, segment: &Segment, received: &Received) {
        let len = u64::from(segment.len);
        let is_short = len < self.segment_size;
        self.segment_size = self.segment_size.max(len);
        if is_short || segment.flags.push {
            self.pushed = [true, is_short && self.pushed[0]];
        }
        let gap = now.since(self.received_at);
        self.received_at = now;
        self.delay = Some(match self.delay {
            None => {
                self.add_quick(received.window);
                DELAY_MIN
            }
            Some(delay) if gap <= DELAY_MIN / 2 => delay / 2 + DELAY_MIN / 2,
            Some(delay) if gap < delay => (delay / 2 + gap).min(received.rto),
            Some(delay) => {
                if gap > received.rto {
                    self.add_quick(received.window);
                }
                delay
            }
        });
        if received.arrival == Arrival::Duplicate {
            self.add_quick(received.window);
            self.is_interactive = false;
            self.delay = Some(DELAY_MIN);
        }
        let has_two = received.next.saturating_sub(self.acked) > self.segment_size;
        let is_read = received.arrival != Arrival::OutOfOrder;
        let is_pushed = is_read && (self.pushed[1] || (self.pushed[0] && !self.is_interactive));
        if has_two
            || is_pushed
            || (self.quick > 0 && !self.is_interactive)
            || received.arrival != Arrival::InOrder
        {
            self.is_due = true;
        } else {
            self.set_timer(now, received.smoothed);
        }
    }

    /// `tcp_send_delayed_ack`
    fn set_timer(&mut self, now: Time, smoothed: Option<Duration>) {
        let mut delay = self.delay.unwrap_or(DELAY_MIN);
        if delay > DELAY_MIN {
            let most = if self.is_interactive || self.pushed[0] {
                DELAY_MAX
            } else {
                DELAY_LONG
            };
            let most = smoothed.map_or(most, |rtt| most.min(rtt.max(DELAY_MIN)));
            delay = delay.min(most);
        }
        let at = timer(now, delay.min(DELAY_MAX));
        match self.deadline {
            Some(set) if set <= now + delay / 4 => self.is_due = true,
            Some(set) => self.deadline = Some(set.min(at)),
            None => self.deadline = Some(at),
        }
    }

    fn add_quick(&mut self, window: u64) {
        let quick = (window / (2 * self.segment_size)).clamp(2, QUICK_MAX);
        self.quick = self.quick.max(quick);
    }

    /// Requests an immediate acknowledgment, for a reason other than payload.
    pub(super) const fn demand(&mut self) {
        self.is_due = true;
        self.is_urgent = true;
    }

    pub(super) const fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    pub(super) const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// `tcp_delack_timer_handler`
    pub(super) fn on_timeout(&mut self, now: Time, rto: Duration) {
        if self.deadline.take_if(|at| *at <= now).is_some() {
            if self.is_interactive {
                self.is_interactive = false;
                self.delay = Some(DELAY_MIN);
            } else {
                self.delay = self.delay.map(|delay| (delay * 2).min(rto));
            }
            self.is_due = true;
        }
    }

    /// A segment was sent, which acknowledges all below `next`.
    pub(super) fn on_sent(&mut self, now: Time, next: u64, has_payload: bool) {
        if self.is_due || self.deadline.is_some() {
            self.quick = self.quick.saturating_sub(1);
        }
        self.is_due = false;
        self.is_urgent = false;
        self.deadline = None;
        self.acked = next;
        self.pushed = [false; 2];
        if has_payload
            && self
                .delay
                .is_some_and(|delay| now.since(self.received_at) < delay)
        {
            self.is_interactive = true;
        }
    }
}

/// `TCP_MSS_DEFAULT`
const SEGMENT_DEFAULT: u64 = 536;
/// `TCP_MAX_QUICKACKS`
const QUICK_MAX: u64 = 16;
/// `TCP_ATO_MIN`, `TCP_DELACK_MIN`
const DELAY_MIN: Duration = Duration::from_millis(40);
/// `TCP_DELACK_MAX`
const DELAY_MAX: Duration = Duration::from_millis(200);
/// `HZ / 2`
const DELAY_LONG: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests;
