//! Random paths, faults and transfers, each from a seed: runs many, or one to see what came of it.
//!
//! ```text
//! cargo run --release -p lastbyte-sim --example chaos -- --seeds 10000
//! cargo run --release -p lastbyte-sim --example chaos -- --seed 17
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program that reads its arguments, and reports"
)]

#[path = "../tests/chaos/mod.rs"]
mod chaos;

use core::{ops::Range, time::Duration};

use lastbyte_testkit::Seeds;

fn main() -> Result<(), String> {
    match Seeds::parse(std::env::args().skip(1))? {
        Seeds::One(seed) => {
            println!("{:#?}", chaos::run(seed)?);
            Ok(())
        }
        Seeds::Many(seeds) => run(seeds),
    }
}

fn run(seeds: Range<u64>) -> Result<(), String> {
    let (mut failed, mut complete) = (0_u64, 0_u64);
    let (mut datagrams, mut verified, mut lost, mut late) = (0, 0, 0, 0);
    let (mut moves, mut key_updates, mut ring_max) = (0, 0, 0);
    let mut took = Duration::ZERO;
    for seed in seeds.clone() {
        match chaos::run(seed) {
            Ok(report) => {
                complete += u64::from(report.is_complete);
                datagrams += report.datagrams;
                verified += report.verified;
                lost += report.lost;
                late += report.late;
                moves += report.moves;
                key_updates += report.key_updates;
                ring_max = ring_max.max(report.ring_max);
                took += report.took;
            }
            Err(error) => {
                failed += 1;
                let first = error.lines().next().unwrap_or_default();
                println!("seed {seed} {first}");
                println!("    cargo run -p lastbyte-sim --example chaos -- --seed {seed}");
            }
        }
    }
    println!("seeds:              {}", seeds.end - seeds.start);
    println!("failed:             {failed}");
    println!("complete transfers: {complete}");
    println!("simulated time:     {:.0} s", took.as_secs_f64());
    println!("datagrams:          {datagrams}");
    println!("bytes verified:     {verified}");
    println!("packets lost:       {lost}, of which {late} arrived late");
    println!("address changes:    {moves}");
    println!("key updates:        {key_updates}");
    println!("longest ring:       {ring_max} packets");
    if failed > 0 {
        return Err(format!("{failed} seeds failed"));
    }
    Ok(())
}
