//! The whole HTTP/3 server in virtual time among good and hostile clients, datagrams with faults, and a shutdown: many runs,
//! each from a seed, or one, and the least of it that still fails.
//!
//! ```text
//! cargo run --release -p lastbyte-server --example world -- --seeds 10000
//! cargo run --release -p lastbyte-server --example world -- --seed 17
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

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| {
        let parsed = text.parse::<u64>();
        parsed.map_err(|error| format!("invalid number `{text}`: {error} (expected a number)"))
    };
    let seeds = match arguments[..] {
        [] => 0..1000,
        ["--seeds", count] => 0..number(count)?,
        ["--seeds", count, "--from", first] => {
            let first = number(first)?;
            first..first + number(count)?
        }
        ["--seed", seed] => {
            let plan = Plan::of(number(seed)?);
            println!("{plan}");
            return match run(&plan) {
                Ok(report) => {
                    println!("{report:?}");
                    Ok(())
                }
                Err(error) => Err(format!("{error}\nthe least that fails: {}", shrink(plan))),
            };
        }
        _ => return Err("usage: world [--seed N | --seeds COUNT [--from N]]".into()),
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
