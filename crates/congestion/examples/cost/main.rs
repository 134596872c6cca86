//! What a controller costs in instructions, exactly:
//!
//! ```text
//! cargo build --profile dist -p lastbyte-congestion --example cost
//! valgrind --tool=callgrind --toggle-collect='*::Flow::frame' target/dist/examples/cost cubic
//! ```
//!
//! runs 100 000 ACK frames of two packets each, sends two packets for each, and asks for window and pacing: divide what
//! callgrind collects by 101 000 (a thousand frames warm up). The ring of sent packets and the RTT estimator are in it.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a program reads its arguments and says what is wrong with them"
)]

mod steady;

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, spec, loss)) = steady::CASES.iter().find(|(label, ..)| *label == name) else {
        let labels: Vec<&str> = steady::CASES.iter().map(|(label, ..)| *label).collect();
        eprintln!("usage: cost {}", labels.join("|"));
        return ExitCode::from(2);
    };
    let mut flow = steady::Flow::new(spec, *loss);
    for _ in 0..100_000 {
        flow.frame();
    }
    ExitCode::SUCCESS
}
