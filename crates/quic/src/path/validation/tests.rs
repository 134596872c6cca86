use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

fn started() -> PathValidation {
    let mut rtt = Rtt::default();
    rtt.update(Time::ZERO, ms(100), Duration::ZERO, None);
    let mut validation = PathValidation::new();
    validation.start(at(1000), &rtt, ms(25));
    validation
}

#[test]
fn rfc9000_8_2_1_challenges_back_off_exponentially_and_end() {
    let mut validation = started();
    let mut times = Vec::new();
    let end = loop {
        let now = validation.deadline(true).expect("a deadline");
        if !validation.wants_challenge(now) {
            break now;
        }
        validation.on_challenge_sent(now, [times.len() as u8; 8], true);
        assert!(!validation.wants_challenge(now));
        times.push(now.since(Time::ZERO).as_millis());
    };
    // PTO without delay: 300 ms. Giving up: 3 × (333 + 4 × 166.5 + 25) ms after the start.
    assert_eq!(times, [1000, 1300, 1900, 3100]);
    assert_eq!(end, at(4072));
}

#[test]
fn challenges_are_bounded_in_number_on_a_short_path() {
    let mut rtt = Rtt::default();
    rtt.update(Time::ZERO, ms(1), Duration::ZERO, None);
    let mut validation = PathValidation::new();
    validation.start(at(0), &rtt, ms(25));
    let mut sent = 0;
    while let Some(now) = validation.deadline(true)
        && validation.wants_challenge(now)
    {
        validation.on_challenge_sent(now, [sent; 8], true);
        sent += 1;
    }
    assert_eq!(usize::from(sent), PathValidation::CHALLENGES_MAX);
}

#[test]
fn rfc9000_8_2_3_any_challenge_may_be_answered() {
    let mut validation = started();
    validation.on_challenge_sent(at(1000), [1; 8], true);
    validation.on_challenge_sent(at(1300), [2; 8], true);
    assert_eq!(validation.on_response(&[3; 8]), PathAnswer::Unknown);
    assert_eq!(validation.state(), ValidationState::Validating);
    assert_eq!(validation.on_response(&[1; 8]), PathAnswer::Path);
    assert_eq!(
        (validation.state(), validation.deadline(true)),
        (ValidationState::Validated, None)
    );
    assert_eq!(
        validation.on_response(&[2; 8]),
        PathAnswer::Unknown,
        "it is over"
    );
}

#[test]
fn rfc9000_8_2_4_validation_fails_after_three_of_the_larger_probe_timeouts() {
    let mut validation = started();
    let end = at(1000) + ms(3 * (333 + 666 + 25));
    assert!(!validation.on_timeout(Time::from_nanos(end.as_nanos() - 3_000_001)));
    assert!(validation.on_timeout(end));
    assert_eq!(validation.state(), ValidationState::Failed);
    assert!(!validation.on_timeout(end), "once");
}

#[test]
fn a_response_without_a_challenge_validates_nothing() {
    let mut validation = PathValidation::new();
    assert_eq!(validation.on_response(&[0; 8]), PathAnswer::Unknown);
    assert_eq!(validation.state(), ValidationState::Idle);
}

#[test]
fn rfc9000_8_2_2_each_challenge_is_answered_once_and_a_flood_is_bounded() {
    let mut validation = PathValidation::new();
    for data in 0..100 {
        validation.on_challenge([data; 8]);
    }
    let answers: Vec<_> = std::iter::from_fn(|| validation.take_answer()).collect();
    assert_eq!(answers, [[96; 8], [97; 8], [98; 8], [99; 8]]);
    assert!(!validation.has_answer());
}

#[test]
fn rfc9000_8_2_1_a_response_to_a_short_challenge_does_not_validate_the_path() {
    let mut validation = started();
    validation.on_challenge_sent(at(1000), [1; 8], false);
    assert_eq!(validation.on_response(&[1; 8]), PathAnswer::Address);
    assert_eq!(validation.state(), ValidationState::Validating);
    validation.start(at(1100), &Rtt::default(), ms(25));
    assert!(validation.wants_challenge(at(1100)));
    validation.on_challenge_sent(at(1100), [2; 8], true);
    assert_eq!(validation.on_response(&[1; 8]), PathAnswer::Unknown);
    assert_eq!(validation.on_response(&[2; 8]), PathAnswer::Path);
    assert_eq!(validation.state(), ValidationState::Validated);
}

#[test]
fn rfc9000_8_2_2_path_responses_are_padded_once_per_round_trip() {
    let mut validation = PathValidation::new();
    assert!(validation.pads_answer(at(0), ms(100)));
    validation.on_answer_padded(at(0));
    assert!(!validation.pads_answer(at(99), ms(100)));
    assert!(validation.pads_answer(at(100), ms(100)));
}
