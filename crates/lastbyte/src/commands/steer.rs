//! `lastbyte steer`: grows the share of an arm by a plan, from the connection logs. The crate `lastbyte-steer` decides.

mod log;
mod rehearse;
mod store;

use core::num::NonZeroUsize;
use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use lastbyte_congestion::Registry;
use lastbyte_driver::Clock;
use lastbyte_scenario::{Experiment, RampPlan};
use lastbyte_steer::{
    Subject,
    ramp::{Action, Change, Look, Ramp},
    tally::Tally,
};
use lastbyte_units::{self as units, SipHash};

use self::store::Store;
use super::{experiment_file, values};
use crate::{
    failure::Failure,
    files,
    terminal::{notice, print},
};

const EXAMPLES: &str = "\
Examples:
  # What the plan would do, over simulated connections.
  lastbyte steer --plan ramp.toml --rehearse 100
  # Start: write steer/experiment.toml for `serve --experiment`.
  lastbyte steer --plan ramp.toml --state steer
  # A look, at any time: decide by all logs since the start.
  lastbyte steer conns*.ndjson* --plan ramp.toml --state steer
  # Compute each decision so far again from the logs.
  lastbyte steer conns*.ndjson* --plan ramp.toml --state steer --verify

The directory of --state has decisions.ndjson, a line per look, and experiment.toml, which servers read again when they receive SIGHUP. If it has a file `stop`, the arm gets no more connections. One process at a time can use it. Lines of the last minute wait for the next look.

Plans, rules and statistics: docs/plan.md.";

/// Grow the share of an arm by a plan, from the connection logs: ramp, stop, win.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Connection logs since the start, of all servers, also rotated and compressed
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Experiment file with a table `[plan]`
    #[arg(long, value_name = "EXP.toml", required = true)]
    plan: PathBuf,
    /// Directory of the decisions, and of the experiment file for the servers
    #[arg(long, value_name = "DIR", required_unless_present = "rehearse")]
    state: Option<PathBuf>,
    /// Compute all decisions again from the logs, and print where they differ
    #[arg(long, requires = "state")]
    verify: bool,
    /// Run the plan N times over simulated connections, in each of several scenarios
    #[arg(long, value_name = "N", value_parser = values::count::<u32>(1..=100_000), conflicts_with_all = ["state", "verify", "logs"])]
    rehearse: Option<u32>,
    /// Random seed of --rehearse
    #[arg(long, default_value = "1", value_parser = units::seed)]
    seed: u64,
    /// Threads [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    jobs: Option<NonZeroUsize>,
}

/// Servers write lines some time after the time on them. Lines of this time before now wait for the next look, so that the same
/// lines can be counted again.
const SETTLED_MS: u64 = 60_000;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let experiment = experiment_file::read(Some(&arguments.plan), registry)?;
    let file = arguments.plan.display();
    let plan = experiment.plan.clone().ok_or_else(|| {
        Failure::Usage(format!(
            "`{file}`: no table `[plan]` (expected one: docs/plan.md)"
        ))
    })?;
    let subject = subject(&experiment, &plan);
    if let Some(repeats) = arguments.rehearse {
        return rehearse::run(arguments, &experiment, subject, repeats);
    }
    let Some(folder) = &arguments.state else {
        return Err(Failure::Usage("--state is required".to_owned()));
    };
    let text = files::read_text(&arguments.plan).map_err(Failure::Usage)?;
    let hash = SipHash::from_bytes(&[0; 16]).hash_2_4(text.as_bytes());
    let hash = format!("{hash:016x}");
    let mut store = Store::open(folder)?;
    if let Some(first) = store.ramp().looks().first()
        && first.plan != hash
    {
        return Err(Failure::Usage(format!(
            "`{file}` changed since the ramp started: {hash} (expected {}; another plan needs another --state)",
            first.plan
        )));
    }
    if arguments.verify {
        return verify(arguments, &subject, store.ramp());
    }
    if store.ramp().looks().is_empty() && store.is_stopped() {
        return Err(Failure::Usage(format!(
            "`{}` has a file `stop` (expected none to start a ramp)",
            folder.display()
        )));
    }
    if store.ramp().looks().is_empty() {
        store.push(Ramp::start(&subject, &hash))?;
    } else if store.is_stopped() {
        if let Some(look) = store.ramp().stop() {
            store.push(look)?;
        }
    } else if !store.ramp().is_over() && !arguments.logs.is_empty() {
        let look = look(arguments, &subject, store.ramp())?;
        store.push(look)?;
    }
    // Also after a look that holds: an earlier run may have ended before it wrote the file.
    store.publish(&experiment)?;
    let last = store.ramp().looks().last();
    print(last.map_or_else(String::new, |look| shown(look, &subject)))?;
    Ok(ExitCode::SUCCESS)
}

fn subject<'a>(experiment: &'a Experiment, plan: &'a RampPlan) -> Subject<'a> {
    let name = |index: usize| {
        experiment
            .arms
            .get(index)
            .map_or("", |arm| arm.name.as_str())
    };
    Subject {
        name: &experiment.name,
        // A plan has two arms.
        arms: [
            name(experiment.baseline),
            name(1 - experiment.baseline.min(1)),
        ],
        plan,
    }
}

/// Looks at the logs.
fn look(arguments: &Arguments, subject: &Subject<'_>, ramp: &Ramp) -> Result<Look, Failure> {
    let now = u64::try_from(Clock::since_epoch().as_millis()).unwrap_or(u64::MAX);
    let settled = now.saturating_sub(SETTLED_MS);
    let last = ramp.looks().last();
    let (until, before) = last.map_or((0, 0), |last| {
        (last.until, last.connections.values().flatten().sum::<u64>())
    });
    if settled < until {
        return Err(Failure::Run(format!(
            "the clock is at {now} ms since 1970, and look {} had lines of {until} ms (expected a later time; the shares stay)",
            ramp.looks().len() - 1
        )));
    }
    let tally = log::tally(arguments, subject, &ramp.epochs(), &[settled])?;
    let tally = tally.into_iter().next().unwrap_or_default();
    let count: u64 = tally.connections(None).iter().sum();
    if count < before {
        return Err(Failure::Run(format!(
            "the logs have {count} connections of the experiment, and look {} had {before} (expected all logs since the start; the shares stay)",
            ramp.looks().len() - 1
        )));
    }
    ramp.look(subject, &tally)
        .ok_or_else(|| Failure::Run("the ramp is over".to_owned()))
}

/// Computes the decisions again.
fn verify(arguments: &Arguments, subject: &Subject<'_>, ramp: &Ramp) -> Result<ExitCode, Failure> {
    let looks = ramp.looks();
    let times: Vec<u64> = looks.iter().map(|look| look.until).collect();
    let tallies = log::tally(arguments, subject, &ramp.epochs(), &times)?;
    let (mut before, mut so_far) = (Ramp::default(), Tally::default());
    let mut differences = Vec::new();
    for (number, (look, part)) in looks.iter().zip(&tallies).enumerate() {
        so_far.merge(part);
        let again = match look.action {
            Action::Start => Some(Ramp::start(subject, &look.plan)),
            Action::Stopped => before.stop(),
            _ => before.look(subject, &so_far),
        };
        before.push(look.clone());
        let Some(again) = again else {
            differences.push(format!("look {number}: the ramp was over"));
            continue;
        };
        for (what, recorded, computed) in compared(look, &again) {
            differences.push(format!(
                "look {number}: {what}: {computed} from the logs, {recorded} recorded"
            ));
        }
    }
    if differences.is_empty() {
        print(format!("{} looks: no differences\n", looks.len()))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(differences.join("\n") + "\n")?;
    Err(Failure::Run(format!(
        "{} differences in {} looks",
        differences.len(),
        looks.len()
    )))
}

/// What differs between a recorded and a computed look, beyond rounding.
fn compared(recorded: &Look, computed: &Look) -> Vec<(&'static str, String, String)> {
    let numbers = |change: Option<Change>| {
        let one =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.9}"));
        change.map_or("–".to_owned(), |of| {
            format!(
                "{} ({} to {})",
                one(Some(of.value)),
                one(of.low),
                one(of.high)
            )
        })
    };
    let text = |look: &Look| {
        [
            ("action", format!("{:?}", look.action)),
            ("rule", look.rule.clone()),
            (
                "shares",
                format!("epoch {}, stage {}, {}", look.epoch, look.stage, look.share),
            ),
            ("connections", format!("{:?}", look.connections)),
            ("TTLB", numbers(look.ttlb)),
            ("loss", numbers(look.loss)),
            ("incomplete", numbers(look.incomplete)),
        ]
    };
    let both = text(recorded).into_iter().zip(text(computed));
    let differing = both.filter(|((_, recorded), (_, computed))| recorded != computed);
    differing
        .map(|((what, recorded), (_, computed))| (what, recorded, computed))
        .collect()
}

/// A look, for people.
fn shown(look: &Look, subject: &Subject<'_>) -> String {
    let action = serde_json::to_value(look.action).ok();
    let action = action
        .as_ref()
        .and_then(|action| action.as_str())
        .unwrap_or_default();
    let plan = subject.plan;
    let mut lines = vec![format!("look {}: {action}: {}", look.look, look.rule)];
    lines.push(format!(
        "{}: {} of new connections, stage {} of {}, epoch {}",
        subject.arms[1],
        units::show_share(look.share),
        look.stage + 1,
        plan.stages.len(),
        look.epoch
    ));
    let counts = look.connections.values();
    let counts = counts.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    if counts != [0, 0] {
        lines.push(format!(
            "connections: {} of {}, {} of {}",
            counts[0], subject.arms[0], counts[1], subject.arms[1]
        ));
    }
    for (what, change) in [
        ("TTLB", look.ttlb),
        ("loss", look.loss),
        ("incomplete", look.incomplete),
    ] {
        if let Some(change) = change {
            let percent = |value: f64| format!("{:+.2}", value * 100.0);
            let bound = |value: Option<f64>| value.map_or("–".to_owned(), percent);
            let unit = if what == "TTLB" { "%" } else { "points" };
            lines.push(format!(
                "{what}: {} {unit} ({} to {})",
                percent(change.value),
                bound(change.low),
                bound(change.high)
            ));
        }
    }
    let ignored = look.ignored;
    let others = [
        (ignored.other_experiment, "of other experiments"),
        (ignored.other_epoch, "of unknown epochs"),
        (ignored.other_arm, "of other arms"),
        (ignored.without_time, "too new, or without a time"),
        (ignored.short, "of short responses"),
    ];
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if !others.is_empty() {
        notice(format!("lines that do not count: {}", others.join(", ")));
    }
    lines.join("\n") + "\n"
}
