use core::time::Duration;

use lastbyte_link::{Capacity, DropTail, Limit, Queue, Rate};
use lastbyte_record::connection_log::{self, Experiment, Header};
use lastbyte_scenario::{Path, Scenario};

use super::*;
use crate::{Outcome, simulate};

#[test]
fn addresses_follow_the_moves() {
    let moves =
        ["1s nat", "1500ms network", "2s nat"].map(|text| Move::parse(text).expect("valid"));
    let first = SocketAddr::from(([10, 0, 0, 7], 50_000));
    let addresses = (0..=3).map(|past| external(first, &moves[..past]).to_string());
    let expected = [
        "10.0.0.7:50000",
        "10.0.0.7:50001",
        "11.0.0.7:50001",
        "11.0.0.7:50002",
    ];
    assert_eq!(addresses.collect::<Vec<_>>(), expected);
    assert_eq!(local(first, &moves).to_string(), "11.0.0.7:50000");
}

const SIZE: u64 = 5_000_000;

fn moving(moves: &[&str]) -> Scenario {
    let mut path = Path::default();
    path.down.capacity = Capacity::Constant(Rate::from_bits_per_second(20_000_000));
    path.down.queue = Queue::DropTail(DropTail {
        limit: Limit::Time(Duration::from_millis(60)),
        mark_above: None,
    });
    path.down.delay = Duration::from_millis(20);
    path.up.delay = path.down.delay;
    let moves = moves.iter().map(|text| Move::parse(text).expect("valid"));
    path.moves = moves.collect();
    Scenario::transfer(path, "cubic".parse().expect("a spec"), SIZE)
}

fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, &mut ()).expect("a scenario that can be")
}

/// Milliseconds until the last byte of the response.
fn ttlb_ms(outcome: &Outcome) -> f64 {
    let response = outcome.flows[0].responses[0];
    let last = response.last_byte.expect("the response arrives");
    last.as_secs_f64() * 1e3
}

/// Packets that the server declared lost.
fn lost(outcome: &Outcome) -> u64 {
    let server = outcome.flows[0].server.as_ref();
    server.expect("a server").recovery.packets_lost
}

/// A key of the server's line in the connection log.
fn logged(outcome: &Outcome, key: &str) -> u64 {
    let server = outcome.flows[0].server.as_ref().expect("a server");
    let mut line = String::new();
    let (header, experiment) = (Header::default(), Experiment::default());
    connection_log::write(&mut line, &header, &server.snapshot, &experiment);
    let (_, rest) = line.split_once(&format!("\"{key}\":")).expect(key);
    let value = rest.split([',', '}']).next().expect("a value");
    value.parse().expect("a number")
}

/// RFC 9000 §9.3: the server follows. What was on the way to the previous port is lost, and the window stays (§9.4).
#[test]
fn a_nat_that_rebinds_costs_what_was_in_flight() {
    let still = run(&moving(&[]));
    let moved = run(&moving(&["1s nat"]));
    assert_eq!(logged(&still, "num-paths.migration-elicited"), 0);
    assert_eq!(logged(&moved, "num-paths.migration-elicited"), 1);
    assert!(lost(&moved) > lost(&still));
    assert!(ttlb_ms(&moved) < ttlb_ms(&still) + 500.0);
    assert!(logged(&moved, "cc.cwnd-maximum") > 100_000);
}

/// RFC 9000 §9.4: a flight lost to the previous port is no congestion, so the startup goes on to the same window.
#[test]
fn rfc9000_9_4_a_rebinding_during_the_startup_does_not_end_it() {
    for spec in ["slow-start", "hystart", "jumpstart", "rapid-start"] {
        let transfer = |moves: &[&str]| {
            let mut path = moving(moves).path;
            path.down.capacity = Capacity::Constant(Rate::from_bits_per_second(100_000_000));
            run(&Scenario::transfer(
                path,
                spec.parse().expect("a spec"),
                12_000_000,
            ))
        };
        let (still, moved) = (transfer(&[]), transfer(&["180ms nat"]));
        assert_eq!(logged(&moved, "num-paths.promoted"), 1, "{spec}");
        let [still_exit, moved_exit] =
            [&still, &moved].map(|outcome| logged(outcome, "cc.cwnd-exiting-slow-start"));
        assert!(moved_exit >= still_exit / 10 * 9, "{spec}: {moved_exit}");
        assert!(ttlb_ms(&moved) < ttlb_ms(&still) + 400.0, "{spec}");
    }
}

/// The client moves at once, and the server starts with a new window.
#[test]
fn a_client_in_another_network_goes_on_there() {
    let still = run(&moving(&[]));
    let moved = run(&moving(&["500ms network", "1s nat", "1500ms network"]));
    assert_eq!(logged(&moved, "num-paths.promoted"), 3);
    assert_eq!(logged(&moved, "num-paths.validation-failed"), 0);
    assert!(ttlb_ms(&moved) > ttlb_ms(&still));
    assert!(ttlb_ms(&moved) < ttlb_ms(&still) + 2000.0);
}

#[test]
fn the_same_moves_give_the_same_history() {
    let scenario = moving(&["500ms network", "1s nat"]);
    assert_eq!(
        format!("{:?}", run(&scenario)),
        format!("{:?}", run(&scenario))
    );
}

/// RFC 9000 §9: before the handshake is confirmed, an endpoint does not move. A server takes the repeated Initial packet from
/// another address for that of another connection.
#[test]
fn a_move_during_the_handshake_costs_a_probe_timeout() {
    let still = run(&moving(&[]));
    let moved = run(&moving(&["10ms network"]));
    assert_eq!(logged(&moved, "num-paths.promoted"), 0);
    let cost = ttlb_ms(&moved) - ttlb_ms(&still);
    assert!((900.0..1100.0).contains(&cost), "{cost}");
}
