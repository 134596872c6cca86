use super::*;

const fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn acked(now: u64, bytes: u64, sent_at: u64) -> Acked {
    Acked {
        now: at(now),
        bytes,
        sent_at: at(sent_at),
    }
}

/// A response of which the initial window is sent at 100 ms, over a path of 40 ms that delivers 1000 bytes a millisecond.
fn busy(until: u64) -> Measurements {
    let mut path = Measurements::new(10_000);
    path.on_ack(&acked(50, 2000, 10));
    path.on_app_limited(at(50), 2000, 0);
    for now in 140..until {
        path.on_ack(&acked(now, 2000 + (now - 139) * 1000, now - 40));
    }
    path
}

#[test]
fn the_delivery_rate_is_of_spans_in_which_the_window_was_in_use() {
    // The initial window was application-limited: it could have been all there was.
    assert_eq!(busy(180).delivery_rate(), None);
    let partial = busy(220).delivery_rate().expect("a partial sample");
    assert_eq!((partial.latest, partial.deviation), (1_000_000, 0));
    let full = busy(900).delivery_rate().expect("samples");
    let expected = DeliveryRate {
        latest: 1_000_000,
        smoothed: 1_000_000,
        deviation: 0,
    };
    assert_eq!(full, expected);
}

#[test]
fn a_pause_of_the_application_is_part_of_no_sample() {
    let mut path = busy(500);
    let before = path.delivery_rate();
    path.on_app_limited(at(500), 362_000, 40_000);
    // What was in flight was sent while the window was in use.
    for now in 500..540 {
        path.on_ack(&acked(now, 2000 + (now - 139) * 1000, now - 40));
    }
    for now in [600, 700, 800] {
        path.on_ack(&acked(now, 402_000 + now, now - 40));
        path.on_app_limited(at(now), 402_000 + now, 0);
    }
    assert_eq!(path.delivery_rate(), before);
}

#[test]
fn a_rate_that_changes_has_a_deviation_and_is_forgotten_after_ten_samples() {
    let mut path = busy(640);
    let mut bytes = 502_000;
    for now in 640..940 {
        bytes += 3000;
        path.on_ack(&acked(now, bytes, now - 40));
    }
    let both = path.delivery_rate().expect("samples");
    assert_eq!(both.latest, 3_000_000);
    assert!((2_000_000..2_500_000).contains(&both.smoothed), "{both:?}");
    assert!((900_000..1_100_000).contains(&both.deviation), "{both:?}");
    for now in 940..1300 {
        bytes += 3000;
        path.on_ack(&acked(now, bytes, now - 40));
    }
    let later = path.delivery_rate().expect("samples");
    assert_eq!((later.smoothed, later.deviation), (3_000_000, 0));
}

#[test]
fn the_first_flight_has_at_least_ten_packets() {
    let mut path = Measurements::new(10_000);
    // A packet of the handshake, then two more.
    path.on_flight(&acked(40, 1000, 0), 0, 3, Some(at(20)));
    path.on_flight(&acked(90, 3000, 20), 2, 3, Some(at(20)));
    assert_eq!(path.first_flight(), None);
    // Thirty packets over 20 ms, acknowledged two by two over 60.
    for step in 0..15_u64 {
        let now = 140 + step * 60 / 14;
        let largest = 4 + 2 * step;
        let next = 33 + 4 * step;
        assert_eq!(path.first_flight(), None);
        path.on_flight(
            &acked(now, 5000 + step * 2000, 100),
            largest,
            next,
            Some(at(120)),
        );
    }
    let expected = FirstFlight {
        bytes: 28_000,
        sent_over: ms(20),
        acked_over: ms(60),
    };
    assert_eq!(path.first_flight(), Some(expected));
    path.on_flight(&acked(300, 90_000, 250), 90, 120, Some(at(290)));
    assert_eq!(path.first_flight(), Some(expected));
}

#[test]
fn idle_counts_from_the_first_flight_beyond_the_initial_window() {
    let mut path = Measurements::new(10_000);
    path.on_idle(at(40), 3000);
    assert_eq!(path.idle_at(), None);
    path.on_idle(at(90), 10_001);
    path.on_idle(at(190), 20_000);
    assert_eq!(path.idle_at(), Some(at(90)));
}
