use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn rtt(millis: u64) -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(Time::ZERO, ms(millis), Duration::ZERO, None);
    rtt
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

#[test]
fn rfc9002_6_1_1_three_numbers_behind_is_lost() {
    let thresholds = LossThresholds::fixed();
    let decision = |number| detect_loss(number, at(100), 10, at(110), ms(1000), &thresholds);
    assert_eq!(decision(7), LossDecision::LostByPackets);
    assert_eq!(decision(8), LossDecision::Until(at(1100)));
}

#[test]
fn rfc9002_6_1_2_nine_eighths_of_a_round_trip() {
    let thresholds = LossThresholds::fixed();
    assert_eq!(thresholds.delay(&rtt(100)), Duration::from_micros(112_500));
    // At least the granularity.
    assert_eq!(thresholds.delay(&rtt(0)), ms(1));
    let decision = |now| {
        detect_loss(
            9,
            at(0),
            10,
            now,
            Duration::from_micros(112_500),
            &thresholds,
        )
    };
    assert_eq!(
        decision(at(112)),
        LossDecision::Until(Time::from_nanos(112_500_000))
    );
    assert_eq!(
        decision(Time::from_nanos(112_500_000)),
        LossDecision::LostByTime
    );
}

#[test]
fn rfc9002_6_1_2_the_larger_of_latest_and_smoothed_counts() {
    let mut slower = rtt(100);
    slower.update(at(1), ms(180), Duration::ZERO, None);
    assert_eq!(LossThresholds::fixed().delay(&slower), ms(180) * 9 / 8);
}

#[test]
fn fixed_thresholds_learn_nothing() {
    let mut thresholds = LossThresholds::fixed();
    thresholds.on_spurious_loss(3, 10);
    assert_eq!(thresholds, LossThresholds::fixed());
}

#[test]
fn adaptive_thresholds_relax_by_one_step_a_round() {
    let mut thresholds = LossThresholds::adaptive();
    thresholds.on_spurious_loss(3, 10);
    assert!(!thresholds.uses_packet_threshold());
    assert_eq!(thresholds.time_share(), 128);
    thresholds.on_spurious_loss(9, 12); // sent before the step
    assert_eq!(thresholds.time_share(), 128);
    for (number, expected) in [(12, 256), (22, 512), (32, 1024), (42, 1024)] {
        thresholds.on_spurious_loss(number, number + 10);
        assert_eq!(thresholds.time_share(), expected);
    }
    assert_eq!(thresholds.delay(&rtt(100)), ms(200));
    assert_eq!(
        detect_loss(
            1,
            at(0),
            100,
            at(1),
            thresholds.delay(&rtt(100)),
            &thresholds
        ),
        LossDecision::Until(at(200))
    );
}
