//! A token-bucket shaper: packets wait for tokens, where a policer drops them.
//!
//! This is the model of Linux's `tbf` with a peak rate, and of access lines that let the first megabytes of a transfer pass
//! faster ("`PowerBoost`").

use crate::{
    Rate, Time,
    rate::{nanos_for, work_of},
};

/// A token bucket in front of a line. It is initially full and refills at `rate` up to `burst`. A packet leaves the queue
/// when there are tokens for it, and is transmitted at `peak`.
///
/// A packet larger than the bucket waits for a full one, and leaves it in debt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shaper {
    /// The rate in the long run.
    pub rate: Rate,
    /// The size of the bucket in bytes.
    pub burst: u64,
    /// The rate at which a packet is transmitted.
    pub peak: Rate,
}

/// The state of a shaper.
#[derive(Debug)]
pub(crate) struct ShaperBucket {
    rate: Rate,
    peak: Rate,
    /// In nanobits, like `tokens`.
    size: i128,
    /// Negative after a packet larger than the bucket.
    tokens: i128,
    filled_at: Time,
}

impl ShaperBucket {
    pub(crate) const fn new(config: &Shaper) -> Self {
        let size = (config.burst as u128 * work_of(1)).cast_signed();
        Self {
            rate: config.rate,
            peak: config.peak,
            size,
            tokens: size,
            filled_at: Time::ZERO,
        }
    }

    /// When a packet that is next at `now` has been transmitted, rounded up to nanoseconds; [`Time::MAX`] if never. Takes
    /// its tokens.
    pub(crate) fn end_of(&mut self, now: Time, work: u128) -> Time {
        self.fill(now);
        let work = work.cast_signed();
        let missing = work.min(self.size) - self.tokens;
        let mut starts = now;
        if missing > 0 {
            let Some((wait, _)) = nanos_for(missing.unsigned_abs(), self.rate) else {
                return Time::MAX;
            };
            starts = now.plus(wait);
            self.fill(starts);
        }
        self.tokens -= work;
        match nanos_for(work.unsigned_abs(), self.peak) {
            Some((nanos, _)) => starts.plus(nanos),
            None => Time::MAX,
        }
    }

    fn fill(&mut self, now: Time) {
        let span = i128::from(now.nanos_since(self.filled_at));
        let fill = i128::from(self.rate.bits_per_second()).saturating_mul(span);
        self.tokens = self.tokens.saturating_add(fill).min(self.size);
        self.filled_at = now;
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{
        Capacity, Config, Packet,
        testing::{Bench, at_ms},
    };

    const fn mbit(mbit: u64) -> Rate {
        Rate::from_bits_per_second(mbit * 1_000_000)
    }

    /// A bucket of ten packets of 1000 bytes; a packet takes 1 ms at `rate` and 0.25 ms at `peak`.
    const BOOST: Shaper = Shaper {
        rate: mbit(8),
        burst: 10_000,
        peak: mbit(32),
    };

    #[test]
    fn a_burst_leaves_at_the_peak_rate_and_the_rest_at_the_sustained_one() {
        let config = Config {
            capacity: Capacity::Shaper(BOOST),
            ..Config::default()
        };
        let mut bench = Bench::new(&config, 1);
        for _ in 0..30 {
            bench.send(Time::ZERO, Packet::new(1000, ()));
        }
        bench.run();
        let at = |index: usize| bench.arrived[index].at.as_nanos() / 1000;
        // With refill, the bucket lasts for 10 / (1 - 1/4) packets.
        assert_eq!((at(0), at(11), at(12)), (250, 3000, 3250));
        // The n-th packet starts when n - 9 milliseconds of tokens came.
        assert_eq!((at(20), at(29)), (11_250, 20_250));
        // After a pause of 5 ms five packets pass fast.
        for _ in 0..6 {
            bench.send(at_ms(26), Packet::new(1000, ()));
        }
        bench.run();
        let pause: Vec<u64> = bench.arrived[30..]
            .windows(2)
            .map(|pair| pair[1].at.since(pair[0].at).as_micros() as u64)
            .collect();
        assert_eq!(pause[..4], [250; 4]);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_waits_for_a_full_one() {
        let mut bucket = ShaperBucket::new(&Shaper {
            burst: 500,
            ..BOOST
        });
        assert_eq!(
            bucket.end_of(Time::ZERO, work_of(1000)),
            Time::from_nanos(250_000)
        );
        // 500 bytes of debt and 500 of the bucket take 1 ms.
        assert_eq!(
            bucket.end_of(Time::from_nanos(250_000), work_of(1000)),
            Time::from_nanos(1_250_000)
        );
    }

    #[test]
    fn a_shaper_without_rates_stalls() {
        let none = Shaper {
            rate: Rate::ZERO,
            burst: 1000,
            peak: mbit(8),
        };
        let mut bucket = ShaperBucket::new(&none);
        assert_eq!(bucket.end_of(Time::ZERO, work_of(1000)), at_ms(1));
        assert_eq!(bucket.end_of(at_ms(1), work_of(1)), Time::MAX);
        let mut bucket = ShaperBucket::new(&Shaper {
            peak: Rate::ZERO,
            ..BOOST
        });
        assert_eq!(bucket.end_of(Time::ZERO, work_of(1)), Time::MAX);
    }

    proptest! {
        /// A naive model: tokens in floating-point numbers, one packet after the other.
        #[test]
        fn departures_match_a_naive_token_bucket(
            rate in 1_000u64..1 << 30,
            burst in 1u64..100_000,
            faster in 1u64..20,
            packets in vec((0u64..10_000_000, 1u32..3000), 1..100),
        ) {
            let peak = rate * faster;
            let mut bucket = ShaperBucket::new(&Shaper {
                rate: Rate::from_bits_per_second(rate),
                burst,
                peak: Rate::from_bits_per_second(peak),
            });
            let (mut free, mut now) = (Time::ZERO, Time::ZERO);
            let (mut tokens, mut since) = (burst as f64, 0.0);
            for (pause, bytes) in packets {
                now = now.plus(pause);
                let ends = bucket.end_of(now.max(free), work_of(bytes));
                let at = now.max(free).as_nanos() as f64 / 1e9;
                let per_second = rate as f64 / 8.0;
                tokens = (tokens + (at - since) * per_second).min(burst as f64);
                let missing = f64::from(bytes).min(burst as f64) - tokens;
                let wait = (missing / per_second).max(0.0);
                tokens = (tokens + wait * per_second) - f64::from(bytes);
                since = at + wait;
                let expected = since + f64::from(bytes) * 8.0 / peak as f64;
                let found = ends.as_nanos() as f64 / 1e9;
                prop_assert!((found - expected).abs() < 1e-6, "{found} {expected}");
                free = ends;
            }
        }

        #[test]
        fn any_values_neither_overflow_nor_panic(rate: u64, burst: u64, peak: u64, at: u64, bytes: u32) {
            let mut bucket = ShaperBucket::new(&Shaper {
                rate: Rate::from_bits_per_second(rate),
                burst,
                peak: Rate::from_bits_per_second(peak),
            });
            bucket.end_of(Time::from_nanos(at), work_of(bytes));
            bucket.end_of(Time::MAX, work_of(bytes));
        }
    }
}
