use super::*;

fn sent(at: u64, end: u64) -> Transmission {
    Transmission {
        sent_at: Time::ZERO + Duration::from_millis(at),
        end,
        is_retransmission: false,
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn rfc8985_6_2_what_was_sent_before_a_delivered_segment_is_lost_after_a_round_trip_and_a_quarter() {
    let mut rack = Rack::new();
    rack.on_rtt(ms(40));
    let now = Time::ZERO + ms(41);
    rack.on_delivered(now, sent(1, 300));
    assert!(
        rack.is_before(sent(0, 100))
            && rack.is_before(sent(1, 200))
            && !rack.is_before(sent(1, 400))
    );
    let window = rack.reordering_window(false, 1, ms(40));
    assert_eq!(window, ms(10));
    assert_eq!(rack.remaining(now, sent(0, 100), window), ms(9));
    assert_eq!(
        rack.remaining(now + ms(9), sent(0, 100), window),
        Duration::ZERO
    );
}

#[test]
fn rfc8985_6_2_three_segments_delivered_or_a_recovery_end_the_wait_unless_the_path_reorders() {
    let mut rack = Rack::new();
    rack.on_rtt(ms(40));
    assert_eq!(rack.reordering_window(false, 3, ms(40)), Duration::ZERO);
    assert_eq!(rack.reordering_window(true, 1, ms(40)), Duration::ZERO);
    rack.on_delivered(Time::ZERO + ms(41), sent(1, 300));
    rack.on_delivered(Time::ZERO + ms(42), sent(0, 100));
    assert_eq!(rack.reordering_window(true, 3, ms(40)), ms(10));
}

#[test]
fn rfc8985_6_2_an_answer_sooner_than_any_round_trip_is_not_to_a_retransmission() {
    let mut rack = Rack::new();
    rack.on_rtt(ms(40));
    let again = Transmission {
        is_retransmission: true,
        ..sent(30, 100)
    };
    rack.on_delivered(Time::ZERO + ms(41), again);
    assert!(!rack.is_before(sent(0, 50)));
}
