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
