//! The ramp that a server decides itself: the plan of its experiment file, over its own connection log.
//!
//! [`Controller`] decides, as for `lastbyte steer`. This module has the times of the looks, and what follows for the server.
//!
//! # Decisions
//!
//! - *The decisions in the directory are the state*, so that a restart continues. One server leads, as long as it runs: it looks at its
//!   log. Another one with the same directory, as during a handover, applies the last decision, and leads when the first has ended.
//! - *A look has one thread of its own*, so that workers and signals do not wait for it. The file `stop` is looked for each second.

use core::{
    cell::{Cell, RefCell},
    future::{self, Future as _},
    num::NonZeroUsize,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use lastbyte_congestion::Registry;
use lastbyte_scenario::Arm;
use lastbyte_server::RampStatus;
use lastbyte_steer::ramp::Look;
use tokio::{
    task,
    time::{Instant, sleep},
};

use super::arguments::Arguments;
use crate::{
    commands::{
        experiment_file::FOUR_ARMS,
        steer::{self, Controller, Lines, Standing},
    },
    failure::Failure,
    files, terminal,
};

#[cfg(test)]
mod tests;

/// Between looks at the logs.
const PERIOD: Duration = Duration::from_secs(300);
/// Between looks for the file `stop`.
const STOP_PERIOD: Duration = Duration::from_secs(1);
/// Before another attempt to record a stop.
const RETRY_PERIOD: Duration = Duration::from_secs(10);

/// A ramp, and the decision in effect.
#[derive(Clone, Debug)]
pub(super) struct Ramp {
    controller: Arc<Controller>,
    folder: PathBuf,
    /// The connection log; rotated files have longer names.
    log: PathBuf,
    /// Held as long as this process makes the looks.
    lead: Option<Arc<files::Lock>>,
    /// `None` before the ramp starts.
    look: Option<Look>,
    /// Whether the last look is in the directory. A stop takes the arm away also where that cannot be recorded.
    is_recorded: bool,
    /// When this process, or the one that has the directory, made the last look: in milliseconds since 1970.
    looked_at_ms: u64,
}

impl Ramp {
    /// The ramp of these options, which starts or continues, without a look at the logs; with --check, neither. A stop that the ramp
    /// before a reload did not record stays. `None` if there is no experiment, or it has no plan.
    pub(super) fn started(
        arguments: &Arguments,
        registry: &Registry,
        before: Option<&Self>,
    ) -> Result<Option<Self>, Failure> {
        let Some(mut ramp) = Self::of(arguments, registry)? else {
            return Ok(None);
        };
        if arguments.check {
            return Ok(Some(ramp));
        }
        let is_same = |before: &&Self| {
            ramp.folder == before.folder && ramp.controller.has_same_plan(&before.controller)
        };
        if let Some(before) = before.filter(is_same) {
            ramp = Self {
                controller: ramp.controller,
                ..before.clone()
            };
        }
        ramp.after(Ok(Vec::new()), steer::now_ms()).map(Some)
    }

    fn of(arguments: &Arguments, registry: &Registry) -> Result<Option<Self>, Failure> {
        let file = arguments.experiment.as_deref().map(Path::new);
        let Some(file) = file.filter(|file| file.as_os_str() != FOUR_ARMS) else {
            return Ok(None);
        };
        let Some(controller) = Controller::read(file, registry)? else {
            return Ok(None);
        };
        let refused = |expected: &str| {
            let file = file.display();
            Failure::Usage(format!("`{file}`: a table `[plan]` (expected {expected})"))
        };
        let folder = controller.folder().ok_or_else(|| {
            refused("`state` in it, a directory for the decisions; or experiment.toml, which `lastbyte steer` writes")
        })?;
        let log = arguments.log.clone();
        let log = log.ok_or_else(|| refused("--log with it: decisions follow from the log"))?;
        if files::is_read_once(&log) {
            return Err(refused(
                "a regular file as --log with it: decisions follow from all its lines",
            ));
        }
        Ok(Some(Self {
            controller: Arc::new(controller),
            folder,
            log,
            lead: None,
            look: None,
            is_recorded: true,
            looked_at_ms: 0,
        }))
    }

    /// The ramp after a look at the logs. The file `stop` takes the arm away also where that cannot be recorded.
    fn after_look(self, now_ms: u64) -> Result<Self, Failure> {
        let logs = logs(&self.log);
        self.after(logs, now_ms)
    }

    fn after(mut self, logs: Result<Vec<PathBuf>, Failure>, now_ms: u64) -> Result<Self, Failure> {
        let led = match &self.lead {
            Some(_) => Ok(()),
            None => steer::lead(&self.folder).map(|lead| self.lead = lead.map(Arc::new)),
        };
        let decided = led.and(logs).and_then(|logs| match self.lead {
            Some(_) => self.decide(&logs, now_ms),
            None => Ok(None),
        });
        let failure = match decided {
            Ok(Some(ramp)) => return Ok(ramp),
            Ok(None) => None,
            Err(failure) => Some(failure),
        };
        let Standing { last, stop, fault } = self.controller.standing(&self.folder);
        let (failure, stop) = (failure.or(fault), self.announced().or(stop));
        let ramp = if failure.is_some() {
            self
        } else {
            self.led_by_another(last.clone())
        };
        if failure.is_none() && !ramp.has_arm() {
            return Ok(ramp);
        }
        let Some(rule) = stop else {
            return failure.map_or(Ok(ramp), Err);
        };
        let why = match failure {
            Some(Failure::Usage(why) | Failure::Run(why)) => format!("error: {why}\n"),
            Some(other) => return Err(other),
            None => String::new(),
        };
        terminal::error(format!(
            "{why}{rule}: the arm has no connections now, which is not recorded"
        ));
        if ramp.announced().is_some() {
            return Ok(ramp);
        }
        let look = ramp.look.clone().or(last);
        Ok(Self { look, ..ramp }.without_arm(rule, now_ms))
    }

    /// The ramp with the last decision of the process that has the directory, and looks at its logs.
    fn led_by_another(self, look: Option<Look>) -> Self {
        terminal::notice(format!(
            "`{}` is in use by another process: its last decision is in effect, without a look at this log",
            self.folder.display()
        ));
        Self {
            looked_at_ms: look.as_ref().map_or(0, |last| last.at),
            look,
            is_recorded: true,
            ..self
        }
    }

    /// The ramp without the arm, before that is recorded. The experiment file has that, for a restart.
    fn without_arm(self, rule: String, now_ms: u64) -> Self {
        let Some(last) = &self.look else {
            return self;
        };
        let look = Some(last.stopped(rule, now_ms));
        if let Err(Failure::Usage(why) | Failure::Run(why)) =
            self.controller.publish_stop(&self.folder)
        {
            terminal::error(format!("error: {why}"));
        }
        Self {
            look,
            is_recorded: false,
            ..self
        }
    }

    /// The ramp without the arm, before that is recorded, if an operator ends it.
    fn stopped(&self, now_ms: u64) -> Option<Self> {
        self.look.as_ref().filter(|_| self.has_arm())?;
        let rule = steer::stopped(&self.folder)?;
        Some(self.clone().without_arm(rule, now_ms))
    }

    /// The ramp after a decision by the logs. `None` if another process has the directory.
    fn decide(&self, logs: &[PathBuf], now_ms: u64) -> Result<Option<Self>, Failure> {
        // Logs are read by one thread: the other CPUs are for clients.
        let lines = Lines::Logs(logs, Some(NonZeroUsize::MIN));
        let announced = self.announced();
        // An announced stop is of the next epoch.
        let unrecorded = u32::from(announced.is_some());
        let known = self.look.as_ref().map(|look| look.epoch - unrecorded);
        let known = (known, announced.as_deref());
        let look = (self.controller).step(&self.folder, lines, known, now_ms)?;
        Ok(look.map(|look| Self {
            looked_at_ms: if logs.is_empty() {
                self.looked_at_ms.max(look.at)
            } else {
                now_ms
            },
            look: Some(look),
            is_recorded: true,
            ..self.clone()
        }))
    }

    /// The reason of a stop that is in effect and not recorded. It stays, also without the file.
    fn announced(&self) -> Option<String> {
        let look = self.look.as_ref().filter(|_| !self.is_recorded)?;
        Some(look.rule.clone())
    }

    /// The name of the experiment, and its arms with the shares in effect.
    pub(super) fn arms(&self) -> (Vec<Arm>, String) {
        let name = self.controller.experiment.name.clone();
        (self.controller.arms(self.look.as_ref()), name)
    }

    /// The number of the shares in effect.
    pub(super) fn epoch(&self) -> u32 {
        self.look.as_ref().map_or(1, |look| look.epoch)
    }

    /// The hash of a configuration of this ramp, with the number of the shares in effect.
    pub(super) fn named(&self, hash: &str) -> String {
        let hash = hash.split_once('-').map_or(hash, |(hash, _)| hash);
        format!("{hash}-{}", self.epoch())
    }

    /// The decision in effect, for the operator.
    pub(super) fn decision(&self) -> Option<String> {
        let look = self.look.as_ref()?;
        let lines = steer::decision(look, &self.controller.subject());
        let note = if self.is_recorded {
            ""
        } else {
            "; not recorded"
        };
        Some(lines.join("; ") + note)
    }

    /// Whether the first look was made. It is shown, also if it changes nothing.
    pub(super) fn has_one_look(&self) -> bool {
        self.look.as_ref().is_some_and(|look| look.look == 1)
    }

    /// The decision in effect, for metrics.
    pub(super) fn status(&self) -> Option<RampStatus> {
        let look = self.look.as_ref()?;
        let (arms, experiment) = self.arms();
        Some(RampStatus {
            experiment,
            shares: arms.into_iter().map(|arm| (arm.name, arm.share)).collect(),
            stage: look.stage + 1,
            looks: look.look,
            action: look.action.to_string(),
            is_over: look.action.is_end(),
            looked_at: self.looked_at_ms / 1000,
        })
    }

    /// Whether a decision may follow: also before the start, and after a win.
    fn goes_on(&self) -> bool {
        let is_over = self.look.as_ref().is_some_and(|look| look.action.is_end());
        self.has_arm() || !is_over
    }

    /// Whether the arm has connections. It has none before the start.
    fn has_arm(&self) -> bool {
        self.look.as_ref().is_some_and(|look| look.share > 0.0)
    }
}

/// A look that is under way.
type Looking = task::JoinHandle<Result<Ramp, Failure>>;

/// The ramp of a server, if it has one, and the time of its next look.
#[derive(Debug)]
pub(super) struct Ramping {
    ramp: RefCell<Option<Ramp>>,
    due: Cell<Instant>,
    /// One at a time. It goes on between calls of [`Ramping::next`].
    looking: RefCell<Option<Looking>>,
}

impl Ramping {
    pub(super) fn new(ramp: Option<Ramp>) -> Self {
        Self {
            ramp: RefCell::new(ramp),
            due: Cell::new(Instant::now()),
            looking: RefCell::new(None),
        }
    }

    /// The ramp.
    pub(super) fn get(&self) -> Option<Ramp> {
        self.ramp.borrow().clone()
    }

    /// Takes another ramp. A look follows.
    pub(super) fn set(&self, ramp: Option<Ramp>) {
        self.ramp.replace(ramp);
        self.due.set(Instant::now());
    }

    /// Waits for the next look, makes it, and returns the ramp with its decision, or the one that a file `stop` ends meanwhile.
    /// Without a ramp, it does not return. A caller may drop it at any time: a look that is under way is that of the next call.
    pub(super) async fn next(&self) -> Result<Ramp, Failure> {
        loop {
            if self.looking.borrow().is_none() {
                // After a win, too: until the file `stop` is there, and that is recorded.
                let goes_on = |ramp: &Ramp| ramp.goes_on() || !ramp.is_recorded;
                let Some(ramp) = self.get().filter(goes_on) else {
                    return future::pending().await;
                };
                if Instant::now() < self.due.get() {
                    sleep(STOP_PERIOD).await;
                    if ramp.stopped(0).is_none() {
                        continue;
                    }
                }
                self.due.set(Instant::now() + PERIOD);
                let looking = task::spawn_blocking(move || ramp.after_look(steer::now_ms()));
                self.looking.replace(Some(looking));
            }
            let looked = tokio::select! {
                looked = future::poll_fn(|context| self.poll_look(context)) => looked,
                () = sleep(STOP_PERIOD) => {
                    // A look at large logs takes longer than an operator may wait.
                    let stopped = self.get().and_then(|ramp| ramp.stopped(steer::now_ms()));
                    let Some(stopped) = stopped else {
                        continue;
                    };
                    self.ramp.replace(Some(stopped.clone()));
                    self.retry();
                    return Ok(stopped);
                }
            };
            let ramp = looked?;
            // Unless a reload took another one meanwhile.
            let is_same = |now: &Ramp| Arc::ptr_eq(&now.controller, &ramp.controller);
            let now = self.get().filter(is_same);
            if let Some(now) = now {
                let was_recorded = now.is_recorded;
                // A stop that was announced meanwhile stays, also if the look did not see it: the next look records it.
                let ramp = if ramp.has_arm() && now.announced().is_some() {
                    now
                } else {
                    ramp
                };
                if !was_recorded && ramp.is_recorded {
                    terminal::notice("the stop of the ramp is recorded");
                }
                self.ramp.replace(Some(ramp.clone()));
                if !ramp.is_recorded {
                    self.retry();
                }
                return Ok(ramp);
            }
        }
    }

    /// Makes the next look soon: it records a stop.
    fn retry(&self) {
        self.due.set(Instant::now() + RETRY_PERIOD);
    }

    /// The result of the look that is under way, once.
    fn poll_look(&self, context: &mut Context<'_>) -> Poll<Result<Ramp, Failure>> {
        let mut looking = self.looking.borrow_mut();
        let Some(handle) = looking.as_mut() else {
            return Poll::Pending;
        };
        let looked = ready!(Pin::new(handle).poll(context));
        *looking = None;
        Poll::Ready(
            looked.unwrap_or_else(|error| Err(Failure::Run(format!("a look failed: {error}")))),
        )
    }
}

/// The log and its rotated files, each once: while a file is compressed, and shortly after, it is there in both forms. Rotated files
/// have a number or a date behind the log's name, as of `logrotate`.
fn logs(log: &Path) -> Result<Vec<PathBuf>, Failure> {
    let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty());
    let files = files::list(folder.unwrap_or(Path::new("."))).map_err(Failure::Run)?;
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let mut rotated = BTreeMap::new();
    for file in files {
        let found = file.file_name().unwrap_or_default().to_string_lossy();
        let Some(rest) = found
            .strip_prefix(&*name)
            .and_then(|rest| rest.strip_prefix(['.', '-']))
        else {
            continue;
        };
        let (number, packing) = rest.split_once('.').unwrap_or((rest, ""));
        let is_number = number.starts_with(|first: char| first.is_ascii_digit())
            && number.chars().all(|one| one.is_ascii_digit() || one == '-');
        match packing {
            // By name, so the file as it was comes first.
            "" | "gz" | "zst" if is_number => {
                rotated.entry(number.to_owned()).or_insert(file);
            }
            "xz" | "bz2" | "lz4" if is_number => {
                return Err(Failure::Run(format!(
                    "`{}`: a rotated log that cannot be read (expected gz or zst as its compression)",
                    file.display()
                )));
            }
            _ => {}
        }
    }
    let mut all: Vec<PathBuf> = rotated.into_values().collect();
    // Between its rotation and its next line there is no log.
    if all.is_empty() || log.exists() {
        all.push(log.to_owned());
    }
    Ok(all)
}
