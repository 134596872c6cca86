//! `lastbyte replay`: predicts what an algorithm that never ran would have done to the connections of a log.

mod answer;
pub(crate) mod bank;
pub(crate) mod log;
mod population;
mod state;

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use lastbyte_congestion::Registry;
use lastbyte_record::json::Object;
use lastbyte_replay::{CheckKind, Effort, LINES_MIN, LogLine, Prediction};
use lastbyte_report::comparison::{BASELINES, PREDICTIONS};
use lastbyte_scenario::{Arm, experiment::Experiment};

use self::{
    answer::{Answer, Shown},
    bank::{BankArguments, Store},
    log::Log,
};
use crate::{
    commands::{report, sealed, values},
    failure::Failure,
    files,
    jobs::{Interrupt, run_all},
    terminal::{notice, print, save},
};

const EXAMPLES: &str = "\
Examples:
  # What BBR would have done to last week's connections.
  lastbyte replay conns.ndjson --arm bbr
  # Two new arms; the log's arm `control` ran this congestion control.
  lastbyte replay conns.ndjson --arm rapid-start --arm jumpstart \\
    --spec control=slow-start
  # A test: an arm that is the baseline under another name changes nothing.
  lastbyte replay ab/conns.ndjson --baseline slow-start --arm again=slow-start
  # The state of a part of a log, merged elsewhere with those of others.
  lastbyte replay --partial conns.ndjson | lastbyte replay --merge - --arm bbr

Lines of the baseline arm are matched with simulated paths, whose outcome under the new arm is known. The answer is for these connections as logged: their sizes, paths and hours, with no change of demand. Before it, what the log has is predicted: each arm from the baseline, and the times of the baseline without using them. If that fails, or the lines resemble no simulated path, there is no prediction; the reason is printed, and the exit code is 3.

Simulated paths are kept in the directory of --bank and used again; Ctrl-C keeps those that are complete. The first run simulates them: about 20 s of CPU time for each arm, on all cores.

Method and limits: docs/replay.md.";

/// Predict the connections of a log under another congestion control.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Connection logs of `serve --log`, `ab` or H2O, also compressed
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// New arm: SPEC or NAME=SPEC; repeatable
    #[arg(long, value_name = "SPEC", required_unless_present = "partial")]
    arm: Vec<String>,
    /// Congestion control of an arm of the log whose name is not a spec: NAME=SPEC; repeatable
    #[arg(long, value_name = "NAME=SPEC")]
    spec: Vec<String>,
    /// Arm whose lines are predicted [default: baseline, slow-start, or the largest one]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,
    /// Lines of an arm that are matched, drawn at random
    #[arg(long, value_name = "N", default_value = "4000", value_parser = values::count::<u32>(100..=1_000_000))]
    lines: u32,
    /// Page
    #[arg(short, long, value_name = "FILE.html", default_value = "replay.html")]
    out: PathBuf,
    /// Write a synthetic log of the predicted connections
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the simulated paths, with the weights of the log, as a population file
    #[arg(long, value_name = "FILE")]
    population: Option<PathBuf>,
    /// Write what a prediction needs of the logs, for --merge, to stdout instead of a page
    #[arg(long, conflicts_with_all = ["merge", "arm", "spec", "baseline", "bank", "paths", "out", "log", "population", "json"])]
    partial: bool,
    /// Read states of --partial, in order, in place of logs
    #[arg(long)]
    merge: bool,
    #[command(flatten)]
    bank: BankArguments,
    /// Print JSON (docs/replay.md)
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The files beside the page.
    fn data_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.log.iter().chain(&self.population)
    }

    /// Returns an error if a file cannot be written, or would replace one that is no page.
    fn check_files(&self) -> Result<(), Failure> {
        files::check_is_page(&self.out)?;
        files::check_page_name("--out", &self.out, "")?;
        files::check_folder_of(&self.out)?;
        let mut names = BTreeSet::new();
        for file in self.data_files().chain([&self.out]) {
            if !names.insert(std::path::absolute(file).unwrap_or_else(|_| file.clone())) {
                return Err(Failure::Usage(format!(
                    "`{}` is the name of two files to write (expected a name for each of --out, --log and --population)",
                    file.display()
                )));
            }
        }
        self.data_files().try_for_each(|file| {
            files::check_new(file)?;
            files::check_folder_of(file)
        })
    }
}

/// The exit code if there is no prediction.
pub(crate) const NO_ANSWER: u8 = 3;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let sampling = state::Sampling {
        most: arguments.lines as usize,
        seed: arguments.bank.seed,
    };
    if arguments.partial {
        return partial(arguments, sampling);
    }
    arguments.check_files()?;
    let new = Arm::parse_all(&arguments.arm, registry)
        .map_err(|error| Failure::Usage(format!("--arm: {error}")))?;
    let specs = Arm::parse_all(&arguments.spec, registry)
        .map_err(|error| Failure::Usage(format!("--spec: {error}")))?;
    let part = if arguments.merge {
        state::merge(&arguments.logs, sampling)?
    } else {
        read(arguments, sampling)?
    };
    let log = part.finish()?;
    let logged = logged_arms(&log, &specs, registry)?;
    if let Some(both) = new.iter().find(|arm| log.usable.contains_key(&arm.name)) {
        return Err(Failure::Usage(format!(
            "--arm: the log has an arm `{0}` (expected another name: `again={1}`)",
            both.name, both.spec
        )));
    }
    let baseline = baseline(arguments, &log)?;
    let lines = log.usable.get(&baseline).copied().unwrap_or(0);
    if lines < LINES_MIN as u64 {
        // Before the bank is simulated, which takes minutes.
        return Err(Failure::Run(format!(
            "the arm `{baseline}` has {lines} usable lines (expected {LINES_MIN} or more)"
        )));
    }
    let interrupt = Interrupt::listen();
    let store = Store::new(&arguments.bank, registry, &interrupt)?;
    let arms: Vec<Arm> = logged.iter().chain(&new).cloned().collect();
    let Some(bank) = arguments.bank.load(&store, &arms)? else {
        return Ok(ExitCode::from(130));
    };
    let tasks = tasks(&baseline, &logged, &new);
    let (effort, seed) = (Effort::default(), arguments.bank.seed);
    let results = run_all(&tasks, arguments.bank.jobs, &interrupt, |task| match task {
        Task::Check(kind) => Done::Check(
            lastbyte_replay::check(&bank, &log.lines, kind, effort, seed)
                .map_err(|no| no.to_string()),
        ),
        Task::Predict(to) => Done::Predict(
            lastbyte_replay::predict(&bank, &log.lines, &baseline, to, effort, seed)
                .map_err(|no| no.to_string()),
        ),
    });
    if results.len() < tasks.len() {
        notice("interrupted: no page was written");
        return Ok(ExitCode::from(130));
    }
    let mut answer = Answer::new(&log, &baseline);
    for result in results {
        match result {
            Done::Check(check) => answer.add_check(check),
            Done::Predict(prediction) => answer.add_prediction(prediction),
        }
    }
    let shown = Shown {
        title: log.names.join(", "),
        command: report::again(),
        facts: facts(arguments, &logged, &new, &bank),
    };
    save(&arguments.out, answer.page(&shown).html().as_bytes())?;
    let is_answered = answer.reasons.is_empty();
    if let Some(path) = arguments.log.as_ref().filter(|_| is_answered) {
        write_log(path, &log, &baseline, &answer.predictions)?;
    }
    if let Some(path) = arguments.population.as_ref().filter(|_| is_answered)
        && let Some(first) = answer.predictions.first()
    {
        let text = population::text(&bank, &first.weights, |seed| store.draw(seed), registry)?;
        save(path, text.as_bytes())?;
    }
    for file in arguments.data_files().filter(|_| !is_answered) {
        let file = file.display();
        notice(format!("`{file}` was not written: there is no prediction"));
    }
    if arguments.json {
        print(answer.json(&shown))?;
    } else {
        print(answer.text())?;
    }
    Ok(if is_answered {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO_ANSWER)
    })
}

fn read(arguments: &Arguments, sampling: state::Sampling) -> Result<log::Part, Failure> {
    let threads = report::threads(arguments.bank.jobs);
    log::read(&arguments.logs, sampling.most, threads, sampling.seed)
}

/// Writes the state of a part of the log to standard output.
fn partial(arguments: &Arguments, sampling: state::Sampling) -> Result<ExitCode, Failure> {
    sealed::write(|| Ok(state::text(&read(arguments, sampling)?, sampling)))?;
    Ok(ExitCode::SUCCESS)
}

enum Task {
    Check(CheckKind),
    Predict(String),
}

/// What the log has, to be predicted as a check, then the new arms.
fn tasks(baseline: &str, logged: &[Arm], new: &[Arm]) -> Vec<Task> {
    let mut tasks = vec![Task::Check(CheckKind::Own {
        arm: baseline.to_owned(),
    })];
    for other in logged.iter().filter(|arm| arm.name != baseline) {
        let (from, to) = (baseline.to_owned(), other.name.clone());
        let reverse = CheckKind::Arm {
            from: to.clone(),
            to: from.clone(),
        };
        tasks.extend([
            Task::Check(CheckKind::Arm { from, to }),
            Task::Check(reverse),
        ]);
    }
    tasks.extend(new.iter().map(|arm| Task::Predict(arm.name.clone())));
    tasks
}

enum Done {
    Check(Result<lastbyte_replay::Check, String>),
    Predict(Result<Prediction, String>),
}

/// The arms of the log with their specs: of --spec, of an arm of the built-in experiment, or those that are named by their specs.
fn logged_arms(log: &Log, specs: &[Arm], registry: &Registry) -> Result<Vec<Arm>, Failure> {
    if let Some(unknown) = specs.iter().find(|arm| !log.usable.contains_key(&arm.name)) {
        let names: Vec<&str> = log.usable.keys().map(String::as_str).collect();
        return Err(Failure::Usage(format!(
            "--spec: the log has no arm `{}` (expected {})",
            unknown.name,
            names.join(", ")
        )));
    }
    let built_in = Experiment::four_arms();
    let built_in = if log.experiment.as_ref() == Some(&built_in.name) {
        built_in.arms
    } else {
        Vec::new()
    };
    let arms = log.usable.keys().map(|name| {
        let known = specs.iter().chain(&built_in).find(|arm| arm.name == *name);
        let parsed = || Arm::parse(name, registry).ok().filter(|arm| arm.name == *name);
        known.cloned().or_else(parsed).ok_or_else(|| {
            Failure::Usage(format!(
                "the congestion control of the log's arm `{name}` is unknown (expected --spec '{name}=SPEC')"
            ))
        })
    });
    arms.collect()
}

fn baseline(arguments: &Arguments, log: &Log) -> Result<String, Failure> {
    match &arguments.baseline {
        None => {
            let mut named = BASELINES.into_iter();
            let named = named.find(|name| log.usable.contains_key(*name));
            let most = log
                .usable
                .iter()
                .max_by_key(|(name, count)| (**count, core::cmp::Reverse(*name)));
            let most = most.map(|(name, _)| name.clone()).unwrap_or_default();
            Ok(named.map_or(most, str::to_owned))
        }
        Some(name) if log.usable.contains_key(name) => Ok(name.clone()),
        Some(name) => {
            let names: Vec<&str> = log.usable.keys().map(String::as_str).collect();
            Err(Failure::Usage(format!(
                "--baseline: the log has no arm `{name}` (expected {})",
                names.join(", ")
            )))
        }
    }
}

fn facts(
    arguments: &Arguments,
    logged: &[Arm],
    new: &[Arm],
    bank: &lastbyte_replay::Bank,
) -> Vec<(String, String)> {
    let mut facts = vec![
        ("version".to_owned(), report::version()),
        ("seed".to_owned(), arguments.bank.seed.to_string()),
        (
            "simulated paths".to_owned(),
            arguments.bank.paths.to_string(),
        ),
    ];
    for (kind, arms) in [("arm of the log", logged), ("new arm", new)] {
        for arm in arms {
            let incomplete = bank.incomplete(&arm.name);
            facts.push((
                format!("{kind}: {}", arm.name),
                format!("{}; {incomplete} simulated transfers incomplete", arm.spec),
            ));
        }
    }
    facts
}

/// Writes the lines of the baseline, and a draw of each under the new arms.
fn write_log(
    path: &Path,
    log: &Log,
    baseline: &str,
    predictions: &[Prediction],
) -> Result<(), Failure> {
    use lastbyte_replay::Column;
    let lines: Vec<&LogLine> = log
        .lines
        .iter()
        .filter(|line| line.arm == baseline)
        .collect();
    let mut out = Vec::new();
    let mut write = |line: &LogLine, arm: &str, number: usize, ttlb: f64, lost: f64| {
        let mut text = String::new();
        {
            let mut object = Object::new(&mut text);
            let whole = |column| line.line.get(column).unwrap_or(0.0).max(0.0) as u64;
            object
                .text("module", "lastbyte")
                .text("type", "prediction")
                .integer("conn_id", number as u64)
                .integer("content_length", whole(Column::Size))
                .number("ttlb", ttlb, 3)
                .integer("num-packets.sent", whole(Column::Sent))
                .integer(
                    "num-packets.lost",
                    (whole(Column::Sent) as f64 * lost).round() as u64,
                )
                .boolean("complete", true)
                .text("experiment", PREDICTIONS)
                .text("arm", arm);
            if let Some(site) = &line.site {
                object.text("site", site);
            }
            object.integer("seed", number as u64);
        }
        text.push('\n');
        // Writing to memory cannot fail.
        let _ = out.write_all(text.as_bytes());
    };
    for (number, line) in lines.iter().enumerate() {
        let ttlb = line.line.get(Column::Ttlb).unwrap_or(0.0);
        write(
            line,
            baseline,
            number,
            ttlb,
            line.line.loss().unwrap_or(0.0),
        );
    }
    for prediction in predictions {
        for (number, ttlb, loss) in &prediction.draws {
            write(lines[*number], &prediction.to, *number, *ttlb, *loss);
        }
    }
    save(path, &out)
}
