//! The whole HTTP/3 server in virtual time among good and hostile clients, datagrams with faults, and a shutdown: many runs,
//! each from a seed, or one, and the least of it that still fails.
//!
//! ```text
//! cargo run --release -p lastbyte-origin --example world -- --seeds 10000
//! cargo run --release -p lastbyte-origin --example world -- --seed 17
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program that reads its arguments, and reports"
)]

#[path = "../tests/corpus/application.rs"]
#[expect(dead_code, reason = "what the corpus uses of it")]
mod application;
#[path = "../tests/suite/chaos.rs"]
mod chaos;
#[path = "../tests/suite/world.rs"]
mod world;

use chaos::{Plan, run, shrink};
use lastbyte_testkit::Seeds;

/// Runs a seed and prints its report, or the smallest plan that still fails.
fn run_one(seed: u64) -> Result<(), String> {
    let plan = Plan::of(seed);
    println!("{plan}");
    let report = run(&plan)
        .map_err(|error| format!("{error}\nthe least that fails: {}", shrink(plan.clone())))?;
    println!("{report:?}");
    Ok(())
}

fn main() -> Result<(), String> {
    let seeds = match Seeds::parse(std::env::args().skip(1))? {
        Seeds::One(seed) => return run_one(seed),
        Seeds::Many(seeds) => seeds,
    };
    let mut failed = Vec::new();
    let (mut complete, mut cut, mut requests) = (0, 0, 0);
    for seed in seeds.clone() {
        match run(&Plan::of(seed)) {
            Ok(report) => {
                complete += report.complete;
                cut += report.failed;
                requests += report.requests;
            }
            Err(error) => {
                println!("seed {seed}: {error}");
                failed.push(seed);
            }
        }
    }
    println!(
        "{} seeds: {} failed; {requests} requests, of good clients {complete} with a complete response and {cut} with an error",
        seeds.end - seeds.start,
        failed.len()
    );
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("seeds that failed: {failed:?}"))
    }
}
