//! `lastbyte ab`: runs an experiment in the simulator, logs its connections and compares the arms.

mod connections;
mod summary;
mod vary;

use core::{fmt::Write as _, num::NonZeroUsize, time::Duration};
use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstyle::Style;
use clap::Args;
use lastbyte_congestion::Registry;
use lastbyte_record::packed::Packing;
use lastbyte_report::comparison::{Settings, Sweep};
use lastbyte_scenario::{
    Arm, Direction, Scenario, SettingError, Workload,
    experiment::{self, Experiment, Plan},
    workload::{PARALLEL_MAX, REQUESTS_MAX},
};
use lastbyte_sim::row::Label;
use lastbyte_units as units;

pub(super) use self::connections::line;
use self::{
    connections::simulate_all,
    summary::{queries, summary, summary_json},
};
use crate::{
    commands::{
        experiment_file,
        path::{self, setting},
        report, sim, steer, values,
    },
    failure::Failure,
    files,
    jobs::Interrupt,
    terminal::{self, notice, print, print_styled},
};

const EXAMPLES: &str = "\
Examples:
  # The four arms over the built-in population: a log, a table, and a page.
  lastbyte ab
  # Each path in one arm drawn at random, as in production: wider intervals.
  lastbyte ab --unpaired --connections 20000 --out unpaired
  # A connection of the log again, by its seed: a table and a picture.
  lastbyte ab --replay 4836410040923515 --plot transfer.html
  # Two congestion controls over networks, or over a folder of traces.
  lastbyte ab --arm cubic --arm 'ten=cubic:initial-window=10p' \\
    --network lte --network home.toml --out two
  lastbyte ab --arm cubic --arm bbr --network traces/ --rtt 40ms --out traces
  # An experiment of your own, with another seed.
  lastbyte ab mine.toml --seed 7 --out mine

The log, conns.ndjson in the directory of --out, has a line per connection with H2O's keys and additional ones (arm, site, class, client.ttlb, link.rate, …). `lastbyte query` reads it. report.html in the same directory compares the arms. Existing files are kept unless --force is given. Warnings of the page are printed on stderr. Exit code 3: the sample ratio of unpaired connections fails.

Experiment files and output: docs/ab.md. Populations: docs/population.md. The page: docs/report.md.";

/// Run an A/B experiment in the simulator, and compare the arms.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Experiment file [default: the built-in four-arms]
    #[arg(value_name = "EXP.toml")]
    file: Option<PathBuf>,
    /// Arm in place of the experiment's: SPEC or NAME=SPEC, the baseline first; repeatable
    #[arg(long, value_name = "SPEC")]
    arm: Vec<String>,
    /// Network, network file, trace or folder in place of the population; repeatable
    #[arg(long, value_name = "NAME|FILE|DIR")]
    network: Vec<String>,
    /// Round-trip time of the traces of --network: 40ms
    #[arg(long, value_name = "SPAN", requires = "network", value_parser = setting(|path| &mut path.rtt))]
    rtt: Option<String>,
    /// Bottleneck queue of the traces of --network [default: one round trip]
    #[arg(long, value_name = "DEPTH", requires = "network", value_parser = setting(|path| &mut path.down.queue))]
    queue: Option<String>,
    /// Vary a setting of the networks: loss=0,1%,2% or rate=5mbit,50mbit; repeatable
    ///
    /// Settings: rate, rtt, queue, aqm, loss, burst-loss, jitter, reorder, policer, up-rate, up-loss. Each network is run with each
    /// combination of values. Without --network, rate and rtt are required.
    #[arg(long, value_name = "KEY=VALUE,…")]
    vary: Vec<String>,
    /// Scale a property of the population: queue=0.5,1,2 or lossy=0,1,3; repeatable
    ///
    /// Keys: queue, lossy, path-rtt, rate, up-rate, poor, cross, ack-batching, policing, sizes (docs/population.md). The population is run with
    /// each combination of factors.
    #[arg(long, value_name = "KEY=FACTOR,…", conflicts_with_all = ["network", "vary"])]
    sweep: Vec<String>,
    /// Object sizes in place of the population's: 300kB,1MB
    #[arg(long, value_name = "BYTES,…", value_delimiter = ',', value_parser = units::bytes)]
    size: Vec<u64>,
    /// Requests per connection, one after the other [default: the experiment's, 1]
    #[arg(long, value_name = "N", value_parser = values::count::<u32>(1..=u64::from(REQUESTS_MAX)))]
    requests: Option<u32>,
    /// Objects that each request asks for at once [default: the experiment's, 1]
    #[arg(long, value_name = "N", value_parser = values::count::<u32>(1..=u64::from(PARALLEL_MAX)))]
    parallel: Option<u32>,
    /// Idle time between requests
    #[arg(long, value_name = "SPAN", value_parser = units::span)]
    pause: Option<Duration>,
    /// Clients upload objects in place of downloading them
    ///
    /// The arms are then congestion controls of the clients. An uplink without a rate of its own has the limits of the downlink.
    #[arg(long)]
    upload: bool,
    /// Neighbour on each path, whose harm is measured: cubic, cbr:2mbit; repeatable
    ///
    /// In place of the population's cross traffic. Each path has one, each as likely as the others; forms as for `sim --cross`.
    #[arg(long, value_name = "TRAFFIC")]
    neighbour: Vec<String>,
    /// How long neighbours are observed [default: by the path, 60s at most]
    #[arg(long, value_name = "SPAN", requires = "neighbour", value_parser = units::span)]
    horizon: Option<Duration>,
    /// Number of connections [default: the experiment's]
    #[arg(long, value_name = "N", value_parser = values::count::<u64>(1..=CONNECTIONS_MAX))]
    connections: Option<u64>,
    /// Random seed [default: the experiment's]
    #[arg(long, value_parser = units::seed)]
    seed: Option<u64>,
    /// Simulate each path in one arm drawn at random, as in production, not in every arm
    #[arg(long)]
    unpaired: bool,
    /// Parallel simulations [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    jobs: Option<NonZeroUsize>,
    /// Directory for conns.ndjson and report.html
    #[arg(long, value_name = "DIR", default_value = "ab")]
    out: PathBuf,
    /// Overwrite the files of an earlier run
    #[arg(long)]
    force: bool,
    /// Compress the log: gzip (conns.ndjson.gz) or zstd (conns.ndjson.zst)
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "none",
        hide_default_value = true
    )]
    log_compress: Packing,
    /// Simulate the connection of this `seed` in the log again, in every arm
    #[arg(long, value_name = "SEED", value_parser = units::seed, conflicts_with_all = ["connections", "log_compress", "unpaired"])]
    replay: Option<u64>,
    /// Draw the transfer of --replay: .html or .svg
    #[arg(long, value_name = "FILE", requires = "replay")]
    plot: Vec<PathBuf>,
    /// Directory for qlog files of --replay
    #[arg(long, value_name = "DIR", requires = "replay")]
    qlog: Option<PathBuf>,
    /// Print the number of connections that detect this change: 5%
    #[arg(long, value_name = "SHARE", value_parser = values::change)]
    power: Option<f64>,
    /// Print JSON (docs/ab.md)
    #[arg(long)]
    json: bool,
    /// Rehearse the plan of this experiment file, as `lastbyte steer --rehearse`
    #[arg(long, value_name = "EXP.toml", requires = "repeat", conflicts_with_all = OTHERS)]
    plan: Option<PathBuf>,
    /// Number of ramps of --plan in each scenario
    #[arg(long, value_name = "N", requires = "plan", value_parser = values::count::<u32>(1..=steer::RAMPS_MAX))]
    repeat: Option<u32>,
}

/// Options that --plan does not take.
const OTHERS: [&str; 24] = [
    "file",
    "arm",
    "network",
    "rtt",
    "queue",
    "vary",
    "sweep",
    "size",
    "requests",
    "parallel",
    "pause",
    "upload",
    "neighbour",
    "horizon",
    "connections",
    "unpaired",
    "out",
    "force",
    "log_compress",
    "replay",
    "plot",
    "qlog",
    "power",
    "json",
];

/// Maximum number of connections: each takes some bytes of memory from the start.
const CONNECTIONS_MAX: u64 = 100_000_000;
/// The page, in the directory of --out.
const PAGE: &str = "report.html";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    if let (Some(plan), Some(repeats)) = (&arguments.plan, arguments.repeat) {
        let seed = arguments.seed.unwrap_or(1);
        return steer::rehearse(plan, repeats, seed, arguments.jobs, registry);
    }
    let experiment = experiment(arguments, registry)?;
    if let [only] = &experiment.arms[..] {
        return Err(Failure::Usage(format!(
            "the experiment has only the arm `{}` (expected two arms or more)",
            only.name
        )));
    }
    if let Some(seed) = arguments.replay {
        check_seed(arguments, &experiment, seed)?;
        let transfers = transfers(&experiment, seed);
        let qlog = arguments.qlog.as_deref();
        let qlog = qlog.map(|folder| (folder, arguments.force));
        return sim::replay(transfers, &arguments.plot, qlog, arguments.json);
    }
    // The parser ignores `requires` beside an option that conflicts with --replay.
    let of_replay = [
        ("--plot", !arguments.plot.is_empty()),
        ("--qlog", arguments.qlog.is_some()),
    ];
    if let Some((option, _)) = of_replay.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::Usage(format!(
            "{option} is of one connection (expected --replay SEED)"
        )));
    }
    let total = arguments.connections.unwrap_or(experiment.connections);
    if total > CONNECTIONS_MAX {
        return Err(Failure::Usage(format!(
            "`connections`: {total} (expected at most {CONNECTIONS_MAX})"
        )));
    }
    if !arguments.unpaired
        && experiment
            .arms
            .iter()
            .any(|arm| arm.share.total_cmp(&experiment.arms[0].share).is_ne())
    {
        notice(
            "the shares of the arms have no effect on paired connections: each path is in every arm (--unpaired draws one arm per path)",
        );
    }
    files::create_folder(&arguments.out)?;
    let log = arguments.out.join(log_name(arguments.log_compress));
    if !arguments.force {
        files::check_absent(&log)?;
        files::check_absent(&arguments.out.join(PAGE))?;
    }
    let interrupt = Interrupt::listen();
    let done = simulate_all(arguments, &experiment, total, &log, &interrupt)?;
    let page = page(arguments, &experiment, done, &log)?;
    if arguments.json {
        let page = page.as_ref().map(|page| page.path.as_str());
        print(summary_json(&experiment, &log, page)?)?;
    } else {
        let mut text = summary(&experiment, &log)?;
        text.push_str(&queries(&experiment, &log));
        let mut texts = vec![(Style::new(), text)];
        if let Some(page) = &page {
            texts.push((Style::new(), "\n".to_owned()));
            texts.extend(page.verdicts.iter().cloned());
        }
        print_styled(&texts)?;
    }
    terminal::wrote(&log);
    if let Some(page) = &page {
        terminal::wrote(page.path.as_ref());
    }
    if interrupt.is_pressed() {
        notice(format!(
            "interrupted: {done} of {total} connections are in `{}`, and above",
            log.display()
        ));
        return Ok(ExitCode::from(130));
    }
    Ok(page.map_or(ExitCode::SUCCESS, |page| page.code))
}

/// The number of connections of an experiment whose seeds `--replay` accepts without a log. Larger logs are read.
const REPLAYED_MAX: u64 = 1_000_000;

/// Refuses a seed that no connection has. Every number is the seed of some path, so a mistyped one would show another transfer.
fn check_seed(arguments: &Arguments, experiment: &Experiment, seed: u64) -> Result<(), Failure> {
    if experiment.has_seed(seed, REPLAYED_MAX) {
        return Ok(());
    }
    let logs = [Packing::None, Packing::Gzip, Packing::Zstd];
    let logs = logs.map(|packing| arguments.out.join(log_name(packing)));
    let log = logs.iter().find(|log| log.exists());
    let expected = match log {
        None => format!("no log `{}` has it", logs[0].display()),
        Some(log) => match summary::seeds(log, seed)? {
            (true, _) => return Ok(()),
            (false, Some(other)) => {
                format!("`{}` has others, such as {other}", log.display())
            }
            (false, None) => format!("`{}` has no seeds", log.display()),
        },
    };
    Err(Failure::Usage(format!(
        "--replay: no connection of the experiment with --seed {} has the seed {seed}, and {expected} (expected the `seed` of a line; --out names the directory of its log)",
        experiment.seed
    )))
}

/// The name of the log in the directory of --out.
fn log_name(packing: Packing) -> String {
    format!("conns.ndjson{}", packing.suffix())
}

/// The connection of this seed, in every arm.
fn transfers(experiment: &Experiment, seed: u64) -> Vec<(Label, Scenario)> {
    let draw = experiment.population.draw(seed);
    let arms = experiment.arms.iter().enumerate();
    arms.map(|(arm, one)| {
        let label = Label {
            arm: one.name.clone(),
            network: format!("{}, {}", draw.class, draw.site),
            size_bytes: draw.size_bytes,
            seed,
            handshake: draw.transport.handshake,
        };
        let plan = Plan {
            arm,
            seed,
            draw: draw.clone(),
        };
        (label, experiment.scenario(&plan))
    })
    .collect()
}

fn experiment(arguments: &Arguments, registry: &Registry) -> Result<Experiment, Failure> {
    let mut experiment = experiment_file::read(arguments.file.as_deref(), registry)?;
    if !arguments.arm.is_empty() {
        experiment.arms = arms(&arguments.arm, registry).map_err(Failure::Usage)?;
        experiment.baseline = 0;
        let names: Vec<&str> = experiment
            .arms
            .iter()
            .map(|arm| arm.name.as_str())
            .collect();
        experiment.name = names.join(" / ");
        experiment.description = String::new();
    }
    if !arguments.network.is_empty() || !arguments.vary.is_empty() {
        let networks = networks(arguments)?.0;
        experiment.population = experiment.population.with_networks(networks);
    }
    if !arguments.size.is_empty() {
        let population = experiment.population.with_sizes(&arguments.size);
        experiment.population =
            population.map_err(|error| Failure::Usage(format!("--size: {}", error.problem())))?;
    }
    if !arguments.neighbour.is_empty() {
        let named = |error: SettingError| Failure::Usage(format!("--{error}"));
        let neighbours = experiment::neighbours(&arguments.neighbour, registry);
        let neighbours = neighbours
            .map_err(|error| Failure::Usage(format!("--neighbour: {}", error.problem())))?;
        let horizon = arguments.horizon.map(experiment::horizon);
        let horizon = horizon.transpose().map_err(named)?;
        experiment.population = experiment.population.with_neighbours(neighbours, horizon);
    }
    if let Some(seed) = arguments.seed {
        experiment.seed = seed;
    }
    let workload = Workload {
        requests: arguments.requests.unwrap_or(experiment.workload.requests),
        parallel: arguments.parallel.unwrap_or(experiment.workload.parallel),
        pause: arguments.pause.unwrap_or(experiment.workload.pause),
        direction: if arguments.upload {
            Direction::Up
        } else {
            experiment.workload.direction
        },
    };
    let mut experiment = experiment
        .with_workload(workload)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    // Last: each variant is the population with all that was changed above.
    let (sweeps, _) = sweeps(arguments, &experiment)?;
    if !sweeps.is_empty() {
        let swept = experiment.population.with_variants(&sweeps);
        experiment.population =
            swept.map_err(|error| Failure::Usage(format!("--sweep: {error}")))?;
    }
    Ok(experiment)
}

type Networks = vary::Named<lastbyte_scenario::Path>;

/// The networks of --network and --vary, and the chart of the latter.
fn networks(arguments: &Arguments) -> Result<(Networks, Option<Sweep>), Failure> {
    let (rtt, queue) = (arguments.rtt.as_deref(), arguments.queue.as_deref());
    let axes =
        vary::axes(&arguments.vary).map_err(|error| Failure::Usage(format!("--vary: {error}")))?;
    let bases = path::network_texts(&arguments.network, rtt, queue)?;
    let (texts, sweep) =
        vary::combine(bases, &axes).map_err(|error| Failure::Usage(format!("--vary: {error}")))?;
    Ok((path::paths_of(texts)?, sweep))
}

/// The variants of --sweep, and their chart.
fn sweeps(
    arguments: &Arguments,
    experiment: &Experiment,
) -> Result<(vary::Named<lastbyte_scenario::Sweep>, Option<Sweep>), Failure> {
    if arguments.sweep.is_empty() {
        return Ok((Vec::new(), None));
    }
    let axes = vary::factors(&arguments.sweep);
    axes.and_then(|axes| vary::combine_factors(experiment.population.name(), &axes))
        .map_err(|error| Failure::Usage(format!("--sweep: {error}")))
}

/// The arms of --arm.
fn arms(texts: &[String], registry: &Registry) -> Result<Vec<Arm>, String> {
    let arms = Arm::parse_all(texts, registry).map_err(|error| format!("--arm: {error}"))?;
    if arms.len() < 2 {
        return Err(format!(
            "--arm: only `{}` (expected two arms or more, the baseline first)",
            texts.join("`, `")
        ));
    }
    Ok(arms)
}

// ---- the page -------------------------------------------------------------------------------------------------------

/// A page that was written.
struct Page {
    path: String,
    /// The verdicts of the report, in styles.
    verdicts: Vec<(Style, String)>,
    /// The exit code that follows from it.
    code: ExitCode,
}

/// Writes the page, and its warnings to stderr. `None` with a message if there is nothing to compare.
fn page(
    arguments: &Arguments,
    experiment: &Experiment,
    done: u64,
    log: &Path,
) -> Result<Option<Page>, Failure> {
    let arms = &experiment.arms;
    let shares = if arguments.unpaired {
        arms.iter()
            .map(|arm| (arm.name.clone(), arm.share))
            .collect()
    } else {
        Vec::new()
    };
    let settings = Settings {
        baseline: arms.get(experiment.baseline).map(|arm| arm.name.clone()),
        shares: Some(shares),
        may_lack_arms: true,
        power: arguments.power,
        sweep: sweeps(arguments, experiment)?.1.or(networks(arguments)?.1),
        replay: Some(format!(
            "lastbyte ab{} --seed {}",
            inputs(arguments),
            experiment.seed
        )),
        threads: report::threads(arguments.jobs),
        title: Some(title(experiment)),
        commands: again(arguments, experiment, done, log),
        facts: page_facts(arguments, experiment, done),
        ..Settings::default()
    };
    match report::compare(&[log.to_owned()], settings) {
        Ok(comparison) => {
            let page = arguments.out.join(PAGE);
            files::write(&page, comparison.html().as_bytes())?;
            let path = page.display().to_string();
            report::warn(&comparison);
            Ok(Some(Page {
                verdicts: report::verdicts(&comparison),
                code: report::exit_code(&comparison),
                path,
            }))
        }
        Err(Failure::Run(why) | Failure::Usage(why)) => {
            terminal::error(format!("no report: {why}"));
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

fn title(experiment: &Experiment) -> String {
    if experiment.description.is_empty() {
        return experiment.name.clone();
    }
    format!("{}: {}", experiment.name, experiment.description)
}

/// The options that define the simulation.
fn inputs(arguments: &Arguments) -> String {
    let file = arguments.file.as_ref();
    let file = file.map_or_else(String::new, |file| {
        format!(" {}", report::shell(file.as_os_str()))
    });
    let mut inputs = file;
    let horizon = arguments.horizon.map(units::show_span);
    let sizes: Vec<String> = arguments.size.iter().map(u64::to_string).collect();
    let sizes = (!sizes.is_empty()).then(|| sizes.join(","));
    let [requests, parallel] =
        [arguments.requests, arguments.parallel].map(|number| number.map(|one| one.to_string()));
    let pause = arguments.pause.map(units::show_span);
    let options = [
        ("arm", arguments.arm.as_slice()),
        ("network", &arguments.network),
        ("vary", &arguments.vary),
        ("sweep", &arguments.sweep),
        ("rtt", arguments.rtt.as_slice()),
        ("queue", arguments.queue.as_slice()),
        ("size", sizes.as_slice()),
        ("requests", requests.as_slice()),
        ("parallel", parallel.as_slice()),
        ("pause", pause.as_slice()),
        ("neighbour", &arguments.neighbour),
        ("horizon", horizon.as_slice()),
    ];
    for (name, values) in options {
        for value in values {
            // Writing to a `String` cannot fail.
            let _ = write!(inputs, " --{name} {}", report::shell(OsStr::new(value)));
        }
    }
    if arguments.upload {
        inputs.push_str(" --upload");
    }
    inputs
}

/// The commands that reproduce the log and page.
fn again(arguments: &Arguments, experiment: &Experiment, done: u64, log: &Path) -> Vec<String> {
    let unpaired = if arguments.unpaired {
        " --unpaired"
    } else {
        ""
    };
    let packing = match arguments.log_compress {
        Packing::None => "",
        Packing::Gzip => " --log-compress gzip",
        Packing::Zstd => " --log-compress zstd",
    };
    let command = format!(
        "lastbyte ab{} --connections {done} --seed {}{unpaired}{packing} --out {}",
        inputs(arguments),
        experiment.seed,
        report::shell(arguments.out.as_os_str())
    );
    let baseline = experiment.arms.get(experiment.baseline);
    let baseline = baseline.map_or("", |arm| arm.name.as_str());
    let baseline = report::shell(OsStr::new(baseline));
    let page = format!(
        "lastbyte report {} --baseline {baseline}",
        report::shell(log.as_os_str())
    );
    vec![command, page]
}

fn page_facts(arguments: &Arguments, experiment: &Experiment, done: u64) -> Vec<(String, String)> {
    let file = arguments.file.as_ref();
    let file = file.map_or_else(|| "built in".to_owned(), |file| file.display().to_string());
    let mut facts = vec![
        ("version", report::version()),
        ("experiment", format!("{} ({file})", experiment.name)),
        (
            "where",
            if arguments.network.is_empty() && arguments.vary.is_empty() {
                let mut place = "simulated, on modelled paths: docs/population.md".to_owned();
                if !arguments.sweep.is_empty() {
                    let _ = write!(place, "; scaled by {}", arguments.sweep.join(", "));
                }
                place
            } else {
                let named = arguments.network.iter().chain(&arguments.vary);
                let named: Vec<&str> = named.map(String::as_str).collect();
                format!("simulated, on networks: {}", named.join(", "))
            },
        ),
        ("connections", done.to_string()),
        ("seed", experiment.seed.to_string()),
        (
            "given up after",
            format!("{} s", experiment.time_limit.as_secs_f64()),
        ),
    ];
    if let Some(workload) = experiment.workload.describe() {
        facts.push(("per connection", workload));
    }
    let arms: Vec<(String, String)> = experiment
        .arms
        .iter()
        .map(|arm| (format!("arm {}", arm.name), arm.spec.to_string()))
        .collect();
    facts.extend(
        arms.iter()
            .map(|(name, spec)| (name.as_str(), spec.clone())),
    );
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
