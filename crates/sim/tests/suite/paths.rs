//! Paths and transfers that several tests need.

use core::time::Duration;

use lastbyte_link as link;
use lastbyte_record::connection_log::{self, Experiment, Header};
use lastbyte_scenario::{Path, Scenario};
use lastbyte_sim::{Outcome, simulate};

/// A bottleneck of `mbit` Mb/s with a drop-tail queue, and half the round trip in each direction.
pub(crate) fn bottleneck(mbit: u64, rtt_ms: u64, queue_ms: u64) -> Path {
    let mut path = Path::default();
    path.down.capacity =
        link::Capacity::Constant(link::Rate::from_bits_per_second(mbit * 1_000_000));
    path.down.queue = link::Queue::DropTail(link::DropTail {
        limit: link::Limit::Time(Duration::from_millis(queue_ms)),
        mark_above: None,
    });
    path.down.delay = Duration::from_micros(rtt_ms * 500);
    path.up.delay = path.down.delay;
    path
}

pub(crate) fn transfer(path: Path, spec: &str, size: u64) -> Scenario {
    Scenario::transfer(path, spec.parse().expect(spec), size)
}

pub(crate) fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, &mut ()).expect("a scenario that can be")
}

/// Milliseconds until the last byte of the first flow's first response.
pub(crate) fn ttlb_ms(outcome: &Outcome) -> f64 {
    let response = outcome.flows[0].responses[0];
    let last = response.last_byte.expect("the response arrives");
    last.as_secs_f64() * 1e3
}

/// Packets that the first flow's server declared lost.
pub(crate) fn lost(outcome: &Outcome) -> u64 {
    outcome.flows[0]
        .server
        .as_ref()
        .expect("a server")
        .recovery
        .packets_lost
}

/// The value of a number in the connection log of a flow.
pub(crate) fn logged(outcome: &Outcome, flow: usize, key: &str) -> u64 {
    let header = Header {
        time_ms: 0,
        conn_id: 0,
        method: "GET".to_owned(),
        content_length: 0,
        ttlb_ms: None,
    };
    let snapshot = &outcome.flows[flow]
        .server
        .as_ref()
        .expect("a server")
        .snapshot;
    let mut line = String::new();
    connection_log::write(&mut line, &header, snapshot, &Experiment::default());
    let (_, rest) = line.split_once(&format!("\"{key}\":")).expect(key);
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits.expect(key).parse().expect(key)
}
