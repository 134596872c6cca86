//! All commands, with a startup of your own: simulations and an experiment that compare it, a server that runs it.
//!
//! ```text
//! cargo run --release -p lastbyte --example plugin -- sim --arm cubic --arm surge:patience=0.5
//! cargo run --release -p lastbyte --example plugin -- ab crates/lastbyte/examples/plugin.toml
//! cargo run --release -p lastbyte --example plugin -- serve --self-signed --congestion surge
//! ```

#[expect(
    dead_code,
    reason = "its main compares the startup with CUBIC in a simulation"
)]
#[path = "../../sim/examples/algorithm.rs"]
mod algorithm;

use std::{error::Error, process::ExitCode};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let registry = algorithm::registry()?;
    Ok(lastbyte::run(std::env::args_os(), &registry))
}
