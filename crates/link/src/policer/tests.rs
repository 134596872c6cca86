use proptest::{collection::vec, prelude::*};

use super::*;

fn bucket(bits: u64, burst: u64) -> TokenBucket {
    TokenBucket::new(&Policer {
        rate: Rate::from_bits_per_second(bits),
        burst,
    })
}

#[test]
fn a_burst_passes_then_the_rate_applies() {
    // 8 Mb/s is one byte per microsecond.
    let mut bucket = bucket(8_000_000, 3000);
    assert!(bucket.admits(Time::ZERO, 1500));
    assert!(bucket.admits(Time::ZERO, 1500));
    assert!(!bucket.admits(Time::ZERO, 1));
    assert!(!bucket.admits(Time::from_nanos(1_499_999), 1500));
    assert!(bucket.admits(Time::from_nanos(1_500_000), 1500));
    assert!(!bucket.admits(Time::from_nanos(1_500_000), 1));
    // The bucket holds no more than its size.
    assert!(bucket.admits(Time::from_nanos(9_000_000), 3000));
    assert!(!bucket.admits(Time::from_nanos(9_000_000), 1));
}

proptest! {
    #[test]
    fn any_span_passes_no_more_than_rate_and_burst(
        rate in 0u64..1 << 30,
        burst in 0u64..100_000,
        packets in vec((0u64..10_000_000, 0u32..3000), 1..100),
    ) {
        let mut bucket = bucket(rate, burst);
        let mut now = Time::ZERO;
        let mut passed = Vec::new();
        for (pause, bytes) in packets {
            now = now.plus(pause);
            if bucket.admits(now, bytes) {
                passed.push((now, u64::from(bytes)));
            }
        }
        for from in 0..passed.len() {
            let mut sum = 0;
            for (at, bytes) in &passed[from..] {
                sum += bytes;
                let span = u128::from(at.nanos_since(passed[from].0));
                let bound = u128::from(burst) * work_of(1) + span * u128::from(rate);
                prop_assert!(u128::from(sum) * work_of(1) <= bound);
            }
        }
    }

    #[test]
    fn any_values_neither_overflow_nor_panic(rate: u64, burst: u64, at: u64, bytes: u32) {
        let mut bucket = bucket(rate, burst);
        prop_assert_eq!(bucket.admits(Time::from_nanos(at), bytes), u64::from(bytes) <= burst);
        bucket.admits(Time::MAX, bytes);
    }
}
