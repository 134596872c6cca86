//! `lastbyte specs`: lists the presets and keys of congestion control, or resolves specs.

use std::{fmt::Write as _, process::ExitCode};

use clap::Args;
use lastbyte_congestion::{ControllerFactory, Environment, Registry, SpecError};

use crate::{failure::Failure, terminal::print};

const EXAMPLES: &str = "\
Examples:
  # All presets, keys and values.
  lastbyte specs
  # The settings that a spec resolves to.
  lastbyte specs rapid-start
  lastbyte specs hystart:congestion=newreno,initial-window=10p";

/// List congestion control presets and keys, or show the settings of a spec.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Specs to resolve: PRESET or PRESET:KEY=VALUE,…; none to list everything
    #[arg(value_name = "SPEC")]
    specs: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let text = if arguments.specs.is_empty() {
        list(registry)
    } else {
        let resolved = arguments.specs.iter().map(|spec| resolve(registry, spec));
        let resolved: Result<Vec<String>, SpecError> = resolved.collect();
        resolved.map_err(Failure::usage)?.join("\n")
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn list(registry: &Registry) -> String {
    let mut text = "A spec is PRESET or PRESET:KEY=VALUE,…\n".to_owned();
    let mut section = |title: &str, entries: &mut dyn Iterator<Item = (&str, &str)>| {
        let _ = write!(text, "\n{title}:\n");
        for (name, summary) in entries {
            let _ = writeln!(text, "  {name:<34} {summary}");
        }
    };
    section("Presets", &mut registry.presets());
    let keys: Vec<(String, &str)> = registry
        .keys()
        .iter()
        .map(|key| (format!("{}={}", key.name(), key.value()), key.summary()))
        .collect();
    let mut keys = keys
        .iter()
        .map(|(usage, summary)| (usage.as_str(), *summary));
    section("Keys", &mut keys);
    section("Values of growth", &mut registry.startups());
    section("Values of congestion", &mut registry.avoidances());
    text
}

/// The settings of a spec, and the state of a controller built from it.
fn resolve(registry: &Registry, text: &str) -> Result<String, SpecError> {
    let spec = registry.parse(text)?;
    let environment = Environment {
        max_datagram_size: DATAGRAM_SIZE,
        seed: 1,
    };
    Ok(format!(
        "{spec}\n{:#?}\ninitial state, with datagrams of {DATAGRAM_SIZE} bytes: {:#?}\n",
        spec.config(),
        spec.build(&environment).state()
    ))
}

/// The minimum size of a full datagram (RFC 9000 §14).
const DATAGRAM_SIZE: u64 = 1200;
