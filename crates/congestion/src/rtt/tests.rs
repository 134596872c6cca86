use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn sampled(samples: &[(u64, u64)], max_ack_delay: Option<Duration>) -> Rtt {
    let mut rtt = Rtt::default();
    for (index, (latest, delay)) in samples.iter().enumerate() {
        rtt.update(
            Time::from_nanos(index as u64),
            ms(*latest),
            ms(*delay),
            max_ack_delay,
        );
    }
    rtt
}

#[test]
fn rfc9002_6_2_2_first_probe_timeout_is_999_ms() {
    // 333 + max(4 × 166.5, 1) = 999
    assert_eq!(Rtt::default().probe_timeout(Duration::ZERO), ms(999));
}

#[test]
fn rfc9002_5_3_first_sample_ignores_the_ack_delay() {
    let rtt = sampled(&[(100, 30)], None);
    assert_eq!((rtt.smoothed(), rtt.variance()), (ms(100), ms(50)));
    assert_eq!(rtt.first_sample_at(), Some(Time::ZERO));
}

#[test]
fn rfc9002_5_3_smoothing_matches_a_worked_example() {
    // second sample: 180 ms with 20 ms of delay: adjusted 160; variance 3/4×50 + 1/4×|100−160| = 52.5;
    // smoothed 7/8×100 + 1/8×160 = 107.5
    let rtt = sampled(&[(100, 0), (180, 20)], None);
    assert_eq!(rtt.adjusted(), ms(160));
    assert_eq!(rtt.variance(), Duration::from_micros(52_500));
    assert_eq!(rtt.smoothed(), Duration::from_micros(107_500));
    assert_eq!(rtt.latest(), ms(180));
}

#[test]
fn rfc9002_5_3_ack_delay_never_takes_a_sample_below_the_minimum() {
    let rtt = sampled(&[(100, 0), (110, 20)], None);
    assert_eq!(rtt.adjusted(), ms(110));
    let rtt = sampled(&[(100, 0), (110, 500)], None);
    assert_eq!(rtt.adjusted(), ms(110));
}

#[test]
fn rfc9002_5_3_ack_delay_is_capped_once_the_handshake_is_confirmed() {
    assert_eq!(
        sampled(&[(100, 0), (180, 60)], Some(ms(25))).adjusted(),
        ms(155)
    );
    assert_eq!(sampled(&[(100, 0), (180, 60)], None).adjusted(), ms(120));
}

#[test]
fn rfc9002_5_2_minimum_is_of_raw_samples_and_can_be_reset() {
    let mut rtt = sampled(&[(100, 0), (90, 25), (130, 0)], None);
    assert_eq!((rtt.min(), rtt.max()), (ms(90), ms(130)));
    rtt.reset_min();
    assert_eq!((rtt.min(), rtt.max()), (ms(130), ms(130)));
}

#[test]
fn rfc9002_7_6_1_persistent_congestion_duration() {
    // (100 + 4×50 + 25) × 3
    let rtt = sampled(&[(100, 0)], None);
    assert_eq!(rtt.persistent_congestion_duration(ms(25)), ms(975));
}

#[test]
fn extreme_samples_do_not_overflow() {
    let mut rtt = Rtt::new(Duration::MAX);
    rtt.update(Time::MAX, Duration::MAX, Duration::MAX, None);
    rtt.update(Time::MAX, Duration::MAX, Duration::MAX, Some(Duration::MAX));
    rtt.update(Time::ZERO, Duration::ZERO, Duration::MAX, None);
    assert_eq!(
        rtt.persistent_congestion_duration(Duration::MAX),
        Duration::MAX
    );
}
