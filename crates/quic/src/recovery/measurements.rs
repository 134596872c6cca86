//! What a path shows of itself besides its round-trip times, for the log: the rate at which it delivers, how far it spreads a
//! flight, and how much was in flight at the first loss.
//!
//! Nothing here has an effect on what is sent, and each part costs an ACK frame a comparison or two.
//!
//! # Decisions
//!
//! - The delivery rate is measured as H2O's log has it (`delivery-rate.*`): over spans of at least 50 ms, and only by
//!   acknowledgments of packets that were not application-limited. Which packets those are follows
//!   draft-ietf-ccwg-bbr-06 §4.1.2.4, by the time of sending, so that packets carry nothing for it.
//! - The first flight is the first round trip in which at least [`FLIGHT_PACKETS_MIN`] packets were in flight: fewer are a
//!   handshake or a short response, and their acknowledgments show little of the path.

use core::time::Duration;

use lastbyte_congestion::{Bandwidth, Time};

/// Fewer packets are not a flight.
pub const FLIGHT_PACKETS_MIN: u64 = 10;
/// The shortest span of a complete sample of the delivery rate.
const SAMPLE_SPAN: Duration = Duration::from_millis(50);
/// Number of complete samples that are kept.
const SAMPLES_KEPT: usize = 10;

/// Rates at which a path delivered, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRate {
    /// Over the latest complete sample, or the only one if it is not complete.
    pub latest: u64,
    /// Over the latest ten complete samples and the one that follows.
    pub smoothed: u64,
    /// The standard deviation of the complete samples from that.
    pub deviation: u64,
}

/// How a path spread the first flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstFlight {
    /// Bytes acknowledged after the first of its acknowledgments, up to the last.
    pub bytes: u64,
    /// Time from sending its first packet to sending its last.
    pub sent_over: Duration,
    /// Time from the first acknowledgment of its packets to the last.
    pub acked_over: Duration,
}

/// An ACK frame that newly acknowledged its largest packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acked {
    pub(super) now: Time,
    /// Bytes acknowledged so far.
    pub(super) bytes: u64,
    /// When the largest packet was sent.
    pub(super) sent_at: Time,
}

/// The measurements of a path.
#[derive(Clone, Debug)]
pub struct Measurements {
    rate: RateMeter,
    flight: FlightMeter,
    pub(super) in_flight_at_first_loss: Option<u64>,
    /// The window at the start.
    initial_window: u64,
    idle_at: Option<Time>,
}

impl Measurements {
    pub(super) const fn new(initial_window: u64) -> Self {
        Self {
            rate: RateMeter::new(),
            flight: FlightMeter::new(),
            in_flight_at_first_loss: None,
            initial_window,
            idle_at: None,
        }
    }

    /// The delivery rate, of packets that were not application-limited; `None` without such packets.
    pub fn delivery_rate(&self) -> Option<DeliveryRate> {
        self.rate.report()
    }

    /// How the path spread the first flight; `None` before all of that was acknowledged.
    pub const fn first_flight(&self) -> Option<FirstFlight> {
        self.flight.measured
    }

    /// Bytes in flight when the first packet was declared lost, itself included; `None` without a loss.
    pub const fn in_flight_at_first_loss(&self) -> Option<u64> {
        self.in_flight_at_first_loss
    }

    /// When nothing was in flight for the first time after more than the initial window had been sent.
    pub const fn idle_at(&self) -> Option<Time> {
        self.idle_at
    }

    /// Nothing is left to send. `acked` bytes are acknowledged so far.
    pub(super) fn on_app_limited(&mut self, now: Time, acked: u64, in_flight: u64) {
        self.rate.on_app_limited(now, acked, in_flight);
    }

    /// The path is another one, or what was in flight on it is forgotten.
    pub(super) fn on_interruption(&mut self) {
        self.rate.span = None;
    }

    #[inline]
    pub(super) fn on_ack(&mut self, acked: &Acked) {
        self.rate.on_ack(acked);
    }

    /// An ACK frame in the Application space, whose largest packet is `largest`. `next` is the number of the next packet, and
    /// `last_sent_at` when the one before was sent.
    #[inline]
    pub(super) fn on_flight(&mut self, acked: &Acked, largest: u64, next: u64, last: Option<Time>) {
        if largest >= self.flight.awaits {
            self.flight.advance(acked, next, last);
        }
    }

    /// Nothing is in flight any more. `sent` bytes were sent so far.
    #[inline]
    pub(super) const fn on_idle(&mut self, now: Time, sent: u64) {
        if self.idle_at.is_none() && sent > self.initial_window {
            self.idle_at = Some(now);
        }
    }
}

/// A span in which bytes were delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    bytes: u64,
    span: Duration,
}

impl Sample {
    fn rate(self) -> u64 {
        Bandwidth::from_delivery(self.bytes, self.span).bytes_per_second()
    }
}

#[derive(Clone, Debug)]
struct RateMeter {
    /// Packets sent between these times, inclusive, were not application-limited. The second is [`Time::MAX`] while the
    /// sender is not.
    since: Time,
    until: Time,
    /// Once more bytes than this are acknowledged, packets that are sent are not application-limited.
    limited_up_to: u64,
    /// The start of the sample that is not complete, and its end so far: the time, and the bytes acknowledged by then.
    span: Option<[(Time, u64); 2]>,
    /// The latest complete samples, of which `complete` were taken so far, in a ring. A connection that transfers little
    /// allocates nothing.
    samples: Vec<Sample>,
    complete: u64,
    /// The latest sample that did not become complete.
    partial: Sample,
}

impl RateMeter {
    const fn new() -> Self {
        const NONE: Sample = Sample {
            bytes: 0,
            span: Duration::ZERO,
        };
        Self {
            since: Time::MAX,
            until: Time::ZERO,
            limited_up_to: 0,
            span: None,
            samples: Vec::new(),
            complete: 0,
            partial: NONE,
        }
    }

    fn on_app_limited(&mut self, now: Time, acked: u64, in_flight: u64) {
        if self.until == Time::MAX {
            self.until = now;
        }
        self.limited_up_to = acked.saturating_add(in_flight);
    }

    #[inline]
    fn on_ack(&mut self, acked: &Acked) {
        let end = (acked.now, acked.bytes);
        if acked.sent_at < self.since || acked.sent_at > self.until {
            self.pass(acked);
            return;
        }
        match &mut self.span {
            Some([start, last]) => {
                *last = end;
                if acked.now.since(start.0) >= SAMPLE_SPAN {
                    self.complete();
                }
            }
            None => self.span = Some([end, end]),
        }
    }

    /// An acknowledgment of a packet that was application-limited.
    fn pass(&mut self, acked: &Acked) {
        if self.span.is_some() {
            self.partial = self.current();
            self.span = None;
        }
        if self.until != Time::MAX && acked.bytes > self.limited_up_to {
            self.since = acked.now;
            self.until = Time::MAX;
        }
    }

    #[cold]
    fn complete(&mut self) {
        let index = self.complete % SAMPLES_KEPT as u64;
        let sample = self.current();
        match self.samples.get_mut(index as usize) {
            Some(oldest) => *oldest = sample,
            None => self.samples.push(sample),
        }
        self.complete += 1;
        self.partial = Sample::default();
        self.span = self.span.map(|[_, end]| [end, end]);
    }

    /// The sample that is not complete.
    fn current(&self) -> Sample {
        self.span.map_or(self.partial, |[start, end]| Sample {
            bytes: end.1.saturating_sub(start.1),
            span: end.0.since(start.0),
        })
    }

    fn report(&self) -> Option<DeliveryRate> {
        let kept = &self.samples[..];
        let current = self.current();
        let all = kept.iter().copied().chain([current]);
        let sum = all.fold(Sample::default(), |sum, one| Sample {
            bytes: sum.bytes.saturating_add(one.bytes),
            span: sum.span.saturating_add(one.span),
        });
        if sum.span.is_zero() {
            return None;
        }
        let smoothed = sum.rate();
        let squares = kept.iter().map(|one| {
            let deviation = one.rate() as f64 - smoothed as f64;
            deviation * deviation
        });
        let variance = squares.sum::<f64>() / kept.len().max(1) as f64;
        let latest = self.complete.checked_sub(1).and_then(|last| {
            let index = last % SAMPLES_KEPT as u64;
            kept.get(index as usize).copied()
        });
        let latest = latest.unwrap_or(current);
        Some(DeliveryRate {
            latest: latest.rate(),
            smoothed,
            deviation: variance.sqrt().round() as u64,
        })
    }
}

#[derive(Clone, Debug)]
struct FlightMeter {
    /// The acknowledgment of this packet or of a later one is of interest: of the first packet of a round trip, or of the
    /// last one of the first flight.
    awaits: u64,
    /// The first flight, once its first packet was acknowledged: when that was, how many bytes were acknowledged by then, and
    /// how long its packets took to be sent.
    first: Option<(Time, u64, Duration)>,
    measured: Option<FirstFlight>,
}

impl FlightMeter {
    const fn new() -> Self {
        Self {
            awaits: 0,
            first: None,
            measured: None,
        }
    }

    #[cold]
    fn advance(&mut self, acked: &Acked, next: u64, last_sent_at: Option<Time>) {
        if let Some((at, bytes, sent_over)) = self.first {
            self.measured = Some(FirstFlight {
                bytes: acked.bytes.saturating_sub(bytes),
                sent_over,
                acked_over: acked.now.since(at),
            });
            self.awaits = u64::MAX;
        } else if next.saturating_sub(self.awaits) < FLIGHT_PACKETS_MIN {
            self.awaits = next;
        } else {
            let sent_over = last_sent_at.map_or(Duration::ZERO, |last| last.since(acked.sent_at));
            self.first = Some((acked.now, acked.bytes, sent_over));
            self.awaits = next.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
