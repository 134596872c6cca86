use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn rfc6298_2_1_the_timeout_is_a_second_before_the_first_sample() {
    assert_eq!(RtoEstimator::default().timeout(), ms(1000));
}

#[test]
fn a_steady_round_trip_has_a_timeout_200_ms_longer() {
    let mut rto = RtoEstimator::default();
    for round in 0..50 {
        rto.update(ms(40), round * 10, round * 10 + 10);
    }
    assert_eq!((rto.smoothed(), rto.timeout()), (Some(ms(40)), ms(240)));
}

#[test]
fn the_first_sample_makes_the_timeout_three_round_trips() {
    let mut rto = RtoEstimator::default();
    rto.update(ms(300), 0, 0);
    assert_eq!(rto.timeout(), ms(900));
}

#[test]
fn timers_fire_a_tick_late_and_on_coarser_ticks_the_longer_they_are() {
    let fires = |now: u64, span: u64| timer(Time::ZERO + ms(now), ms(span)).since(Time::ZERO);
    assert_eq!(fires(0, 40), ms(44));
    assert_eq!(fires(3, 40), ms(44));
    // 260 ms are 65 ticks, which are counted in eights: 64 to 72, and 288 ms.
    assert_eq!(fires(0, 260), ms(288));
}
