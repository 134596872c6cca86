use super::*;

fn names(named: &Named) -> Vec<(f64, String)> {
    named.events()
}

#[test]
fn the_first_pause_of_a_full_window_after_the_first_flight_is_idle() {
    let mut named = Named::default();
    for number in 0..10 {
        assert_eq!(named.sent(f64::from(number) * 40.0, true, Some(40.0)), None);
    }
    assert_eq!(
        named.sent(380.0, true, Some(40.0)),
        None,
        "half a round trip"
    );
    assert_eq!(
        named.sent(480.0, false, Some(40.0)),
        None,
        "the application"
    );
    assert_eq!(named.sent(510.0, true, Some(40.0)), Some((480.0, 510.0)));
    assert_eq!(named.sent(910.0, true, Some(40.0)), Some((510.0, 910.0)));
    assert_eq!(names(&named), [(480.0, "idle for 30 ms from".to_owned())]);
}

#[test]
fn the_first_losses_are_those_of_a_round_trip_and_an_overshoot_if_a_queue_was_full() {
    let mut named = Named::default();
    named.lost(100.0, 1, 40.0);
    assert!(names(&named).is_empty(), "one packet");
    named.lost(140.0, 3, 40.0);
    named.lost(141.0, 5, 40.0);
    let random = "4 packets lost at".to_owned();
    assert_eq!(names(&named), [(100.0, random.clone())]);
    // A queue that is full later is no cause.
    let mut later = named.clone();
    later.queue_overflowed(150.0);
    assert_eq!(names(&later), [(100.0, random)]);
    named.queue_overflowed(80.0);
    assert_eq!(
        names(&named),
        [(100.0, "overshoot: 4 packets lost at".to_owned())]
    );
}

#[test]
fn the_second_recovery_and_conservative_slow_start_have_names() {
    let mut named = Named::default();
    named.conservative(50.0);
    named.recovery(100.0);
    named.startup_ends(100.0);
    named.recovery(200.0);
    named.recovery(300.0);
    named.startup_ends(300.0);
    let expected = [
        (50.0, "CSS starts"),
        (100.0, "startup ends"),
        (200.0, "second recovery"),
    ];
    assert_eq!(
        names(&named),
        expected.map(|(at, name)| (at, name.to_owned()))
    );
}
