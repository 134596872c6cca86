//! `lastbyte steer`: grows the share of an arm by a plan, from the connection logs. The crate `lastbyte-steer` decides.

mod chain;
mod log;
mod rehearse;
mod store;

use core::{fmt::Write as _, num::NonZeroUsize};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use lastbyte_congestion::Registry;
use lastbyte_driver::Clock;
use lastbyte_scenario::{Arm, Experiment, RampPlan};
use lastbyte_steer::{
    Subject,
    ramp::{Action, Change, Look, RULES, Ramp},
    tally::Tally,
};
use lastbyte_units::{self as units, SipHash};

pub(super) use self::store::{TORN, decisions, stopped};
use self::{log::State, store::Store};
use super::{experiment_file, report, sealed, values};
use crate::{
    failure::Failure,
    files,
    terminal::{counted, notice, print},
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
  # A look by states of the logs, which --partial made where they are.
  lastbyte steer --merge *.state --plan ramp.toml --state steer

The directory of --state has decisions.ndjson, a line per look, and experiment.toml, which servers read again when they receive SIGHUP. If it has a file `stop`, the arm gets no more connections. One process at a time can use it. Lines of the last minute wait for the next look.

Plans, rules and statistics: docs/plan.md.";

/// Grow the share of an arm by a plan, from connection logs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Connection logs since the start, of all servers, also rotated and compressed
    #[arg(value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Experiment file with a table `[plan]`
    #[arg(long, value_name = "EXP.toml", required = true)]
    plan: PathBuf,
    /// Directory of the decisions and of the servers' experiment file [default: the plan's `state`]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Compute all decisions again from the logs, and print where they differ
    #[arg(long)]
    verify: bool,
    /// Run the plan N times over simulated connections, in each of several scenarios
    #[arg(long, value_name = "N", value_parser = values::count::<u32>(1..=RAMPS_MAX), conflicts_with_all = ["state", "verify", "partial", "merge", "logs"])]
    rehearse: Option<u32>,
    /// Random seed of --rehearse
    #[arg(long, default_value = "1", value_parser = units::seed)]
    seed: u64,
    /// Threads [default: CPU cores]
    #[arg(long, value_name = "N", value_parser = values::positive(values::THREADS_MAX))]
    jobs: Option<NonZeroUsize>,
    /// Write what a look needs of the logs, for --merge, to stdout
    #[arg(long, requires = "logs", conflicts_with_all = ["state", "verify", "merge"])]
    partial: bool,
    /// Read states of --partial in place of logs
    #[arg(long, requires = "logs", conflicts_with = "verify")]
    merge: bool,
}

/// Ramps of a rehearsal in each scenario.
pub(super) const RAMPS_MAX: u64 = 100_000;
/// Servers write lines some time after the time on them. Lines of this time before now wait for the next look, so that the same
/// lines can be counted again.
const SETTLED_MS: u64 = 60_000;

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> Result<ExitCode, Failure> {
    let of_stop = |folder: &Path| {
        let looks = !(arguments.verify || arguments.partial || arguments.rehearse.is_some());
        (looks && stopped(folder).is_some()).then(|| halt(folder, &arguments.plan, registry))
    };
    // Whatever is wrong with the plan.
    if let Some(done) = arguments.state.as_deref().and_then(of_stop) {
        return done;
    }
    let (plan, jobs) = (&arguments.plan, arguments.jobs);
    if let Some(repeats) = arguments.rehearse {
        return rehearse(plan, repeats, arguments.seed, jobs, registry);
    }
    let controller = Controller::of_plan(plan, registry)?;
    if arguments.partial {
        sealed::write(|| controller.part(&arguments.logs, jobs, now_ms()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = arguments.state.clone().or_else(|| controller.folder());
    let folder = folder.ok_or_else(|| {
        Failure::Usage(
            "no directory of the decisions (expected --state, or `state` of the plan)".to_owned(),
        )
    })?;
    if let Some(done) = of_stop(&folder) {
        return done;
    }
    if arguments.verify {
        return verify(arguments, &controller, &folder);
    }
    // Before the directory is locked: a state may be read from a pipe.
    let states;
    let lines = if arguments.merge {
        states = controller.states(&arguments.logs)?;
        Lines::States(&states)
    } else {
        Lines::Logs(&arguments.logs, jobs)
    };
    // Without lines there is no look.
    let _lead = if lines.are_none() {
        None
    } else {
        Some(lead(&folder)?.ok_or_else(|| in_use(&folder))?)
    };
    let look = controller
        .step(&folder, lines, (None, None), now_ms())?
        .ok_or_else(|| in_use(&folder))?;
    warn_of_ignored(&look);
    print(shown(&look, &controller.subject()))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a plan so many times over simulated connections, in each of several scenarios.
pub(super) fn rehearse(
    plan: &Path,
    repeats: u32,
    seed: u64,
    jobs: Option<NonZeroUsize>,
    registry: &Registry,
) -> Result<ExitCode, Failure> {
    let controller = Controller::of_plan(plan, registry)?;
    let subject = controller.subject();
    rehearse::run(&controller.experiment, subject, repeats, seed, jobs)
}

/// Ends a ramp for its file `stop`, by its plan. Without that, the experiment file that servers read is written again, so that no plan
/// is needed. A stop that cannot be recorded takes the arm away nevertheless.
fn halt(folder: &Path, plan: &Path, registry: &Registry) -> Result<ExitCode, Failure> {
    let (mut store, blocked) = match Store::open(folder) {
        Ok(Some(store)) => (store, None),
        Ok(None) => (Store::unlocked(folder), Some(in_use(folder))),
        Err(failure) => (Store::unlocked(folder), Some(failure)),
    };
    let first = store.ramp().looks().first();
    let is_readable = files::check_regular(plan).is_ok();
    let controller = first.filter(|_| is_readable).and_then(|first| {
        let controller = Controller::read(plan, registry).ok().flatten();
        controller.filter(|controller| first.plan == controller.hash)
    });
    // Another plan may have another baseline.
    let experiment = match controller {
        Some(controller) => Ok(controller.experiment),
        None => store.published(registry),
    };
    if blocked.is_some() || first.is_none() {
        let fault = blocked.or_else(|| store.check().err());
        // A ramp that has not started.
        let fault = fault.unwrap_or_else(|| store.cannot_start());
        return Err(match experiment {
            Ok(experiment) => not_recorded(&store, &experiment, fault),
            Err(_) => fault,
        });
    }
    if let Some(look) = store
        .stopped()
        .and_then(|rule| store.stop(experiment.as_ref().ok(), rule, now_ms()))
        && let Err(failure) = store.push(look)
    {
        let experiment = experiment.map_err(not_told)?;
        return Err(not_recorded(&store, &experiment, failure));
    }
    store.publish(&experiment.map_err(not_told)?)?;
    let last = store.ramp().looks().last();
    let last = last.map(|look| {
        let share = units::show_share(look.share);
        format!(
            "look {}: {}: {}\n{share} of new connections\n",
            look.look, look.action, look.rule
        )
    });
    print(last.unwrap_or_default())?;
    Ok(ExitCode::SUCCESS)
}

/// The error of a stop that cannot be recorded, after which servers have no arm.
fn not_recorded(store: &Store, experiment: &Experiment, failure: Failure) -> Failure {
    match (store.publish_stop(experiment), failure) {
        (Ok(()), Failure::Usage(why) | Failure::Run(why)) => Failure::Run(format!(
            "{why}\nthe arm has no connections in `{}` now, which is not recorded",
            store.experiment_file().display()
        )),
        (_, failure) => failure,
    }
}

/// The error of a stop that servers cannot read.
fn not_told(failure: Failure) -> Failure {
    match failure {
        Failure::Usage(why) | Failure::Run(why) => Failure::Run(format!(
            "the stop is recorded, but servers do not have it: {why} (expected that file, or --plan as it was at the start)"
        )),
        other => other,
    }
}

/// Held by the process that makes the looks: a server as long as it runs, since others do not have its log. `None` if another one has it.
pub(super) fn lead(folder: &Path) -> Result<Option<files::Lock>, Failure> {
    files::create_folder(folder)?;
    let path = folder.join("lead");
    files::check_regular(&path).map_err(Failure::Run)?;
    files::lock(&path)
}

fn in_use(folder: &Path) -> Failure {
    Failure::Run(format!(
        "`{}` is in use by another `lastbyte steer` or `serve` (expected one at a time)",
        folder.display()
    ))
}

/// Where the lines of a look are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines<'a> {
    /// In logs, which are read by this many threads.
    Logs(&'a [PathBuf], Option<NonZeroUsize>),
    /// Counted before, in states.
    States(&'a [State]),
}

impl Lines<'_> {
    const fn are_none(self) -> bool {
        match self {
            Self::Logs(logs, _) => logs.is_empty(),
            Self::States(states) => states.is_empty(),
        }
    }

    /// Returns an error if a log is not a file: opening a pipe would wait for another process, and the next look needs its lines, too.
    fn check(self) -> Result<(), Failure> {
        let Self::Logs(logs, _) = self else {
            return Ok(());
        };
        for log in logs {
            let is_stdin = log.as_os_str() == "-";
            let path = if is_stdin {
                Path::new("/dev/stdin")
            } else {
                log
            };
            files::check_regular(path).map_err(Failure::Usage)?;
        }
        Ok(())
    }
}

/// Where a ramp stands, without a look.
#[derive(Debug)]
pub(super) struct Standing {
    /// The last decision, if it is of this plan.
    pub(super) last: Option<Look>,
    /// Why the arm is to have no connections, where no decision has that yet.
    pub(super) stop: Option<String>,
    /// Why no decision can follow, but a stop.
    pub(super) fault: Option<Failure>,
}

/// What decides by a plan: `lastbyte steer`, or a server on its own.
#[derive(Clone, Debug)]
pub(super) struct Controller {
    pub(super) experiment: Experiment,
    plan: RampPlan,
    file: PathBuf,
    /// Of the file.
    hash: String,
}

impl Controller {
    /// Reads the experiment file. `None` if it has no plan.
    pub(super) fn read(file: &Path, registry: &Registry) -> Result<Option<Self>, Failure> {
        // Once: a second read of a pipe is empty.
        let text = experiment_file::text(file)?;
        let experiment = experiment_file::parse(file, &text, registry)?;
        let Some(plan) = experiment.plan.clone() else {
            return Ok(None);
        };
        let hash = SipHash::from_bytes(&[0; 16]).hash_2_4(text.as_bytes());
        Ok(Some(Self {
            experiment,
            plan,
            file: file.to_owned(),
            hash: format!("{hash:016x}"),
        }))
    }

    /// Reads the experiment file, which must have a plan.
    fn of_plan(file: &Path, registry: &Registry) -> Result<Self, Failure> {
        Self::read(file, registry)?.ok_or_else(|| {
            let file = file.display();
            Failure::Usage(format!(
                "`{file}`: no table `[plan]` (expected one: docs/plan.md)"
            ))
        })
    }

    /// Whether another one has the same file, by its content.
    pub(super) fn has_same_plan(&self, other: &Self) -> bool {
        self.hash == other.hash
    }

    /// The directory that the plan names.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let folder = self.file.parent().unwrap_or(Path::new(""));
        Some(folder.join(self.plan.state.as_deref()?))
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        let arms = &self.experiment.arms;
        let name = |index: usize| arms.get(index).map_or("", |arm| arm.name.as_str());
        let baseline = self.experiment.baseline;
        Subject {
            name: &self.experiment.name,
            // A plan has two arms.
            arms: [name(baseline), name(1 - baseline.min(1))],
            plan: &self.plan,
        }
    }

    /// The arms with the shares of a decision. Without one, all connections are of the baseline.
    pub(super) fn arms(&self, look: Option<&Look>) -> Vec<Arm> {
        store::with_share(&self.experiment, look.map_or(0.0, |look| look.share))
    }

    /// Takes all connections from the arm in the experiment file, so that a stop that cannot be recorded is not forgotten.
    pub(super) fn publish_stop(&self, folder: &Path) -> Result<(), Failure> {
        let store = Store::unlocked(folder);
        // Servers of another plan may have another baseline.
        self.check(store.ramp())?;
        store.publish_stop(&self.experiment)
    }

    /// The last decision of a directory, without a look, and why its arm is to have no connections, where that is not recorded.
    pub(super) fn standing(&self, folder: &Path) -> Standing {
        let store = Store::unlocked(folder);
        let ours = self.check(store.ramp());
        let last = store.ramp().looks().last().filter(|_| ours.is_ok());
        let is_stopped = ours.is_ok() && store.has_unrecorded_stop(&self.experiment);
        let stop = stopped(folder)
            .or_else(|| is_stopped.then(|| "experiment.toml has taken the arm away".to_owned()));
        Standing {
            last: last.cloned(),
            stop,
            fault: ours.and_then(|()| store.check()).err(),
        }
    }

    /// Starts the ramp, or decides by the logs, unless there are none or the ramp is over. Writes the decision, and the experiment
    /// file. `known` is the epoch of the last decision that the caller knows; `announced`: why an operator ended the ramp, where that is in
    /// effect and not recorded. `None` if another process uses the directory. The time is in milliseconds since 1970.
    pub(super) fn step(
        &self,
        folder: &Path,
        lines: Lines<'_>,
        (known, announced): (Option<u32>, Option<&str>),
        now_ms: u64,
    ) -> Result<Option<Look>, Failure> {
        if announced.is_none() && stopped(folder).is_none() {
            lines.check()?;
        }
        let Some(mut store) = Store::open(folder)? else {
            return Ok(None);
        };
        let is_new = store.ramp().looks().is_empty();
        let last = store.ramp().looks().last().map(|last| last.epoch);
        if let Some(known) = known.filter(|known| Some(*known) > last) {
            return Err(Failure::Run(format!(
                "`{}` lacks the decision of epoch {known}, which is in effect (expected all decisions; the shares stay)",
                folder.display()
            )));
        }
        let stop_rule = |store: &Store| store.stopped().or_else(|| announced.map(str::to_owned));
        let stopped = stop_rule(&store);
        if is_new || stopped.is_none() {
            store.check()?;
        }
        if is_new && stopped.is_some() {
            return Err(store.cannot_start());
        }
        // Another plan may have another arm: whose shares are published would not be known.
        self.check(store.ramp())?;
        if store.ramp().waits() && stopped.is_none() {
            // Given by mistake, or not: they are of another time.
            if let Lines::Logs(logs, _) = lines {
                report::inputs(logs)?;
            }
            let subject = self.subject();
            let look = (store.ramp()).start(&subject, &self.hash, settled(now_ms), now_ms);
            // One look says that the ramp waits.
            if is_new || look.action == Action::Start {
                store.push(look)?;
            }
        } else {
            let is_looked_at = !store.ramp().is_over() && !lines.are_none();
            let look = if stopped.is_none() && is_looked_at {
                Some(self.look(&store, lines, now_ms)?)
            } else {
                None
            };
            // A look takes time, in which an operator may end the ramp.
            let stop =
                stop_rule(&store).and_then(|rule| store.stop(Some(&self.experiment), rule, now_ms));
            if let (None, Some(look)) = (&stop, &look) {
                forget_lost(&store, look)?;
            }
            if let Some(look) = stop.or(look) {
                store.push(look)?;
            }
        }
        // Also after a look that holds: an earlier run may have ended before it wrote the file.
        store.publish(&self.experiment)?;
        Ok(store.ramp().looks().last().cloned())
    }

    /// Reads states.
    pub(super) fn states(&self, paths: &[PathBuf]) -> Result<Vec<State>, Failure> {
        let states = paths.iter().map(|path| State::read(path, &self.hash));
        states.collect()
    }

    /// The lines of the state of a part of the logs, up to a time.
    pub(super) fn part(
        &self,
        logs: &[PathBuf],
        jobs: Option<NonZeroUsize>,
        now_ms: u64,
    ) -> Result<String, Failure> {
        log::part(logs, jobs, &self.subject(), &self.hash, now_ms)
    }

    /// Checks that a ramp follows this plan.
    fn check(&self, ramp: &Ramp) -> Result<(), Failure> {
        match ramp.looks().first() {
            Some(first) if first.plan == self.hash && !ramp.follows(&self.plan) => Err(Failure::Run(
                "a share of the decisions is not that of the plan (expected decisions as they were written; the shares stay)".to_owned(),
            )),
            Some(first) if first.plan != self.hash => Err(Failure::Usage(format!(
                "`{}` changed since the ramp started: {} (expected {}; another plan needs another directory of state)",
                self.file.display(),
                self.hash,
                first.plan
            ))),
            _ => Ok(()),
        }
    }

    /// Looks at the lines.
    fn look(&self, store: &Store, lines: Lines<'_>, now_ms: u64) -> Result<Look, Failure> {
        let ramp = store.ramp();
        let subject = &self.subject();
        let settled = settled(now_ms);
        let over = || Failure::Run("the ramp is over".to_owned());
        let last = ramp.looks().last().ok_or_else(over)?;
        let latest = match lines {
            Lines::Logs(..) => settled,
            Lines::States(_) => now_ms,
        };
        if latest < last.until {
            return Err(Failure::Run(format!(
                "lines count up to {latest} ms since 1970, and look {} has one of {} ms (expected a later time; the shares stay)",
                last.look, last.until
            )));
        }
        let epochs = ramp.epochs();
        let by_states = matches!(lines, Lines::States(_));
        let lines = match lines {
            Lines::Logs(logs, jobs) => log::lines(logs, jobs, subject, &epochs, settled)?,
            Lines::States(states) => log::merge(states, &epochs, now_ms)?,
        };
        if let Some(later) = lines.tally.later_epoch() {
            return Err(Failure::Run(format!(
                "the logs have lines of epoch {later}, and the last decision is of epoch {} (expected all decisions; or a file `stop`, to end the ramp; the shares stay)",
                last.epoch
            )));
        }
        let without = match (missing(ramp, last, subject, &lines), store.lost()) {
            (Some(what), Some(note)) => Some(format!("{what}: {note}")),
            (Some(what), None) => {
                return Err(Failure::Run(format!(
                    "{what} (expected all logs since the start, or a file `lost` in the directory of the decisions to go on without them; the shares stay)"
                )));
            }
            (None, _) => None,
        };
        let look = ramp.look(subject, &lines.tally, now_ms).ok_or_else(over)?;
        let mut marks = lines.marks;
        if without.is_none() {
            let known: BTreeSet<u64> = ramp.marks().map(|(_, _, mark)| mark).collect();
            marks.retain(|_, mark| !known.contains(mark));
        }
        Ok(Look {
            by_states,
            marks,
            lost: without,
            ..look
        })
    }
}

/// Removes the file `lost` before a decision. One that stays would let all looks go on without lines; an end is decided all the same.
fn forget_lost(store: &Store, look: &Look) -> Result<(), Failure> {
    match store.forget_lost() {
        Err(failure) if look.lost.is_some() && !look.action.is_end() => Err(failure),
        Err(Failure::Usage(why) | Failure::Run(why)) => {
            notice(why);
            Ok(())
        }
        other => other,
    }
}

/// What is missing of the lines that earlier looks had.
fn missing(ramp: &Ramp, last: &Look, subject: &Subject<'_>, lines: &log::Lines) -> Option<String> {
    if let Some((look, log, _)) = ramp.marks().find(|(.., mark)| lines.sample.lacks(*mark)) {
        return Some(format!(
            "the logs lack lines of `{log}`, which look {look} had"
        ));
    }
    let now = lines.tally.by_site();
    last.connections.iter().find_map(|(site, before)| {
        let now = now.get(site).copied().unwrap_or_default();
        let place = (0..now.len()).find(|place| now[*place] < before[*place])?;
        Some(format!(
            "the logs have {} connections of `{}` at site `{site}`, and look {} had {}",
            now[place], subject.arms[place], last.look, before[place]
        ))
    })
}

/// The time before which all lines are written.
const fn settled(now_ms: u64) -> u64 {
    now_ms.saturating_sub(SETTLED_MS)
}

/// The time in milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    u64::try_from(Clock::since_epoch().as_millis()).unwrap_or(u64::MAX)
}

/// Computes the decisions again.
fn verify(
    arguments: &Arguments,
    controller: &Controller,
    folder: &Path,
) -> Result<ExitCode, Failure> {
    let subject = &controller.subject();
    let store = Store::unlocked(folder);
    let (ramp, fault) = (store.ramp(), store.check());
    let Some(last) = ramp.looks().last() else {
        fault?;
        let folder = folder.display();
        return Err(Failure::Usage(format!(
            "`{folder}`: no decisions (expected the directory of a ramp)"
        )));
    };
    let (mut count, mut without, mut text) = (0, 0, String::new());
    if let Err(Failure::Usage(why) | Failure::Run(why)) = fault {
        count += 1;
        text = why + "\n";
    } else {
        controller.check(ramp)?;
    }
    if !store.has_published(&controller.experiment) {
        count += 1;
        text.push_str("experiment.toml: not as the last look wrote it\n");
    }
    for (number, again) in recomputed(&arguments.logs, arguments.jobs, subject, ramp)?
        .iter()
        .enumerate()
    {
        if again.later > 0 {
            let is_by_states = ramp.looks().get(number).is_some_and(|look| look.by_states);
            let what = if is_by_states {
                "not in its states: it cannot be compared"
            } else {
                "written after it, with an earlier time: only its decision is compared"
            };
            let later = counted(again.later, "line");
            notice(format!("look {number}: {later} {what}"));
        }
        without += usize::from(again.is_lost);
        for difference in &again.differences {
            count += 1;
            let _ = writeln!(text, "look {number}: {difference}");
        }
    }
    if without > 0 {
        let looks = counted(without as u64, "look");
        notice(format!(
            "{looks} cannot be compared: lines of them are lost"
        ));
    }
    let looks = counted(ramp.looks().len() as u64, "look");
    if count == 0 {
        let sum = &last.sum;
        print(format!("{looks}: no differences; the last sum is {sum}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    print(text)?;
    let differences = counted(count as u64, "difference");
    Err(Failure::Run(format!("{differences} in {looks}")))
}

/// A look against the logs.
#[derive(Debug, Default)]
pub(super) struct Recomputed {
    /// Whether lines of it are missing, and a later look went on without them.
    pub(super) is_lost: bool,
    /// Lines that were written after it, with an earlier time.
    pub(super) later: u64,
    /// What differs.
    pub(super) differences: Vec<String>,
}

/// Each look of a ramp against the logs.
pub(super) fn recomputed(
    logs: &[PathBuf],
    jobs: Option<NonZeroUsize>,
    subject: &Subject<'_>,
    ramp: &Ramp,
) -> Result<Vec<Recomputed>, Failure> {
    let looks = ramp.looks();
    let times: Vec<u64> = looks.iter().map(|look| look.until).collect();
    let tallies = log::tallies(logs, jobs, subject, &ramp.epochs(), &times)?;
    let (mut before, mut so_far) = (Ramp::default(), Tally::default());
    let whole = looks.iter().rposition(|look| look.lost.is_some());
    let all = (looks.iter().zip(&tallies))
        .enumerate()
        .map(|(number, (look, part))| {
            so_far.merge(part);
            let again = before.again(subject, &so_far, look);
            before.push(look.clone());
            let differs = |what: String| Recomputed {
                differences: vec![what],
                ..Recomputed::default()
            };
            if look.rules != RULES {
                let rules = look.rules;
                return differs(format!(
                    "it is by version {rules} of the rules (expected version {RULES}, or a Lastbyte of then)"
                ));
            }
            let Some(again) = again else {
                return differs("the ramp was over".to_owned());
            };
            if let Some(later) = part.later_epoch() {
                return differs(format!(
                    "the logs have lines of epoch {later}, whose decision is missing"
                ));
            }
            if whole.is_some_and(|whole| number < whole) && has_fewer(&again, look) {
                return Recomputed {
                    is_lost: true,
                    ..Recomputed::default()
                };
            }
            let later = later(look, &again);
            if look.by_states && later > 0 {
                return Recomputed {
                    later,
                    ..Recomputed::default()
                };
            }
            let compared = compared(look, &again, later == 0).into_iter();
            let differences = compared.map(|(what, recorded, computed)| {
                format!("{what}: {computed} from the logs, {recorded} recorded")
            });
            Recomputed {
                later,
                differences: differences.collect(),
                ..Recomputed::default()
            }
        });
    Ok(all.collect())
}

/// Whether a look has fewer connections of an arm at a site than another one.
fn has_fewer(look: &Look, than: &Look) -> bool {
    than.connections.iter().any(|(site, than)| {
        let here = look.connections.get(site).copied().unwrap_or_default();
        here[0] < than[0] || here[1] < than[1]
    })
}

/// The lines that came after a look and count now, because the clock of their server was slow. 0 if there are also fewer.
fn later(recorded: &Look, computed: &Look) -> u64 {
    let mut more = 0;
    if has_fewer(computed, recorded) {
        return 0;
    }
    for (site, now) in &computed.connections {
        let before = recorded.connections.get(site).copied().unwrap_or_default();
        more += now.iter().sum::<u64>() - before.iter().sum::<u64>();
    }
    more
}

/// What differs between a recorded and a computed look, beyond rounding.
fn compared(
    recorded: &Look,
    computed: &Look,
    has_same_lines: bool,
) -> Vec<(&'static str, String, String)> {
    let words = |look: &Look| {
        let shares = format!("epoch {}, stage {}, {}", look.epoch, look.stage, look.share);
        [
            ("action", format!("{:?}", look.action)),
            ("shares", shares),
            ("setup", format!("{:?}", look.setup)),
            ("rule", look.rule.clone()),
            ("connections", format!("{:?}", look.connections)),
            ("hours", look.hours.to_string()),
            ("until", look.until.to_string()),
            ("plan", look.plan.clone()),
        ]
    };
    let numbers = |look: &Look| {
        let all = |change: Option<Change>| {
            let values = change.map(|of| [Some(of.value), of.low, of.high]);
            values.unwrap_or_default()
        };
        let one = |value: Option<f64>| [value, None, None];
        [
            ("TTLB", all(look.ttlb)),
            ("sample ratio", one(look.ratio)),
            ("loss", all(look.loss)),
            ("incomplete", all(look.incomplete)),
            ("RTT beside its minimum", all(look.rtt)),
            ("bound for futility", one(look.ttlb_low)),
            ("TTLB of the stage", all(look.stage_ttlb)),
            ("P50", all(look.p50)),
            ("P75", all(look.p75)),
            ("P95", all(look.p95)),
        ]
    };
    // What decides, before what it says.
    let most = if has_same_lines { usize::MAX } else { 3 };
    let of_words = words(recorded).into_iter().zip(words(computed)).take(most);
    let mut differing: Vec<_> = of_words
        .filter(|((_, recorded), (_, computed))| recorded != computed)
        .map(|((what, recorded), (_, computed))| (what, recorded, computed))
        .collect();
    if has_same_lines {
        let of_numbers = numbers(recorded).into_iter().zip(numbers(computed));
        for ((what, recorded), (_, computed)) in of_numbers {
            if !recorded.into_iter().zip(computed).all(is_same) {
                differing.push((what, with_bounds(recorded), with_bounds(computed)));
            }
        }
    }
    differing
}

/// Whether two numbers differ by rounding at most: sums of lines in another order differ in the last digits.
fn is_same(both: (Option<f64>, Option<f64>)) -> bool {
    match both {
        (Some(one), Some(other)) => {
            one.to_bits() == other.to_bits()
                || (one - other).abs() <= 1e-9 * one.abs().max(other.abs()).max(1e-3)
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// A value with its bounds.
fn with_bounds([value, low, high]: [Option<f64>; 3]) -> String {
    let one = |value: Option<f64>| value.map_or("–".to_owned(), |value| value.to_string());
    match (low, high) {
        (None, None) => one(value),
        _ => format!("{} ({} to {})", one(value), one(low), one(high)),
    }
}

/// The decision and the shares of a look, for people: two lines.
pub(super) fn decision(look: &Look, subject: &Subject<'_>) -> [String; 2] {
    [
        format!("look {}: {}: {}", look.look, look.action, look.rule),
        format!(
            "{}: {} of new connections, stage {} of {}, epoch {}",
            subject.arms[1],
            units::show_share(look.share),
            look.stage + 1,
            subject.plan.stages.len(),
            look.epoch
        ),
    ]
}

/// A look, for people.
fn shown(look: &Look, subject: &Subject<'_>) -> String {
    let mut lines = Vec::from(decision(look, subject));
    let counts = look.connections.values();
    let counts = counts.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    if counts != [0, 0] {
        lines.push(format!(
            "connections: {} of {}, {} of {}",
            counts[0], subject.arms[0], counts[1], subject.arms[1]
        ));
    }
    if let Some(lost) = &look.lost {
        lines.push(format!("without lines of earlier looks: {lost}"));
    }
    for (what, change) in [
        ("TTLB", look.ttlb),
        ("loss", look.loss),
        ("incomplete", look.incomplete),
        ("RTT beside its minimum", look.rtt),
    ] {
        if let Some(change) = change {
            let percent = |value: f64| format!("{:+.2}", value * 100.0);
            let bound = |value: Option<f64>| value.map_or("–".to_owned(), percent);
            let unit = if matches!(what, "loss" | "incomplete") {
                "points"
            } else {
                "%"
            };
            let bounds = match (change.low, change.high) {
                (None, None) => "no bounds yet".to_owned(),
                (low, high) => format!("{} to {}", bound(low), bound(high)),
            };
            lines.push(format!(
                "{what}: {} {unit} ({bounds})",
                percent(change.value)
            ));
        }
    }
    lines.push(format!("sum: {}", look.sum));
    lines.join("\n") + "\n"
}

fn warn_of_ignored(look: &Look) {
    let ignored = look.ignored;
    let others = [
        (ignored.other_experiment, "of other experiments"),
        (ignored.other_epoch, "of unknown epochs"),
        (ignored.other_arm, "of other arms"),
        (ignored.without_time, "too new, or without a time"),
        (
            ignored.ahead,
            "of the future (the clock of a server is ahead)",
        ),
        (ignored.unreadable, "that are not JSON objects"),
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
}
