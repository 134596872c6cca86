//! Each rule of the module's definitions.

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// A pause with this limit: the minimum round trip is 40 ms, the latest this long.
fn pause(limit: Limit, stream_bytes: u64, next_number: u64, rtt_latest: u64) -> Pause {
    Pause {
        limit,
        stream_bytes,
        resent_bytes: 0,
        next_number,
        rtt_latest: ms(rtt_latest),
        rtt_min: ms(40),
    }
}

/// Starts at 100 ms, of a connection that started at 30 ms; the first flight ends with this limit.
fn after_flight(limit: Limit, rtt_latest: u64) -> Meter {
    let mut meter = Meter::new(at(100), at(30));
    meter.on_pause(at(100), pause(limit, 12_000, 10, rtt_latest));
    meter
}

#[test]
fn the_time_before_the_request_is_the_handshake() {
    let meter = Meter::new(at(100), at(30));
    let anatomy = meter.anatomy();
    assert_eq!((anatomy.handshake, anatomy.transfer()), (ms(70), ms(0)));
}

#[test]
fn a_span_belongs_to_the_limit_at_its_start_once_more_data_follows() {
    let of = |limit, rtt_latest, span| {
        let mut meter = after_flight(limit, rtt_latest);
        meter.on_acked(at(100 + span), Space::Application, 3);
        meter.on_pause(at(100 + span), pause(Limit::Window, 24_000, 20, 40));
        let anatomy = meter.anatomy();
        assert_eq!(anatomy.transfer(), ms(span));
        anatomy
    };
    assert_eq!(of(Limit::Application, 40, 25).application, ms(25));
    assert_eq!(of(Limit::FlowControl, 40, 25).flow_control, ms(25));
    assert_eq!(of(Limit::Pacing, 60, 25).pacing, ms(25));
    // The path has nothing to do for more than a quarter of a round trip.
    assert_eq!(of(Limit::Window, 40, 11).idle, ms(11));
    assert_eq!(of(Limit::Window, 40, 10).window, ms(10));
    // It is busy with the queue first.
    let wait = of(Limit::Window, 55, 30);
    assert_eq!(
        (wait.queueing, wait.idle, wait.window),
        (ms(15), ms(15), ms(0))
    );
    let wait = of(Limit::Window, 55, 20);
    assert_eq!(
        (wait.queueing, wait.idle, wait.window),
        (ms(15), ms(0), ms(5))
    );
    let wait = of(Limit::Window, 90, 20);
    assert_eq!(
        (wait.queueing, wait.idle, wait.window),
        (ms(20), ms(0), ms(0))
    );
}

#[test]
fn time_after_the_last_new_byte_is_the_last_acknowledgment() {
    let mut meter = after_flight(Limit::Application, 40);
    meter.on_acked(at(140), Space::Application, 8);
    assert_eq!(meter.anatomy().last_ack, ms(40));
    // Control frames and retransmissions are not new bytes.
    meter.on_pause(at(140), pause(Limit::Application, 12_000, 12, 40));
    meter.on_acked(at(150), Space::Application, 9);
    let anatomy = meter.anatomy();
    assert_eq!((anatomy.last_ack, anatomy.transfer()), (ms(50), ms(50)));
    // More data: it was the application after all.
    meter.on_pause(at(170), pause(Limit::Application, 13_000, 13, 40));
    let anatomy = meter.anatomy();
    assert_eq!((anatomy.application, anatomy.last_ack), (ms(70), ms(0)));
}

#[test]
fn loss_is_under_repair_until_a_later_packet_is_acknowledged() {
    let mut meter = after_flight(Limit::Window, 40);
    meter.on_lost(at(145));
    meter.on_pause(at(145), pause(Limit::Window, 13_000, 14, 40));
    meter.on_acked(at(150), Space::Application, 9);
    meter.on_pause(at(150), pause(Limit::Window, 14_000, 15, 40));
    // Packet 10 was the first after the loss. Another space has numbers of its own.
    meter.on_acked(at(160), Space::Handshake, 30);
    meter.on_acked(at(185), Space::Application, 10);
    meter.on_pause(at(185), pause(Limit::Window, 15_000, 16, 40));
    let anatomy = meter.anatomy();
    assert_eq!((anatomy.idle, anatomy.repair), (ms(45), ms(40)));
    meter.on_acked(at(190), Space::Application, 11);
    meter.on_pause(at(190), pause(Limit::Window, 16_000, 17, 40));
    assert_eq!(meter.anatomy().window, ms(5));
}

#[test]
fn a_wait_for_a_probe_timeout_is_repair_at_the_end_too() {
    let mut meter = after_flight(Limit::Application, 40);
    meter.on_acked(at(140), Space::Application, 5);
    meter.on_probe_timeout(at(260));
    meter.on_pause(at(260), pause(Limit::Application, 12_000, 11, 40));
    meter.on_acked(at(300), Space::Application, 10);
    let anatomy = meter.anatomy();
    assert_eq!(
        (anatomy.last_ack, anatomy.repair, anatomy.transfer()),
        (ms(40), ms(160), ms(200))
    );
}

#[test]
fn data_sent_again_after_the_last_new_byte_is_a_repair_until_it_is_acknowledged() {
    let mut meter = Meter::new(at(0), at(0));
    meter.on_pause(at(0), pause(Limit::Application, 1000, 5, 40));
    meter.on_lost(at(40));
    meter.on_acked(at(80), Space::Application, 5);
    // The recovery period is over; what it left is sent now, in packets up to 6.
    let again = Pause {
        resent_bytes: 500,
        ..pause(Limit::Window, 1000, 7, 40)
    };
    meter.on_pause(at(80), again);
    meter.on_acked(at(100), Space::Application, 5);
    meter.on_acked(at(120), Space::Application, 6);
    meter.on_acked(at(150), Space::Application, 6);
    let anatomy = meter.anatomy();
    assert_eq!((anatomy.repair, anatomy.last_ack), (ms(80), ms(70)));
}
