use super::*;

/// A pool with all the connections that it may have, idle.
fn of_idle() -> Pool {
    Pool {
        connections: vec![(0, Use::Idle); Pool::CONNECTIONS_MAX],
        queue: Vec::new(),
    }
}

#[test]
fn requests_leave_by_urgency_then_in_order_on_idle_connections() {
    let mut pool = Pool::default();
    for (resource, urgency) in [(1, 3), (2, 1), (3, 0), (4, 1)] {
        pool.push(resource, urgency);
    }
    let mut in_flight = InFlight::default();
    assert_eq!(pool.assign(&mut in_flight, true), None, "no connection");
    pool.connections = vec![(7, Use::Connecting), (8, Use::Idle), (9, Use::Idle)];
    assert_eq!(pool.assign(&mut in_flight, true), Some((8, 3)));
    assert_eq!(pool.assign(&mut in_flight, true), Some((9, 2)));
    assert_eq!(pool.assign(&mut in_flight, true), None, "both are busy");
    assert!(!pool.release(1, &mut in_flight), "it was not sent");
    assert!(pool.release(3, &mut in_flight));
    assert_eq!(pool.assign(&mut in_flight, true), Some((8, 4)));
}

#[test]
fn an_urgent_request_over_http2_holds_back_those_of_low_priority_over_http11() {
    let mut pool = of_idle();
    for resource in 1..=3 {
        pool.push(resource, 3);
    }
    let mut in_flight = InFlight::default();
    in_flight.add_multiplexed(0);
    in_flight.add_multiplexed(3);
    assert!(pool.assign(&mut in_flight, false).is_some());
    assert_eq!(pool.assign(&mut in_flight, false), None, "one at a time");
    assert!(!in_flight.remove_multiplexed(3), "it held nothing back");
    assert_eq!(pool.assign(&mut in_flight, false), None);
    assert!(in_flight.remove_multiplexed(0));
    assert!(pool.assign(&mut in_flight, false).is_some());
}

#[test]
fn a_request_held_back_leaves_when_the_others_have_ended() {
    let mut pool = of_idle();
    for (resource, urgency) in [(1, 1), (2, 3), (3, 3)] {
        pool.push(resource, urgency);
    }
    let mut in_flight = InFlight::default();
    let assign = |pool: &mut Pool, in_flight: &mut InFlight| {
        pool.assign(in_flight, false).map(|(_, resource)| resource)
    };
    assert_eq!(assign(&mut pool, &mut in_flight), Some(1));
    assert_eq!(assign(&mut pool, &mut in_flight), Some(2));
    assert_eq!(assign(&mut pool, &mut in_flight), None);
    assert!(pool.release(1, &mut in_flight));
    assert_eq!(assign(&mut pool, &mut in_flight), Some(3));
}

#[test]
fn one_image_passes_while_a_script_is_in_flight_and_ten_afterwards() {
    let mut in_flight = InFlight::default();
    in_flight.add(1);
    assert!(in_flight.permits(3, false));
    in_flight.add(3);
    assert!(!in_flight.permits(3, false), "before the first render");
    assert!(in_flight.permits(3, true), "after it");
    in_flight.remove(1);
    for _ in 1..LOW_MAX {
        assert!(in_flight.permits(3, false));
        in_flight.add(3);
    }
    assert!(!in_flight.permits(3, false));
    assert!(
        in_flight.permits(0, false),
        "urgent requests are never held back"
    );
}

#[test]
fn a_host_gets_a_connection_per_request_up_to_six() {
    let mut pool = Pool::default();
    let free = InFlight::default();
    pool.push(1, 0);
    assert_eq!(pool.wanted(&free, true), 1);
    pool.connections.push((0, Use::Connecting));
    assert_eq!(pool.wanted(&free, true), 0, "one is on its way");
    for resource in 2..20 {
        pool.push(resource, 0);
    }
    assert_eq!(pool.wanted(&free, true), 5);
    let busy = Use::Busy {
        resource: 9,
        urgency: 0,
    };
    pool.connections.extend([(1, busy); 5]);
    assert_eq!(pool.wanted(&free, true), 0);
}
