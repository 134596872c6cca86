//! The directory of a ramp: its lock, its decisions, and the experiment file that servers read.
//!
//! # Decisions
//!
//! - *The decisions are the state.* A decision is durable before the experiment file changes, and the file is written again from
//!   the last decision by each run. A run that ends in between, for want of disk space for example, leaves the shares as they were.
//! - *A last line without an end was not decided*: the run that wrote it failed, and did not change the experiment file. It is cut
//!   off by the next one. Any other line that is not a look is an error.
//! - *Each line has a sum that chains it to the line before it* ([`chain`]). No share grows by decisions that are not a chain.
//! - *The experiment file has the sum of the decision that wrote it.* Where no decision has that sum, it is lost, or was changed. No
//!   share grows then.
//! - *A stop needs neither*: where it cannot be recorded, the experiment file takes the arm away alone.

use core::fmt::Write as _;
use std::path::{Path, PathBuf};

use lastbyte_congestion::Registry;
use lastbyte_scenario::{Arm, Experiment};
use lastbyte_steer::ramp::{Look, Ramp};

use super::chain;
use crate::{
    commands::experiment_file::{self, Published},
    failure::Failure,
    files,
    terminal::notice,
};

/// The directory of a ramp, locked.
pub(super) struct Store {
    folder: PathBuf,
    decisions: Decisions,
    /// Holds the lock. `None` for a stop that does not wait for it.
    _lock: Option<files::Lock>,
}

/// The decisions in a directory.
#[derive(Default)]
pub(in crate::commands) struct Decisions {
    pub(in crate::commands) ramp: Ramp,
    /// Bytes of their lines.
    len: u64,
    /// Whether a last line has no end: a write of it failed, or is in progress.
    pub(in crate::commands) is_torn: bool,
    /// The epoch of the experiment file.
    pub(in crate::commands) published: Option<u32>,
    /// Why no decision can follow, but a stop.
    fault: Option<String>,
}

const DECISIONS: &str = "decisions.ndjson";
const EXPERIMENT: &str = "experiment.toml";
const LOCK: &str = "lock";
const STOP: &str = "stop";
const LOST: &str = "lost";
/// What a torn line means.
pub(in crate::commands) const TORN: &str = "its last line has no end, and does not count";

impl Store {
    /// Locks the directory, which is created, and reads its decisions. `None` if another process has locked it.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, Failure> {
        files::create_folder(folder)?;
        let lock = folder.join(LOCK);
        files::check_regular(&lock).map_err(Failure::Run)?;
        let Some(lock) = files::lock(&lock)? else {
            return Ok(None);
        };
        let decisions = Decisions::of(folder);
        if decisions.is_torn {
            notice(format!("`{}`: {TORN}", folder.join(DECISIONS).display()));
        }
        Ok(Some(Self {
            folder: folder.to_owned(),
            decisions,
            _lock: Some(lock),
        }))
    }

    /// Reads the decisions of a directory that another process may use: to publish a stop.
    pub(super) fn unlocked(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            decisions: Decisions::of(folder),
            _lock: None,
        }
    }

    /// What servers are to have: the epoch, the arm's share, and the sum of the decision that began the epoch.
    fn in_effect(&self) -> Option<(u32, f64, &str)> {
        let looks = self.ramp().looks();
        let last = looks.last()?;
        let begun = looks.iter().find(|look| look.epoch == last.epoch)?;
        Some((last.epoch, last.share, &begun.sum))
    }

    /// The last epoch that servers may know.
    fn known_epoch(&self) -> u32 {
        let last = self.ramp().looks().iter().map(|look| look.epoch).max();
        self.decisions.published.max(last).unwrap_or(0)
    }

    /// The look that ends the ramp for this reason, if it can: in the epoch in which the experiment file has, or in a new one.
    pub(super) fn stop(
        &self,
        experiment: Option<&Experiment>,
        rule: String,
        now_ms: u64,
    ) -> Option<Look> {
        let is_published = experiment.is_some_and(|one| self.has_unrecorded_stop(one));
        let known = self.known_epoch() - u32::from(is_published);
        self.ramp().stop(rule, now_ms, known)
    }

    /// Whether the experiment file takes the arm away, and the decision of that is not recorded.
    pub(super) fn has_unrecorded_stop(&self, experiment: &Experiment) -> bool {
        let last = self.ramp().looks().last().map(|last| last.epoch);
        let published = self.decisions.published;
        published > last
            && self.is_published(experiment, (published.unwrap_or(0), 0.0, chain::NONE))
    }

    /// Whether the experiment file is that of the last decision.
    pub(super) fn has_published(&self, experiment: &Experiment) -> bool {
        let in_effect = self.in_effect();
        in_effect.is_some_and(|of| self.is_published(experiment, of))
    }

    fn is_published(&self, experiment: &Experiment, of: (u32, f64, &str)) -> bool {
        let expected = text(experiment, of);
        // A stop may have overwritten it in place.
        published(&self.folder).is_some_and(|there| there.trim_end() == expected.trim_end())
    }

    pub(super) const fn ramp(&self) -> &Ramp {
        &self.decisions.ramp
    }

    /// Returns an error if no decision can follow, but a stop.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let fault = self.decisions.fault.clone();
        fault.map_or(Ok(()), |fault| Err(Failure::Run(fault)))
    }

    /// Who ends the ramp, and why: see [`stopped`].
    pub(super) fn stopped(&self) -> Option<String> {
        stopped(&self.folder)
    }

    /// Who lets the ramp go on without lines that are missing, and the reason. `None` if there is no file for that.
    pub(super) fn lost(&self) -> Option<String> {
        // It could not be used up.
        if let Err(why) = files::check_regular(&self.folder.join(LOST)) {
            notice(format!("{why}: it does not count"));
            return None;
        }
        noted(&self.folder, LOST)
    }

    /// Removes the file that lets the ramp go on without lines: it is for one look.
    pub(super) fn forget_lost(&self) -> Result<(), Failure> {
        let path = self.folder.join(LOST);
        if files::check_regular(&path).is_ok() && noted(&self.folder, LOST).is_some() {
            files::remove(&path)?;
        }
        Ok(())
    }

    /// The file that servers read.
    pub(super) fn experiment_file(&self) -> PathBuf {
        self.folder.join(EXPERIMENT)
    }

    /// What servers read.
    pub(super) fn published(&self, registry: &Registry) -> Result<Experiment, Failure> {
        let path = self.experiment_file();
        files::check_regular(&path).map_err(Failure::Run)?;
        experiment_file::read(Some(&path), registry)
    }

    /// The error of a start in spite of the file `stop`.
    pub(super) fn cannot_start(&self) -> Failure {
        Failure::Usage(format!(
            "`{}` has a file `{STOP}` (expected none to start a ramp)",
            self.folder.display()
        ))
    }

    /// Adds a decision.
    pub(super) fn push(&mut self, look: Look) -> Result<(), Failure> {
        let before = self.ramp().looks().last().map_or("", |last| &last.sum);
        let (look, mut line) = chain::added(before, look).map_err(Failure::run)?;
        line.push('\n');
        let decisions = &mut self.decisions;
        files::append(&self.folder.join(DECISIONS), decisions.len, line.as_bytes())?;
        decisions.len += line.len() as u64;
        decisions.ramp.push(look);
        Ok(())
    }

    /// Writes the experiment file for the shares in effect, unless it is there.
    pub(super) fn publish(&self, experiment: &Experiment) -> Result<(), Failure> {
        let in_effect = self.in_effect();
        in_effect.map_or(Ok(()), |of| self.publish_share(experiment, of))
    }

    /// Takes all connections from the arm in the experiment file, for a stop that cannot be recorded.
    pub(super) fn publish_stop(&self, experiment: &Experiment) -> Result<(), Failure> {
        let epoch = self.known_epoch();
        if self.is_published(experiment, (epoch, 0.0, chain::NONE)) {
            return Ok(());
        }
        self.publish_share(experiment, (epoch.saturating_add(1), 0.0, chain::NONE))
    }

    fn publish_share(&self, experiment: &Experiment, of: (u32, f64, &str)) -> Result<(), Failure> {
        let text = text(experiment, of);
        let path = self.experiment_file();
        if published(&self.folder).as_ref() == Some(&text) {
            return Ok(());
        }
        let published = files::publish(&path, text.as_bytes());
        if of.1 > 0.0 {
            return published;
        }
        // On a full disk, too.
        published.or_else(|failure| files::overwrite(&path, &text).map_err(|_| failure))
    }
}

/// Who ends the ramp of a directory with the file for that, and the reason in it. `None` if there is no such file.
pub(in crate::commands) fn stopped(folder: &Path) -> Option<String> {
    noted(folder, STOP)
}

/// Who wrote a note to a directory, and its first line.
fn noted(folder: &Path, name: &str) -> Option<String> {
    let (owner, reason) = files::note(&folder.join(name))?;
    Some(match reason.as_str() {
        "" => format!("the file `{name}` of user {owner} is there"),
        reason => format!("the file `{name}` of user {owner}: {reason}"),
    })
}

impl Decisions {
    /// Reads the decisions of a directory. An error is a fault.
    fn of(folder: &Path) -> Self {
        // Before the decisions, one of which another process may add now.
        let published = published(folder).map(|text| Published::of(&text));
        let epoch = published.as_ref().and_then(|published| published.epoch);
        let mut decisions = Self::read(folder).unwrap_or_else(|fault| Self {
            fault: Some(fault),
            ..Self::default()
        });
        decisions.published = epoch;
        let file = folder.join(EXPERIMENT);
        if decisions.fault.is_none() {
            decisions.fault = files::check_regular(&file).err();
        }
        let wrote = |published: &Published, look: &Look| {
            let sum = published.decision.as_deref();
            // A stop was recorded after it was published, and is not published again yet.
            let is_stop = look.share <= 0.0 && sum == Some(chain::NONE);
            published.epoch == Some(look.epoch) && (sum == Some(&look.sum) || is_stop)
        };
        let looks = decisions.ramp.looks();
        let is_written = published.is_some_and(|file| looks.iter().any(|look| wrote(&file, look)));
        // The file of the first decision may not have been written.
        let is_expected = looks.len() > 1 || file.exists();
        if decisions.fault.is_none() && !is_written && is_expected {
            let epoch = match epoch {
                Some(epoch) => format!("is of epoch {epoch}"),
                None if file.exists() => "is of no epoch".to_owned(),
                None => "is missing".to_owned(),
            };
            // Of a ramp that may be over: another one would give its arm connections again.
            decisions.fault = Some(format!(
                "`{}` {epoch}, and no decision that is there wrote it (expected all decisions and that file, as they were written; or a file `{STOP}`, to end the ramp; the shares stay)",
                file.display()
            ));
        }
        decisions
    }

    fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join(DECISIONS);
        files::check_regular(&path)?;
        let text = if path.exists() {
            // It has a line for each look, and no bound but those.
            String::from_utf8(files::read(&path)?)
                .map_err(|error| format!("`{}`: {error} (expected UTF-8)", path.display()))?
        } else {
            String::new()
        };
        let (whole, rest) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
        let (mut looks, mut before, mut fault) = (Vec::new(), String::new(), None);
        for (line, number) in whole.split_terminator('\n').zip(1..) {
            let at = || format!("`{}`, line {number}", path.display());
            let look: Look = serde_json::from_str(line)
                .map_err(|error| format!("{}: {error} (expected a look)", at()))?;
            if !look.is_in_range() {
                return Err(format!("{}: a number is out of range", at()));
            }
            if fault.is_none() && !chain::follows(&before, line, &look) {
                fault = Some(format!(
                    "{}: its `sum` is not that of its text after the line before (expected all lines, as they were written; or a file `{STOP}`, to end the ramp; the shares stay)",
                    at()
                ));
            }
            before.clone_from(&look.sum);
            looks.push(look);
        }
        Ok(Self {
            ramp: Ramp::new(looks),
            len: whole.len() as u64,
            is_torn: !rest.is_empty(),
            published: None,
            fault,
        })
    }
}

/// The text of the experiment file of a directory, if it is a file with one.
fn published(folder: &Path) -> Option<String> {
    let path = folder.join(EXPERIMENT);
    files::check_regular(&path).ok()?;
    files::read_text(&path).ok()
}

/// The decisions of a directory that is not locked.
pub(in crate::commands) fn decisions(folder: &Path) -> Result<Decisions, Failure> {
    let mut decisions = Decisions::of(folder);
    decisions
        .fault
        .take()
        .map_or(Ok(decisions), |fault| Err(Failure::Run(fault)))
}

/// The arms of an experiment of two, where the arm that is not the baseline has this share.
pub(super) fn with_share(experiment: &Experiment, share: f64) -> Vec<Arm> {
    let mut arms = experiment.arms.clone();
    for (index, arm) in arms.iter_mut().enumerate() {
        let is_baseline = index == experiment.baseline;
        let share = if is_baseline { 1.0 - share } else { share };
        // 1 - 0.95 is not 0.05.
        arm.share = (share * 1e9).round() / 1e9;
    }
    arms
}

/// The experiment file of the servers for an epoch and a share, which the decision with this sum made.
fn text(experiment: &Experiment, (epoch, share, sum): (u32, f64, &str)) -> String {
    // A string of JSON is one of TOML.
    let quoted = |text: &str| {
        serde_json::Value::from(text)
            .to_string()
            .replace('\u{7f}', "\\u007F")
    };
    let baseline = experiment.arms.get(experiment.baseline);
    let baseline = baseline.map_or("", |arm| arm.name.as_str());
    let mut text = format!(
        "# Written by `lastbyte steer`, which overwrites it.\nname = {}\nbaseline = {}\nepoch = {epoch}\ndecision = {}\n",
        quoted(&experiment.name),
        quoted(baseline),
        quoted(sum)
    );
    for arm in with_share(experiment, share) {
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "\n[[arms]]\nname = {}\nspec = {}\nshare = {}\n",
            quoted(&arm.name),
            quoted(&arm.spec.to_string()),
            arm.share
        );
    }
    text
}
