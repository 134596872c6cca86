//! Lists the presets and keys of congestion control, or says what specs come to:
//!
//! ```text
//! cargo run -p lastbyte-congestion --example specs
//! cargo run -p lastbyte-congestion --example specs -- rapid-start hystart:congestion=newreno
//! ```

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program reads its arguments and prints"
)]

use std::process::ExitCode;

use lastbyte_congestion::{ControllerFactory, Environment, Registry};

fn main() -> ExitCode {
    let specs: Vec<String> = std::env::args().skip(1).collect();
    if specs.is_empty() {
        list();
        return ExitCode::SUCCESS;
    }
    let registry = Registry::builtin();
    for text in specs {
        match registry.parse(&text) {
            Ok(spec) => {
                let controller = spec.build(&Environment {
                    max_datagram_size: 1200,
                    seed: 1,
                });
                println!("{spec}\n{:#?}", spec.config());
                println!("with datagrams of 1200 bytes: {:#?}\n", controller.state());
            }
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

fn list() {
    let registry = Registry::builtin();
    println!("A spec is PRESET or PRESET:KEY=VALUE,…\n\nPresets:");
    for (name, summary) in registry.presets() {
        println!("  {name:<15} {summary}");
    }
    println!("\nKeys:");
    for key in registry.keys() {
        println!("  {}", key.help());
    }
    println!("\nValues of growth:");
    for (name, summary) in registry.startups() {
        println!("  {name:<15} {summary}");
    }
    println!("\nValues of congestion:");
    for (name, summary) in registry.avoidances() {
        println!("  {name:<15} {summary}");
    }
}
