use super::*;

const PROBE: Duration = Duration::from_millis(300);

const LOCAL: CloseReason = CloseReason::Local {
    code: TransportError::FLOW_CONTROL_ERROR,
    reason: "more data than MAX_DATA allows",
    frame_type: FrameType::STREAM,
};
const PEER: CloseReason = CloseReason::PeerApplication { code: 7 };

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn begun(reason: CloseReason) -> Close {
    let mut close = Close::new();
    close.begin(at(1000), reason, PROBE);
    close
}

#[test]
fn rfc9000_10_2_transitions() {
    use CloseReason::{IdleTimeout, LocalApplication, StatelessReset};
    use CloseState::{Closing, Draining, Over};
    let table = [
        (LOCAL, Closing, true),
        (LocalApplication { code: 1 }, Closing, true),
        (PEER, Draining, false),
        (StatelessReset, Draining, false),
        (IdleTimeout, Over, false),
    ];
    for (reason, state, says) in table {
        let close = begun(reason);
        assert_eq!(
            (close.state(), close.wants_to_send()),
            (state, says),
            "{reason:?}"
        );
        assert_eq!(close.reason(), Some(reason));
        let deadline = (state != Over).then(|| at(1900));
        assert_eq!(close.deadline(), deadline, "{reason:?}");
    }
}

#[test]
fn rfc9000_10_2_2_the_peers_close_starts_draining_and_keeps_the_reason() {
    let mut close = begun(LOCAL);
    close.begin(at(1100), PEER, PROBE);
    assert_eq!(
        (close.state(), close.wants_to_send()),
        (CloseState::Draining, false)
    );
    assert_eq!(close.reason(), Some(LOCAL));
    assert_eq!(close.deadline(), Some(at(1900)));
}

#[test]
fn a_second_close_changes_nothing() {
    let mut close = begun(LOCAL);
    close.on_sent();
    close.begin(at(1100), CloseReason::LocalApplication { code: 3 }, PROBE);
    assert_eq!(
        (close.reason(), close.wants_to_send()),
        (Some(LOCAL), false)
    );
    let mut close = begun(PEER);
    close.begin(at(1100), LOCAL, PROBE);
    assert_eq!(
        (close.state(), close.reason()),
        (CloseState::Draining, Some(PEER))
    );
}

#[test]
fn rfc9000_10_2_1_closing_responds_to_progressively_fewer_packets() {
    let mut close = begun(LOCAL);
    close.on_sent();
    let mut answered = Vec::new();
    for packet in 1..=31 {
        close.on_received();
        if close.wants_to_send() {
            answered.push(packet);
            close.on_sent();
        }
    }
    assert_eq!(answered, [1, 3, 7, 15, 31]);
}

#[test]
fn rfc9000_10_2_2_draining_sends_nothing() {
    let mut close = begun(PEER);
    (0..100).for_each(|_| close.on_received());
    assert!(!close.wants_to_send());
}

#[test]
fn rfc9000_10_2_over_after_three_probe_timeouts() {
    let mut close = begun(LOCAL);
    close.on_timeout(at(1899));
    assert_eq!(close.state(), CloseState::Closing);
    close.on_timeout(at(1900));
    assert_eq!(
        (close.state(), close.wants_to_send(), close.deadline()),
        (CloseState::Over, false, None)
    );
}
