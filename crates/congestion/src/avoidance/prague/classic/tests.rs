use lastbyte_units::Time;

use super::*;

/// Round trips of these times in microseconds, one ACK frame for each of ten.
fn detector(rounds: usize, rtt_us: impl Fn(usize) -> u64) -> ClassicDetector {
    let mut detector = ClassicDetector::default();
    let mut rtt = Rtt::default();
    for ack in 0..rounds * 10 {
        let sample = Duration::from_micros(rtt_us(ack));
        rtt.update(Time::ZERO, sample, Duration::ZERO, None);
        detector.on_ack(&rtt, 10.0);
        if ack % 10 == 9 {
            detector.on_round(Duration::from_millis(20));
        }
    }
    detector
}

/// The queue of an L4S bottleneck varies by half a millisecond.
#[test]
fn rfc9331_4_3_a_short_steady_queue_is_l4s() {
    let detector = detector(500, |ack| 20_500 + 500 * (ack as u64 % 2));
    assert!(detector.score < 1e-9 && detector.alpha_min() < 1e-9);
}

/// That of a classic one grows and drains by milliseconds, in cycles of many round trips.
#[test]
fn rfc9331_4_3_a_queue_that_varies_by_milliseconds_is_classic() {
    let sawtooth = |ack: usize| 20_000 + 40 * (ack as u64 % 400);
    let one = detector(400, sawtooth);
    assert!((one.score - SCORE_MAX).abs() < 1e-9);
    assert!((one.alpha_min() - ALPHA_CLASSIC).abs() < 1e-9);
    // One round trip of it does not decide.
    assert!(detector(1, sawtooth).alpha_min() < 1e-9);
}

#[test]
fn the_bottleneck_can_become_l4s_again() {
    let mixed = |ack: usize| {
        if ack < 4000 {
            20_000 + 40 * (ack as u64 % 400)
        } else {
            20_500
        }
    };
    assert!(detector(400, mixed).alpha_min() > 0.6);
    assert!(detector(2000, mixed).alpha_min() < 1e-9);
}

#[test]
fn without_samples_nothing_is_known() {
    let mut detector = ClassicDetector::default();
    detector.on_ack(&Rtt::default(), 10.0);
    detector.on_round(Duration::ZERO);
    assert!(detector.alpha_min() < 1e-9);
}
