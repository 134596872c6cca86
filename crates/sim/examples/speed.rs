//! How many datagrams, and how many connections, are simulated in a second, on one core.
//!
//! ```text
//! cargo run --profile dist -p lastbyte-sim --example speed                   # all rows
//! cargo run --profile dist -p lastbyte-sim --example speed bulk 100000000    # one, of this many bytes or connections
//! ```
//!
//! `bulk` is one transfer at 1 Gb/s and 20 ms, `population` connections of the default population, and the other rows are
//! transfers over the network `vdsl`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a program that measures reads the clock, and says what it found"
)]

use core::{error::Error, time::Duration};
use std::time::Instant;

use lastbyte_link::{Capacity, DropTail, Limit, Queue, Rate};
use lastbyte_scenario::{Experiment, Path, Scenario, network::PathText};
use lastbyte_sim::simulate;

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "{:>12} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "case", "size", "datagrams", "transfers/s", "datagrams/s", "ns/datagram"
    );
    let mut arguments = std::env::args().skip(1);
    if let (Some(case), Some(size)) = (arguments.next(), arguments.next()) {
        return row(&case, size.parse()?, 1);
    }
    for arm in ["slow-start", "rapid-start", "bbr"] {
        for (size, runs) in [(20_000, 4000), (400_000, 1000), (100_000_000, 10)] {
            row(arm, size, runs)?;
        }
    }
    row("bulk", 1_000_000_000, 1)?;
    row("population", 1000, 1)
}

/// Simulates `runs` times, and prints the row.
fn row(case: &str, size: u64, runs: u64) -> Result<(), Box<dyn Error>> {
    let (mut datagrams, before) = (0, Instant::now());
    for seed in 0..runs {
        datagrams += match case {
            "population" => population(size)?,
            "bulk" => transfer(fast_path(), "cubic", size, seed)?,
            arm => {
                let text = PathText::named("vdsl")?;
                let path = text.path(&mut |name| Err(format!("{name}: no traces here")))?;
                transfer(path, arm, size, seed)?
            }
        };
    }
    let seconds = before.elapsed().as_secs_f64();
    println!(
        "{case:>12} {size:>12} {datagrams:>12} {:>12.0} {:>12.0} {:>12.0}",
        runs as f64 / seconds,
        datagrams as f64 / seconds,
        seconds * 1e9 / datagrams as f64
    );
    Ok(())
}

fn fast_path() -> Path {
    let mut path = Path::default();
    path.down.capacity = Capacity::Constant(Rate::from_bits_per_second(1_000_000_000));
    path.down.queue = Queue::DropTail(DropTail {
        limit: Limit::Bytes(2_500_000),
        mark_above: None,
    });
    path.down.delay = Duration::from_millis(10);
    path.up.delay = Duration::from_millis(10);
    path
}

/// How many datagrams a transfer takes.
fn transfer(path: Path, arm: &str, size: u64, seed: u64) -> Result<u64, Box<dyn Error>> {
    let mut scenario = Scenario::transfer(path, arm.parse()?, size);
    scenario.seed = seed;
    let outcome = simulate(&scenario, &mut ())?;
    assert!(
        outcome
            .flows
            .iter()
            .all(lastbyte_sim::FlowOutcome::is_complete)
    );
    Ok(outcome.datagrams)
}

/// How many datagrams the first connections of the default population take.
fn population(connections: u64) -> Result<u64, Box<dyn Error>> {
    let experiment = Experiment::four_arms();
    let mut datagrams = 0;
    for index in 0..connections {
        let scenario = experiment.scenario(&experiment.connection(index, false));
        datagrams += simulate(&scenario, &mut ())?.datagrams;
    }
    Ok(datagrams)
}
