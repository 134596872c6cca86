//! `lastbyte ab`: a whole experiment, in the embedded simulator.

mod connections;
mod summary;

use core::num::NonZeroUsize;
use std::{
    ffi::OsStr,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use lastbyte_congestion::Registry;
use lastbyte_record::packed::Packing;
use lastbyte_report::comparison::Settings;
use lastbyte_sim::{Protocol, experiment::Experiment, units};

use self::{
    connections::simulate_all,
    summary::{queries, summary, summary_json},
};
use crate::{
    commands::{report, values},
    failure::Failure,
    files,
    jobs::Interrupt,
};

const EXAMPLES: &str = "\
Examples:
  # The four arms over the built-in population: a log, a table, and a page.
  lastbyte ab
  # Each path in every arm shows smaller differences with fewer connections.
  lastbyte ab --paired --connections 4000 --out paired
  # An experiment of your own, with another seed.
  lastbyte ab mine.toml --seed 7 --out mine

experiments/four-arms.toml shows the form of an experiment, docs/population.md that of a population.

The log, conns.ndjson in the folder of --out, has a line for each connection, with H2O's keys and some of our own (arm, site, class, client.ttlb, link.rate, …); `lastbyte query` reads it. report.html beside it compares the arms: docs/report.md. The files of an earlier run are kept unless --force is given.";

/// Draws connections from a population of paths into arms at random, simulates them, and compares the arms.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The experiment; without one, the four arms in which Rapid Start was measured
    #[arg(value_name = "EXP.toml")]
    file: Option<PathBuf>,
    /// Number of connections. Default: the experiment's
    #[arg(long, value_name = "N", value_parser = values::count::<u64>(1..=CONNECTIONS_MAX))]
    connections: Option<u64>,
    /// Random seed. Default: the experiment's
    #[arg(long, value_parser = units::seed)]
    seed: Option<u64>,
    /// Simulate each path in every arm, in place of an arm drawn at random
    #[arg(long)]
    paired: bool,
    /// What client and server speak: h3, or raw for a request and a response without HTTP. Default: what the experiment says
    #[arg(long, value_name = "NAME")]
    protocol: Option<Protocol>,
    /// Simulations at a time. Default: one a core
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    jobs: Option<NonZeroUsize>,
    /// The folder for conns.ndjson and report.html
    #[arg(long, value_name = "DIR", default_value = "ab")]
    out: PathBuf,
    /// Replace conns.ndjson and report.html of an earlier run
    #[arg(long)]
    force: bool,
    /// Pack the log as it is written: gzip (conns.ndjson.gz) or zstd (conns.ndjson.zst). `lastbyte query` reads either
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "none",
        hide_default_value = true
    )]
    log_compress: Packing,
    /// JSON in place of a table
    #[arg(long)]
    json: bool,
}

/// Each takes some bytes of memory from the start on.
const CONNECTIONS_MAX: u64 = 100_000_000;
/// The page, in the folder of --out.
const PAGE: &str = "report.html";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let experiment = experiment(arguments, registry)?;
    let total = arguments.connections.unwrap_or(experiment.connections);
    if total > CONNECTIONS_MAX {
        return Err(Failure::Usage(format!(
            "`connections`: {total} (expected at most {CONNECTIONS_MAX})"
        )));
    }
    files::create_folder(&arguments.out)?;
    let log = format!("conns.ndjson{}", arguments.log_compress.suffix());
    let log = arguments.out.join(log);
    if !arguments.force {
        files::check_absent(&log)?;
        files::check_absent(&arguments.out.join(PAGE))?;
    }
    let interrupt = Interrupt::listen();
    let done = simulate_all(arguments, &experiment, total, &log, &interrupt)?;
    let page = page(arguments, &experiment, done, &log)?;
    let text = if arguments.json {
        summary_json(
            &experiment,
            &log,
            page.as_ref().map(|(page, _)| page.as_str()),
        )?
    } else {
        let mut text = summary(&experiment, &log)?;
        text.push_str(&queries(&experiment, &log));
        if let Some((_, verdicts)) = &page {
            text.push('\n');
            text.push_str(verdicts);
        }
        text
    };
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))?;
    if interrupt.is_pressed() {
        say(&format!(
            "interrupted: {done} of {total} connections are in `{}`, and above",
            log.display()
        ));
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "talk goes to stderr")]
fn say(what: &str) {
    eprintln!("{what}");
}

fn experiment(arguments: &Arguments, registry: &Registry) -> Result<Experiment, Failure> {
    let mut experiment = match &arguments.file {
        None => Experiment::four_arms(),
        Some(file) => {
            let text = files::read_text(file).map_err(Failure::Usage)?;
            let folder = file.parent().unwrap_or(Path::new(""));
            Experiment::parse_with(&text, registry, &mut |name| {
                files::read_text(&folder.join(name))
            })
            .map_err(|error| Failure::Usage(format!("`{}`: {error}", file.display())))?
        }
    };
    if let Some(seed) = arguments.seed {
        experiment.seed = seed;
    }
    if let Some(protocol) = arguments.protocol {
        experiment.protocol = protocol;
    }
    Ok(experiment)
}

// ---- the page -------------------------------------------------------------------------------------------------------

/// Writes the page. Returns where it is, and what it says in short; nothing if there is nothing to compare, which is said.
fn page(
    arguments: &Arguments,
    experiment: &Experiment,
    done: u64,
    log: &Path,
) -> Result<Option<(String, String)>, Failure> {
    let arms = &experiment.arms;
    let shares = if arguments.paired {
        Vec::new()
    } else {
        arms.iter()
            .map(|arm| (arm.name.clone(), arm.share))
            .collect()
    };
    let settings = Settings {
        baseline: arms.get(experiment.baseline).map(|arm| arm.name.clone()),
        shares,
        may_lack_arms: true,
        seed: experiment.seed,
        threads: report::threads(arguments.jobs),
        title: Some(title(experiment)),
        commands: again(arguments, experiment, done, log),
        facts: page_facts(arguments, experiment, done),
        ..Settings::default()
    };
    match report::compare(&[log.to_owned()], settings) {
        Ok(comparison) => {
            let page = report::write(&comparison, &arguments.out.join(PAGE), None)?;
            let verdicts = report::verdicts(&comparison, &page);
            Ok(Some((page, verdicts)))
        }
        Err(Failure::Run(why) | Failure::Usage(why)) => {
            say(&format!("no report: {why}"));
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

/// The commands that give the same log and page.
fn again(arguments: &Arguments, experiment: &Experiment, done: u64, log: &Path) -> Vec<String> {
    let file = arguments.file.as_ref();
    let file = file.map_or_else(String::new, |file| {
        format!(" {}", report::shell(file.as_os_str()))
    });
    let paired = if arguments.paired { " --paired" } else { "" };
    let protocol = arguments.protocol;
    let protocol = protocol.map_or_else(String::new, |one| format!(" --protocol {}", one.name()));
    let packing = match arguments.log_compress {
        Packing::None => "",
        Packing::Gzip => " --log-compress gzip",
        Packing::Zstd => " --log-compress zstd",
    };
    let command = format!(
        "lastbyte ab{file} --connections {done} --seed {}{paired}{protocol}{packing} --out {}",
        experiment.seed,
        report::shell(arguments.out.as_os_str())
    );
    let baseline = experiment.arms.get(experiment.baseline);
    let baseline = baseline.map_or("", |arm| arm.name.as_str());
    let baseline = report::shell(OsStr::new(baseline));
    let page = format!(
        "lastbyte report {} --baseline {baseline} --seed {}",
        report::shell(log.as_os_str()),
        experiment.seed
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
            "simulated, on modelled paths: docs/population.md".to_owned(),
        ),
        ("connections", done.to_string()),
        ("seed", experiment.seed.to_string()),
        ("protocol", experiment.protocol.name().to_owned()),
        (
            "given up after",
            format!("{} s", experiment.time_limit.as_secs_f64()),
        ),
    ];
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
