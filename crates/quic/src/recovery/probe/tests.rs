use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// 100 ms, variance 50 ms: a probe timeout of 300 ms.
fn rtt() -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(Time::ZERO, ms(100), Duration::ZERO, None);
    rtt
}

const CONFIRMED: TimerContext = TimerContext {
    max_ack_delay: ms(25),
    is_handshake_confirmed: true,
    has_handshake_keys: false,
    is_amplification_limited: false,
    must_keep_alive: false,
};

const DATA: [bool; 3] = [false, false, true];

#[test]
fn rfc9002_6_2_1_the_timeout_includes_max_ack_delay_in_the_data_space_only() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Application, at(1000));
    timer.on_ack_eliciting_sent(Space::Handshake, at(1010));
    let deadline = |has| timer.deadline(&rtt(), has, &CONFIRMED);
    assert_eq!(deadline(DATA), Some((at(1325), Space::Application)));
    assert_eq!(
        deadline([false, true, false]),
        Some((at(1310), Space::Handshake))
    );
    assert_eq!(
        deadline([false, true, true]),
        Some((at(1310), Space::Handshake))
    );
    assert_eq!(deadline([false; 3]), None);
}

#[test]
fn rfc9002_6_2_1_backs_off_exponentially_until_an_acknowledgment() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Application, at(1000));
    for expected in [1325, 1650, 2300, 3600] {
        assert_eq!(
            timer.deadline(&rtt(), DATA, &CONFIRMED),
            Some((at(expected), Space::Application))
        );
        timer.on_probe_timeout();
    }
    timer.reset_pto_count();
    assert_eq!(
        timer.deadline(&rtt(), DATA, &CONFIRMED),
        Some((at(1325), Space::Application))
    );
}

#[test]
fn rfc9002_6_2_1_no_probes_in_the_data_space_before_confirmation() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Application, at(1000));
    let context = TimerContext {
        is_handshake_confirmed: false,
        ..CONFIRMED
    };
    assert_eq!(timer.deadline(&rtt(), DATA, &context), None);
}

#[test]
fn rfc9002_6_2_1_the_loss_timer_takes_precedence() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Application, at(1000));
    timer.set_loss_time(Space::Application, Some(at(1100)));
    assert_eq!(
        timer.deadline(&rtt(), DATA, &CONFIRMED),
        Some((at(1100), Space::Application))
    );
}

#[test]
fn rfc9002_6_2_2_1_a_client_keeps_the_timer_with_nothing_in_flight() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Initial, at(1000));
    let waiting = TimerContext {
        is_handshake_confirmed: false,
        must_keep_alive: true,
        ..CONFIRMED
    };
    let deadline = |context| timer.deadline(&rtt(), [false; 3], &context);
    assert_eq!(deadline(waiting), Some((at(1300), Space::Initial)));
    let with_keys = TimerContext {
        has_handshake_keys: true,
        ..waiting
    };
    assert_eq!(deadline(with_keys), Some((at(1300), Space::Handshake)));
}

#[test]
fn rfc9002_6_2_2_1_a_server_at_the_amplification_limit_has_no_timer() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Handshake, at(1000));
    let limited = TimerContext {
        is_amplification_limited: true,
        ..CONFIRMED
    };
    assert_eq!(timer.deadline(&rtt(), [false, true, false], &limited), None);
}

#[test]
fn rfc9002_6_2_2_discarding_keys_ends_the_back_off() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Initial, at(1000));
    timer.on_ack_eliciting_sent(Space::Handshake, at(1000));
    timer.on_probe_timeout();
    timer.on_discarded(Space::Initial, at(1050));
    assert_eq!(
        timer.deadline(&rtt(), [false, true, false], &CONFIRMED),
        Some((at(1300), Space::Handshake))
    );
}

#[test]
fn an_endless_back_off_does_not_overflow() {
    let mut timer = ProbeTimer::new();
    timer.on_ack_eliciting_sent(Space::Application, at(1000));
    for _ in 0..200 {
        timer.on_probe_timeout();
    }
    assert!(timer.deadline(&rtt(), DATA, &CONFIRMED).is_some());
}
