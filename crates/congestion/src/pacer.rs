//! Pacing (RFC 9002 §7.7): when the next bytes may be sent, by a token bucket.
//!
//! Tokens are bytes; they accumulate at the controller's rate, up to its burst. Data may be sent while there are tokens
//! for it. Once the bucket is empty, nothing is sent until a whole quantum has accumulated, so that a sender with GSO
//! sends trains of datagrams and not single ones. Over any interval, what is released is at most rate × interval +
//! burst.
//!
//! The first flight needs no special case: the controller returns the rate that spreads its window over half a round
//! trip, or over one.

use core::time::Duration;

use lastbyte_units::Time;

use crate::controller::Pacing;

/// Tokens are stored in billionths of a byte, so that a rate in bytes per second times nanoseconds is exact.
const SCALE: i128 = 1_000_000_000;

/// A pacer for one path.
///
/// ```
/// use core::time::Duration;
/// use lastbyte_congestion::{Bandwidth, Pacer, Pacing, Time};
///
/// // 12 Mb/s: a datagram of 1200 bytes each 0.8 ms; bursts of ten.
/// let pacing = Pacing::at(Bandwidth::from_bits_per_second(12_000_000), 1200);
/// let mut pacer = Pacer::new();
/// let start = Time::ZERO;
///
/// let burst = pacer.budget(start, &pacing);
/// assert_eq!(burst, 12_000);
/// pacer.on_sent(start, burst, &pacing);
/// assert_eq!(pacer.budget(start, &pacing), 0);
///
/// // The next quantum: two datagrams.
/// let release = pacer.next_release(start, &pacing).expect("the bucket is empty");
/// assert_eq!(release.since(start), Duration::from_micros(1600));
/// assert_eq!(pacer.budget(release, &pacing), 2400);
/// ```
#[derive(Clone, Debug)]
pub struct Pacer {
    /// Tokens at `updated_at`, scaled. Negative after a send larger than the bucket.
    tokens: i128,
    /// `None` before the first call: the bucket is full then.
    updated_at: Option<Time>,
    /// The rate since `updated_at`; `None` if it was not known then, so that the next one counts.
    rate: Option<u64>,
    /// Whether data was delayed and a quantum is accumulating.
    is_gathering: bool,
}

impl Pacer {
    /// A pacer with a full bucket.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            tokens: 0,
            updated_at: None,
            rate: None,
            is_gathering: false,
        }
    }

    /// Bytes that may be sent now. Zero until a quantum has accumulated, if the bucket was empty. A datagram larger
    /// than this must wait; [`Pacer::next_release`] returns until when.
    pub fn budget(&mut self, now: Time, pacing: &Pacing) -> u64 {
        if pacing.rate.is_unlimited() {
            return u64::MAX;
        }
        self.refill(now, pacing);
        if self.is_gathering && self.tokens < scaled(quantum(pacing)) {
            return 0;
        }
        self.is_gathering = false;
        // Usually they fit into 64 bits, where division is several times faster.
        match u64::try_from(self.tokens) {
            Ok(tokens) => tokens / SCALE as u64,
            Err(_) => u64::try_from(self.tokens / SCALE).unwrap_or(0),
        }
    }

    /// Records bytes sent. Call it for everything sent, including data that is not paced, such as probes; with a train
    /// of datagrams, once for all of it.
    pub fn on_sent(&mut self, now: Time, bytes: u64, pacing: &Pacing) {
        if pacing.rate.is_unlimited() {
            // Unpaced data empties the bucket too, so that paced data right after it adds no burst.
            self.tokens = 0;
            self.updated_at = Some(now);
            self.rate = None;
            return;
        }
        self.refill(now, pacing);
        // The debt is bounded: probes beyond the rate delay later data by at most one burst.
        let debt_max = -scaled(pacing.burst);
        self.tokens = (self.tokens - scaled(bytes)).max(debt_max);
    }

    /// When the next quantum may be sent, after [`Pacer::budget`] was too small for the next datagram: from now on the
    /// pacer accumulates a quantum. `None` if that is now; [`Time::MAX`] if the rate is zero.
    pub fn next_release(&mut self, now: Time, pacing: &Pacing) -> Option<Time> {
        if pacing.rate.is_unlimited() {
            return None;
        }
        self.refill(now, pacing);
        let missing = scaled(quantum(pacing)) - self.tokens;
        if missing <= 0 {
            return None;
        }
        self.is_gathering = true;
        let rate = pacing.rate.bytes_per_second();
        if rate == 0 {
            return Some(Time::MAX);
        }
        let wait = if let Ok(missing) = u64::try_from(missing) {
            missing.div_ceil(rate)
        } else {
            let wait = missing.unsigned_abs().div_ceil(u128::from(rate));
            u64::try_from(wait).unwrap_or(u64::MAX)
        };
        Some(now + Duration::from_nanos(wait))
    }

    /// Adds the tokens since the last call, at the rate of that time.
    fn refill(&mut self, now: Time, pacing: &Pacing) {
        let capacity = scaled(pacing.burst);
        if self.updated_at.is_some_and(|at| at >= now) {
            // No time has passed, as between the datagrams of a train.
            self.tokens = self.tokens.min(capacity);
            self.rate = Some(pacing.rate.bytes_per_second());
            return;
        }
        let gained = match self.updated_at {
            None => capacity,
            Some(at) => {
                let elapsed = u128::from(now.as_nanos().saturating_sub(at.as_nanos()));
                let rate = self.rate.unwrap_or(pacing.rate.bytes_per_second());
                i128::try_from(elapsed * u128::from(rate)).unwrap_or(i128::MAX)
            }
        };
        self.tokens = self.tokens.saturating_add(gained).min(capacity);
        self.updated_at = Some(self.updated_at.map_or(now, |at| at.max(now)));
        self.rate = Some(pacing.rate.bytes_per_second());
    }
}

impl Default for Pacer {
    fn default() -> Self {
        Self::new()
    }
}

fn scaled(bytes: u64) -> i128 {
    // 2⁶⁴ × 10⁹ < 2⁹⁴: fits.
    i128::from(bytes) * SCALE
}

/// The quantum, limited to the size of the bucket.
fn quantum(pacing: &Pacing) -> u64 {
    pacing.quantum.min(pacing.burst)
}

#[cfg(test)]
mod tests;
