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
    idle.on_received(at(5), true);
    assert_eq!(idle.deadline(PROBE), Some(at(15)));
    idle.on_ack_eliciting_sent(at(8));
    idle.on_ack_eliciting_sent(at(12));
    assert_eq!(
        idle.deadline(PROBE),
        Some(at(18)),
        "the second one does not count"
    );
    idle.on_received(at(13), true);
    idle.on_ack_eliciting_sent(at(14));
    assert_eq!(idle.deadline(PROBE), Some(at(24)));
}

#[test]
fn rfc9000_10_1_2_keep_alive_is_not_sent_while_data_is_in_flight() {
    let mut idle = IdleTimer::new(at(0), s(30), Some(s(10)));
    assert_eq!(idle.keep_alive_at(PROBE), Some(at(10)));
    idle.on_ack_eliciting_sent(at(10));
    assert_eq!(idle.keep_alive_at(PROBE), None);
    idle.on_received(at(11), false);
    assert_eq!(idle.keep_alive_at(PROBE), Some(at(21)));
    assert_eq!(
        IdleTimer::new(at(0), s(30), None).keep_alive_at(PROBE),
        None
    );
}

/// The times of PINGs that are all acknowledged at once, each by a packet that is not ack-eliciting.
fn pings(idle: &mut IdleTimer, probe_timeout: Duration, count: usize) -> Vec<Time> {
    let ping = |_| {
        let at = idle.keep_alive_at(probe_timeout).expect("a PING is due");
        idle.on_keep_alive();
        idle.on_ack_eliciting_sent(at);
        assert_eq!(idle.keep_alive_at(probe_timeout), None, "one is in flight");
        idle.on_received(at, false);
        at
    };
    (0..count).map(ping).collect()
}

#[test]
fn a_peer_is_probed_less_and_less_often_while_a_response_is_awaited() {
    let awaiting = |seconds| {
        let mut idle = IdleTimer::new(at(0), s(seconds), None);
        idle.set_awaiting(true);
        idle
    };
    let expected = [1, 3, 7, 15, 25, 35].map(at);
    assert_eq!(pings(&mut awaiting(60), PROBE, 6), expected);
    assert_eq!(
        pings(&mut awaiting(60), s(3), 4),
        [3, 9, 19, 29].map(at),
        "the first after a probe timeout"
    );
    assert_eq!(
        pings(&mut awaiting(6), PROBE, 4),
        [1, 3, 5, 7].map(at),
        "a third of the timeout"
    );
    let many = pings(&mut awaiting(60), PROBE, 1000);
    assert_eq!(many.last(), Some(&at(15 + 996 * 10)));
}

#[test]
fn a_peer_that_stops_sending_is_probed_after_two_probe_timeouts_and_then_after_a_second_again() {
    let mut idle = IdleTimer::new(at(0), s(60), None);
    idle.set_awaiting(true);
    assert_eq!(pings(&mut idle, PROBE, 4), [1, 3, 7, 15].map(at));
    idle.on_received(at(16), true);
    let stalled = at(16) + PROBE * 2;
    let expected = [stalled, stalled + s(1), stalled + s(3)];
    assert_eq!(pings(&mut idle, PROBE, 3), expected);
    idle.set_awaiting(false);
    assert_eq!(idle.keep_alive_at(PROBE), None);
    idle.set_awaiting(true);
    let waiting = stalled + s(4);
    assert_eq!(idle.keep_alive_at(PROBE), Some(waiting), "for a response");
    idle.on_received(at(20), false);
    assert_eq!(idle.keep_alive_at(PROBE), Some(at(21)), "an ACK is none");
}

#[test]
fn of_keep_alive_and_an_awaited_response_the_earlier_ping_counts() {
    let mut idle = IdleTimer::new(at(0), s(60), Some(s(4)));
    idle.set_awaiting(true);
    assert_eq!(pings(&mut idle, PROBE, 4), [1, 3, 7, 11].map(at));
}

#[test]
fn memory_is_freed_once_after_a_pause() {
    let mut idle = IdleTimer::new(at(0), s(30), None);
    assert_eq!(idle.release_at(), Some(at(0) + RELEASE_AFTER));
    idle.on_received(at(3), true);
    assert_eq!(idle.release_at(), Some(at(3) + RELEASE_AFTER));
    idle.on_released();
    assert_eq!(idle.release_at(), None);
    idle.on_ack_eliciting_sent(at(7));
    assert_eq!(idle.release_at(), None, "the peer's next packet counts");
    idle.on_received(at(8), true);
    assert_eq!(idle.release_at(), Some(at(8) + RELEASE_AFTER));
}
