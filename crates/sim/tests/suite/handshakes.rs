//! Round trips of handshakes before the first byte, over HTTP/3.
//!
//! | handshake | until the client may send requests | until the first byte of the response |
//! |---|---|---|
//! | full | 1 | 2 |
//! | resumed | 1 | 2 |
//! | 0-RTT | 0 | 1 |
//!
//! The path is long and fast, so that only round trips and the serialisation of the first flights count.

use core::time::Duration;

use lastbyte_link as link;
use lastbyte_scenario::{Handshake, Scenario, Security};
use lastbyte_sim::FlowOutcome;

use crate::paths::{bottleneck, run, transfer};

const RTT_MS: u64 = 200;
const RATE_MBIT: u64 = 10_000;
/// Data that a server sends before the first byte of a response: four datagrams at most, since a client
/// whose address is not validated gets three times what it sent (RFC 9000 §8.1).
const DATAGRAMS: u64 = 4;

/// Each kind, with the round trips until a client may ask, and until the first byte of the response.
const TABLE: [(Handshake, u32, u32); 3] = [
    (Handshake::Full, 1, 2),
    (Handshake::Resumed, 1, 2),
    (Handshake::ZeroRtt, 0, 1),
];

fn visit(handshake: Handshake, security: Security) -> Scenario {
    let path = bottleneck(RATE_MBIT, RTT_MS, 1000);
    let mut scenario = transfer(path, "slow-start", 20_000);
    scenario.transport.handshake = handshake;
    scenario.transport.security = security;
    scenario
}

fn flow(scenario: &Scenario) -> FlowOutcome {
    run(scenario).flows.remove(0)
}

#[test]
fn round_trips_before_the_first_byte() {
    let rtt = Duration::from_millis(RTT_MS);
    let rate = link::Rate::from_bits_per_second(RATE_MBIT * 1_000_000);
    let on_the_wire = rate.time_for(DATAGRAMS * 1280);
    for security in [Security::Simulated, Security::Tls] {
        for (handshake, connect, first_byte) in TABLE {
            let flow = flow(&visit(handshake, security));
            assert!(flow.is_complete(), "{handshake:?} {security:?}: {flow:?}");
            let measured = [
                flow.first_request.expect("it asked"),
                flow.responses[0].first_byte.expect("it was answered"),
                // In any case, a handshake takes a round trip.
                flow.handshake.expect("it is complete"),
            ];
            for (measured, expected) in measured.into_iter().zip([connect, first_byte, 1]) {
                let least = rtt * expected;
                assert!(
                    measured >= least && measured <= least + on_the_wire,
                    "{handshake:?} {security:?}: {measured:?}, expected {least:?} and up to {on_the_wire:?}"
                );
            }
        }
    }
}

/// Simulated TLS takes the same time as TLS, apart from some bytes on the wire.
#[test]
fn simulated_tls_takes_the_same_time_as_tls() {
    for (handshake, ..) in TABLE {
        let [twin, tls] = [Security::Simulated, Security::Tls].map(|security| {
            let flow = flow(&visit(handshake, security));
            flow.responses[0].last_byte.expect("it arrives")
        });
        assert!(
            twin.abs_diff(tls) < Duration::from_micros(50),
            "{handshake:?}: {twin:?} {tls:?}"
        );
    }
}

/// TLS draws random keys, but the same seed gives the same times and sizes.
#[test]
fn the_same_seed_gives_the_same_figures_with_tls() {
    for (handshake, ..) in TABLE {
        let scenario = visit(handshake, Security::Tls);
        let [one, two] = [0; 2].map(|_| {
            let outcome = run(&scenario);
            format!("{outcome:?}")
        });
        assert_eq!(one, two, "{handshake:?}");
    }
}

/// A chain that is longer than three times the client's first datagram costs a round trip more (RFC 9000 §8.1); a
/// resumed handshake sends none.
#[test]
fn a_long_certificate_chain_adds_a_round_trip_to_full_handshakes_only() {
    for security in [Security::Simulated, Security::Tls] {
        for (handshake, _, round_trips) in TABLE {
            let mut scenario = visit(handshake, security);
            scenario.transport.certificate_chain = 6000;
            let first = flow(&scenario).responses[0].first_byte;
            let more = u32::from(handshake == Handshake::Full);
            let expected = Duration::from_millis(RTT_MS) * (round_trips + more);
            let over = first.expect("it was answered").abs_diff(expected);
            assert!(
                over < Duration::from_millis(1),
                "{handshake:?} {security:?}: {first:?}, expected {expected:?}"
            );
        }
    }
}

/// A returning client has a token: the response to its 0-RTT is not limited to three times the received bytes, and all of a
/// response that fits into the first flight comes a round trip earlier than in full.
#[test]
fn a_short_response_completes_a_round_trip_earlier_with_0rtt() {
    for security in [Security::Simulated, Security::Tls] {
        let [full, early] = [Handshake::Full, Handshake::ZeroRtt].map(|handshake| {
            let flow = flow(&visit(handshake, security));
            flow.responses[0].last_byte.expect("it arrives")
        });
        let saved = full.saturating_sub(early);
        let rtt = Duration::from_millis(RTT_MS);
        assert!(
            saved.abs_diff(rtt) < rtt / 2,
            "{security:?}: {full:?} in full, {early:?} in 0-RTT"
        );
    }
}
