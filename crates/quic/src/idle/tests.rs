use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(seconds: u64) -> Time {
    Time::ZERO + s(seconds)
}

const PROBE: Duration = Duration::from_millis(300);

#[test]
fn rfc9000_10_1_the_smaller_timeout_applies_and_zero_is_none() {
    let deadline = |local, peer| {
        let mut idle = IdleTimer::new(at(0), s(local), None);
        idle.on_peer_timeout(s(peer));
        idle.deadline(PROBE)
    };
    assert_eq!(deadline(30, 10), Some(at(10)));
    assert_eq!(deadline(10, 30), Some(at(10)));
    assert_eq!(deadline(0, 30), Some(at(30)));
    assert_eq!(deadline(30, 0), Some(at(30)));
    assert_eq!(deadline(0, 0), None);
}

#[test]
fn rfc9000_10_1_at_least_three_probe_timeouts() {
    let idle = IdleTimer::new(at(0), s(1), None);
    assert_eq!(idle.deadline(s(2)), Some(at(6)));
}

#[test]
fn rfc9000_10_1_restarts_on_receipt_and_on_the_first_packet_sent_after() {
    let mut idle = IdleTimer::new(at(0), s(10), None);
    idle.on_received(at(5));
    assert_eq!(idle.deadline(PROBE), Some(at(15)));
    idle.on_ack_eliciting_sent(at(8));
    idle.on_ack_eliciting_sent(at(12));
    assert_eq!(
        idle.deadline(PROBE),
        Some(at(18)),
        "the second one does not count"
    );
    idle.on_received(at(13));
    idle.on_ack_eliciting_sent(at(14));
    assert_eq!(idle.deadline(PROBE), Some(at(24)));
}

#[test]
fn rfc9000_10_1_2_keep_alive_is_not_sent_while_data_is_in_flight() {
    let mut idle = IdleTimer::new(at(0), s(30), Some(s(10)));
    assert_eq!(idle.keep_alive_at(), Some(at(10)));
    idle.on_ack_eliciting_sent(at(10));
    assert_eq!(idle.keep_alive_at(), None);
    idle.on_received(at(11));
    assert_eq!(idle.keep_alive_at(), Some(at(21)));
    assert_eq!(IdleTimer::new(at(0), s(30), None).keep_alive_at(), None);
}

#[test]
fn a_peer_is_probed_while_a_response_is_awaited() {
    let mut idle = IdleTimer::new(at(0), s(60), None);
    idle.set_awaiting(true);
    assert_eq!(idle.keep_alive_at(), Some(at(10)));
    idle.on_peer_timeout(s(6));
    assert_eq!(idle.keep_alive_at(), Some(at(2)), "a third of the timeout");
    idle.on_ack_eliciting_sent(at(2));
    assert_eq!(idle.keep_alive_at(), None);
    idle.on_received(at(3));
    assert_eq!(idle.keep_alive_at(), Some(at(5)));
    idle.set_awaiting(false);
    assert_eq!(idle.keep_alive_at(), None);
    let mut both = IdleTimer::new(at(0), s(60), Some(s(4)));
    both.set_awaiting(true);
    assert_eq!(both.keep_alive_at(), Some(at(4)), "what comes first");
}
