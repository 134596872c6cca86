//! Breakdown of a transfer's time, as seen by the sender.
//!
//! [`Connection::measure_transfer`](crate::connection::Connection::measure_transfer) starts the measurement when a request has
//! arrived. From then until the last acknowledgment, each moment belongs to exactly one part of [`Anatomy`], so its parts add up to
//! the time to last byte; [`Anatomy::handshake`] is the time before. A connection that does not measure computes nothing.
//!
//! # Definitions
//!
//! The time of a connection consists of turns, which take no time, and of the spans between them. At the end of a turn the
//! connection has sent what it may, and there is one reason why it sends no more, the limit. The following span, of length *s*,
//! ends with the next turn in which a packet is acknowledged or declared lost, a probe timeout expires, or the connection is asked
//! to send. Let *rtt* and *min* be the latest and the minimum round-trip time at the end of the turn.
//!
//! Loss is *under repair* from the time at which a packet is declared lost, or a probe timeout expires, until a packet is
//! acknowledged that was sent after that (the recovery period of RFC 9002 §7.3.2).
//!
//! Before the last byte of stream data has been sent for the first time:
//!
//! | limit | the span counts as |
//! |---|---|
//! | flow control | `flow_control` |
//! | nothing to send | `application` |
//! | the pacer | `pacing` |
//! | the window, while loss is under repair | `repair` |
//! | the window, otherwise | the first min(*s*, *rtt* − *min*) as `queueing`; of the rest, `idle` if it is longer than *min* / 4, else `window` |
//!
//! A queue of *rtt* − *min* before the bottleneck is busy with the sender's packets for that long, so this part of a wait is the
//! rate of the path; afterwards the path has nothing to do. A long rest is the pause after a flight; short rests lie between the
//! acknowledgments that clock a window that is too small.
//!
//! Flow control is the limit if a stream has data that was never sent, and the peer's limits for the connection or for each such
//! stream (RFC 9000 §4.1) allow none of it, while neither lost data nor a datagram waits to be sent. One stream that may send is
//! enough to make another limit count. If flow control and the window both are exhausted, the span counts as `flow_control`: an
//! acknowledgment alone would release nothing. The peer's limit on the number of streams (§4.6) is not flow control here: data
//! of a stream that cannot be opened is still the application's.
//!
//! After that byte: `repair` while loss is under repair or the last data sent again is not acknowledged, else `last_ack`, the wait for
//! the last acknowledgment.
//!
//! A span that ends with a probe timeout counts as `repair`.

use core::{ops::AddAssign, time::Duration};

use lastbyte_congestion::Time;

use crate::space::Space;

#[cfg(test)]
mod tests;

/// The parts of a transfer's time. All but the first add up to the time from the request to the last acknowledgment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Anatomy {
    /// From the start of the connection to the request.
    pub handshake: Duration,
    /// There was nothing to send.
    pub application: Duration,
    /// The application had data, and the peer's flow control allowed to send none of it.
    pub flow_control: Duration,
    /// The window was full, and acknowledgments followed each other closely.
    pub window: Duration,
    /// The pacer held data back.
    pub pacing: Duration,
    /// The window was full, and the path was idle after the flight.
    pub idle: Duration,
    /// The window was full, and packets of the flight waited before the bottleneck.
    pub queueing: Duration,
    /// Losses were repaired.
    pub repair: Duration,
    /// All had been sent, and the last acknowledgment was on its way.
    pub last_ack: Duration,
}

impl Anatomy {
    /// The time from the request to the last acknowledgment: all parts without the handshake.
    pub fn transfer(&self) -> Duration {
        self.application
            + self.flow_control
            + self.window
            + self.pacing
            + self.idle
            + self.queueing
            + self.repair
            + self.last_ack
    }
}

impl AddAssign for Anatomy {
    fn add_assign(&mut self, other: Self) {
        self.handshake += other.handshake;
        self.application += other.application;
        self.flow_control += other.flow_control;
        self.window += other.window;
        self.pacing += other.pacing;
        self.idle += other.idle;
        self.queueing += other.queueing;
        self.repair += other.repair;
        self.last_ack += other.last_ack;
    }
}

/// What limits a connection at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// There is nothing to send.
    Application,
    /// The peer's flow control allows none of the data.
    FlowControl,
    /// The congestion window is full.
    Window,
    /// The pacer holds the next datagram back.
    Pacing,
}

/// A connection at the end of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    pub(crate) limit: Limit,
    /// Bytes of stream data sent so far, without retransmissions.
    pub(crate) stream_bytes: u64,
    /// Bytes of stream data sent again so far.
    pub(crate) resent_bytes: u64,
    /// The number of the next packet of the Application space.
    pub(crate) next_number: u64,
    pub(crate) rtt_latest: Duration,
    pub(crate) rtt_min: Duration,
}

/// Measures a transfer.
#[derive(Debug)]
pub(crate) struct Meter {
    /// Time is counted until here.
    counted_to: Time,
    pause: Pause,
    /// Loss is under repair until a packet of this number or a later one is acknowledged.
    repaired_by: Option<u64>,
    /// Data sent again is outstanding until a packet of this number or a later one is acknowledged.
    resent_by: Option<u64>,
    /// The parts until stream data was last sent for the first time.
    parts: Anatomy,
    /// The parts since then, if more stream data follows.
    since: Anatomy,
    /// The parts since then, if none follows.
    tail: Anatomy,
}

impl Meter {
    /// Starts at a request, of a connection that started then.
    pub(crate) fn new(now: Time, started_at: Time) -> Self {
        Self {
            counted_to: now,
            pause: Pause {
                limit: Limit::Application,
                stream_bytes: 0,
                resent_bytes: 0,
                next_number: 0,
                rtt_latest: Duration::ZERO,
                rtt_min: Duration::ZERO,
            },
            repaired_by: None,
            resent_by: None,
            parts: Anatomy {
                handshake: now.since(started_at),
                ..Anatomy::default()
            },
            since: Anatomy::default(),
            tail: Anatomy::default(),
        }
    }

    /// A turn has ended.
    pub(crate) fn on_pause(&mut self, now: Time, pause: Pause) {
        self.count(now, false);
        if pause.stream_bytes > self.pause.stream_bytes {
            self.parts += core::mem::take(&mut self.since);
            self.tail = Anatomy::default();
        }
        if pause.resent_bytes > self.pause.resent_bytes {
            self.resent_by = pause.next_number.checked_sub(1);
        }
        self.pause = pause;
    }

    /// A packet was acknowledged.
    pub(crate) fn on_acked(&mut self, now: Time, space: Space, number: u64) {
        self.count(now, false);
        if space == Space::Application {
            self.repaired_by.take_if(|by| number >= *by);
            self.resent_by.take_if(|by| number >= *by);
        }
    }

    /// A packet was declared lost.
    pub(crate) fn on_lost(&mut self, now: Time) {
        self.count(now, false);
        self.repaired_by = Some(self.pause.next_number);
    }

    /// A probe timeout expired.
    pub(crate) fn on_probe_timeout(&mut self, now: Time) {
        self.count(now, true);
        self.repaired_by = Some(self.pause.next_number);
    }

    /// The parts until the last of these calls.
    pub(crate) fn anatomy(&self) -> Anatomy {
        let mut parts = self.parts;
        parts += self.tail;
        parts
    }

    /// Counts the span until now.
    fn count(&mut self, now: Time, is_probe_timeout: bool) {
        let span = now.since(self.counted_to);
        if span.is_zero() {
            return;
        }
        self.counted_to = now;
        let is_repair = is_probe_timeout || self.repaired_by.is_some();
        let tail = &mut self.tail;
        *(if is_repair || self.resent_by.is_some() {
            &mut tail.repair
        } else {
            &mut tail.last_ack
        }) += span;
        let since = &mut self.since;
        match self.pause.limit {
            _ if is_probe_timeout => since.repair += span,
            Limit::Application => since.application += span,
            Limit::FlowControl => since.flow_control += span,
            Limit::Pacing => since.pacing += span,
            Limit::Window if is_repair => since.repair += span,
            Limit::Window => {
                let queueing = span.min(self.pause.rtt_latest.saturating_sub(self.pause.rtt_min));
                let rest = span.saturating_sub(queueing);
                since.queueing += queueing;
                let is_idle = rest > self.pause.rtt_min / 4;
                *(if is_idle {
                    &mut since.idle
                } else {
                    &mut since.window
                }) += rest;
            }
        }
    }
}
