//! How many packets, and how many connections, are simulated in a second, on one core.
//!
//! ```text
//! cargo run --release -p lastbyte-sim --example speed
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a program that measures reads the clock, and says what it found"
)]

use std::time::Instant;

use lastbyte_sim::{Scenario, network::PathText, simulate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:>12} {:>10} {:>12} {:>12} {:>12}",
        "arm", "bytes", "transfers/s", "packets/s", "ns/packet"
    );
    for arm in ["slow-start", "rapid-start", "bbr"] {
        for (size, runs) in [(20_000, 4000), (400_000, 1000), (100_000_000, 10)] {
            let text = PathText::named("vdsl")?;
            let path = text.path(&mut |name| Err(format!("{name}: no traces here")))?;
            let mut scenario = Scenario::transfer(path, arm.parse()?, size);
            let (mut datagrams, before) = (0, Instant::now());
            for seed in 0..runs {
                scenario.seed = seed;
                let outcome = simulate(&scenario, &mut ())?;
                assert!(
                    outcome
                        .flows
                        .iter()
                        .all(lastbyte_sim::FlowOutcome::is_complete)
                );
                datagrams += outcome.datagrams;
            }
            let seconds = before.elapsed().as_secs_f64();
            println!(
                "{arm:>12} {size:>10} {:>12.0} {:>12.0} {:>12.0}",
                runs as f64 / seconds,
                datagrams as f64 / seconds,
                seconds * 1e9 / datagrams as f64
            );
        }
    }
    Ok(())
}
