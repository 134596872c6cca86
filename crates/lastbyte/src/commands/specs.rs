//! `lastbyte specs`: lists the presets and keys of congestion control, or resolves specs.

use std::{fmt::Write as _, process::ExitCode};

use clap::Args;
use lastbyte_congestion::{
    AppLimited, Config, ControllerFactory, Environment, FirstFlight, FirstRecovery, IdlePolicy,
    Registry, Spec, SpecError, State, Variant, WindowSize,
    avoidance::{Avoidance, Cause},
};
use lastbyte_units as units;
use serde_json::{Map, Value, json};

use crate::{failure::Failure, table::Table, terminal::print};

const EXAMPLES: &str = "\
Examples:
  # All presets, keys and values.
  lastbyte specs
  # The settings that a spec resolves to.
  lastbyte specs rapid-start
  lastbyte specs hystart:congestion=newreno,initial-window=10p
  lastbyte specs --json cubic bbr";

/// List congestion control presets and keys, or explain a spec.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Specs to resolve: PRESET or PRESET:KEY=VALUE,…; none to list everything
    #[arg(value_name = "SPEC")]
    specs: Vec<String>,
    /// Print the settings of specs as JSON (docs/specs.md)
    #[arg(long, requires = "specs")]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let text = if arguments.specs.is_empty() {
        list(registry)
    } else {
        let resolved = arguments.specs.iter().map(|spec| resolve(registry, spec));
        let resolved: Result<Vec<Resolved>, SpecError> = resolved.collect();
        let resolved = resolved.map_err(Failure::usage)?;
        if arguments.json {
            format!("{:#}\n", resolved.iter().map(json_of).collect::<Value>())
        } else {
            let texts: Vec<String> = resolved.iter().map(text_of).collect();
            texts.join("\n")
        }
    };
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn list(registry: &Registry) -> String {
    let mut text = "A spec is PRESET or PRESET:KEY=VALUE,…\n".to_owned();
    let mut section = |title: &str, entries: &mut dyn Iterator<Item = (&str, &str)>| {
        let mut table = Table::with_text([&format!("{title}:"), ""]);
        for (name, summary) in entries {
            table.row([format!("  {name:<33}"), summary.to_owned()]);
        }
        let _ = writeln!(text, "\n{}", table.text());
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

/// A spec, and what it resolves to.
struct Resolved {
    spec: Spec,
    /// Keys that the spec uses, with the value of each as a spec has it; null for the default of the avoidance.
    settings: Vec<(&'static str, Value)>,
    /// The avoidance of the spec; `None` for a monolithic algorithm.
    avoidance: Option<Box<dyn Avoidance>>,
    /// The state of a controller built from it.
    state: State,
}

fn resolve(registry: &Registry, text: &str) -> Result<Resolved, SpecError> {
    let spec = registry.parse(text)?;
    let environment = Environment {
        max_datagram_size: DATAGRAM_SIZE,
        seed: 1,
    };
    let state = spec.build(&environment).state();
    let keys = registry.keys_of(&spec);
    let settings = keys.filter_map(|key| {
        let value = value(key.name(), spec.config(), &state)?;
        Some((key.name(), value))
    });
    let settings = settings.collect();
    let avoidance = state.avoidance;
    let avoidance = avoidance.and_then(|name| registry.new_avoidance(name, spec.config()));
    Ok(Resolved {
        spec,
        settings,
        avoidance,
        state,
    })
}

/// The value of a key, null if the avoidance has a default; `None` if it has no effect, or belongs to a single rule and is not
/// set.
fn value(key: &str, config: &Config, state: &State) -> Option<Value> {
    let on_or_off = |is_on| if is_on { "on" } else { "off" }.to_owned();
    let number = |number: Option<f64>| Some(json!(number.map(|number| number.to_string())));
    let text = match key {
        "congestion" => state.avoidance?.to_owned(),
        "growth" => state.startup.to_owned(),
        "first-flight" => match config.first_flight {
            FirstFlight::InitialWindow { .. } => "initial-window".to_owned(),
            FirstFlight::Jump { .. } => "jump".to_owned(),
        },
        "first-flight-rtts" => match config.first_flight {
            FirstFlight::InitialWindow { round_trips } => round_trips.to_string(),
            FirstFlight::Jump { .. } => return None,
        },
        "jump-window" => match (config.first_flight, config.initial_window) {
            (FirstFlight::InitialWindow { .. }, _) => return None,
            (FirstFlight::Jump { window: Some(size) }, _) => size.to_string(),
            (FirstFlight::Jump { window: None }, WindowSize::Datagrams(datagrams)) => {
                WindowSize::Datagrams(datagrams * 2).to_string()
            }
            (FirstFlight::Jump { window: None }, size) => {
                WindowSize::Bytes(size.bytes(DATAGRAM_SIZE) * 2).to_string()
            }
        },
        "recovery" => match config.first_recovery {
            FirstRecovery::Cut => "cut".to_owned(),
            FirstRecovery::Proportional(_) => "proportional".to_owned(),
        },
        "variant" => match config.first_recovery {
            FirstRecovery::Proportional(Variant::Draft02) => "draft-02".to_owned(),
            FirstRecovery::Proportional(Variant::Editor) => "editor".to_owned(),
            FirstRecovery::Proportional(Variant::Quicly) => "quicly".to_owned(),
            FirstRecovery::Cut => return None,
        },
        "initial-window" => config.initial_window.to_string(),
        "min-window" => config.minimum_window.to_string(),
        "resume" => on_or_off(config.resume.is_some()),
        "resume-max" => config.resume?.to_string(),
        "beta" => return number(config.beta),
        "startup-beta" => return number(config.startup_beta),
        "startup-beta-ecn" => config.startup_beta_ecn?.to_string(),
        "beta-ecn" => return number(config.beta_ecn),
        "startup-pacing-gain" => config.startup_pacing_gain?.to_string(),
        "burst" => config.burst?.to_string(),
        "pacing-gain" => return number(config.pacing_gain),
        "respect-app-limited" => on_or_off(config.app_limited != AppLimited::Ignored),
        "rate-limited-increase" => on_or_off(config.app_limited == AppLimited::RateLimitedIncrease),
        "idle" => match config.idle {
            IdlePolicy::Keep => "keep",
            IdlePolicy::Rfc9002 => "rfc9002",
            IdlePolicy::Rfc5681 => "rfc5681",
            IdlePolicy::Rfc2861 => "rfc2861",
        }
        .to_owned(),
        rule => {
            let rules = &config.settings;
            let number = rules.number(rule).map(|number| number.to_string());
            let switch = || rules.switch(rule).map(on_or_off);
            let choice = || rules.choice(rule).map(str::to_owned);
            let window = || rules.window(rule).map(|size| size.to_string());
            number.or_else(switch).or_else(choice).or_else(window)?
        }
    };
    Some(Value::String(text))
}

fn text_of(resolved: &Resolved) -> String {
    let mut text = format!("{}\n", resolved.spec);
    for (key, value) in &resolved.settings {
        let avoidance = resolved.avoidance.as_deref();
        let default = || avoidance.map(|avoidance| default_of(avoidance, key));
        let value = value.as_str().map(str::to_owned).or_else(default);
        let _ = writeln!(text, "  {key:<22} {}", value.unwrap_or_default());
    }
    let state = &resolved.state;
    let _ = writeln!(
        text,
        "  start: {}, window {} with datagrams of {}",
        state.phase,
        units::show_bytes(state.window),
        units::show_bytes(DATAGRAM_SIZE)
    );
    text
}

/// The value of a key that is not set, and the avoidance that it comes from.
fn default_of(avoidance: &dyn Avoidance, key: &str) -> String {
    let value = match key {
        "beta-ecn" if avoidance.is_scalable() => "from the share of marks".to_owned(),
        "beta-ecn" => avoidance.beta(Cause::EcnCe).to_string(),
        "pacing-gain" => avoidance.pacing_gain().to_string(),
        _ => avoidance.beta(Cause::Loss).to_string(),
    };
    format!("{value} (default of {})", avoidance.name())
}

fn json_of(resolved: &Resolved) -> Value {
    let settings = resolved.settings.iter();
    let settings = settings.map(|(key, value)| ((*key).to_owned(), value.clone()));
    json!({
        "spec": resolved.spec.to_string(),
        "settings": settings.collect::<Map<String, Value>>(),
        "datagram_bytes": DATAGRAM_SIZE,
        "phase": resolved.state.phase.name(),
        "window_bytes": resolved.state.window,
    })
}

/// The minimum size of a full datagram (RFC 9000 §14).
const DATAGRAM_SIZE: u64 = 1200;
