//! The directory of a ramp: its lock, its decisions, and the experiment file that servers read.
//!
//! # Decisions
//!
//! - *The decisions are the state.* A decision is durable before the experiment file changes, and the file is written again from
//!   the last decision by each run. A run that ends in between, for want of disk space for example, leaves the shares as they were.
//! - *A last line without an end was not decided*: the run that wrote it failed, and did not change the experiment file. It is cut
//!   off by the next one. Any other line that is not a look is an error.

use core::fmt::Write as _;
use std::path::{Path, PathBuf};

use lastbyte_scenario::{Arm, Experiment};
use lastbyte_steer::ramp::{Look, Ramp};

use crate::{failure::Failure, files, terminal::notice};

/// The directory of a ramp, locked.
pub(super) struct Store {
    folder: PathBuf,
    ramp: Ramp,
    /// Bytes of the decisions.
    len: u64,
    /// Holds the lock.
    _lock: files::Lock,
}

const DECISIONS: &str = "decisions.ndjson";
const EXPERIMENT: &str = "experiment.toml";
const LOCK: &str = "lock";
const STOP: &str = "stop";
const LOST: &str = "lost";

impl Store {
    /// Locks the directory, which is created, and reads its decisions. `None` if another process has locked it.
    pub(super) fn open(folder: &Path) -> Result<Option<Self>, Failure> {
        files::create_folder(folder)?;
        let Some(lock) = files::lock(&folder.join(LOCK))? else {
            return Ok(None);
        };
        let (ramp, len, rest) = decisions(folder)?;
        // Of a ramp that may be over: another one would give its arm connections again.
        if ramp.looks().is_empty() && folder.join(EXPERIMENT).exists() {
            return Err(Failure::Run(format!(
                "`{}` has a file `{EXPERIMENT}` and no decisions (expected the decisions that it follows, or another directory; the shares stay)",
                folder.display()
            )));
        }
        if rest > 0 {
            notice(format!(
                "`{}`: its last line has no end, and does not count",
                folder.join(DECISIONS).display()
            ));
        }
        Ok(Some(Self {
            folder: folder.to_owned(),
            ramp,
            len,
            _lock: lock,
        }))
    }

    pub(super) const fn ramp(&self) -> &Ramp {
        &self.ramp
    }

    /// Who ends the ramp, and why: see [`stopped`].
    pub(super) fn stopped(&self) -> Option<String> {
        stopped(&self.folder)
    }

    /// Who lets the ramp go on without lines that are missing, and the reason. `None` if there is no file for that.
    pub(super) fn lost(&self) -> Option<String> {
        noted(&self.folder, LOST)
    }

    /// Removes the file that lets the ramp go on without lines: it is for one look.
    pub(super) fn forget_lost(&self) -> Result<(), Failure> {
        let path = self.folder.join(LOST);
        if self.lost().is_some() {
            files::remove(&path)?;
        }
        Ok(())
    }

    /// The file that servers read.
    pub(super) fn experiment_file(&self) -> PathBuf {
        self.folder.join(EXPERIMENT)
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
        let mut line = serde_json::to_string(&look).map_err(Failure::run)?;
        line.push('\n');
        files::append(&self.folder.join(DECISIONS), self.len, line.as_bytes())?;
        self.len += line.len() as u64;
        self.ramp.push(look);
        Ok(())
    }

    /// Writes the experiment file for the shares in effect, unless it is there.
    pub(super) fn publish(&self, experiment: &Experiment) -> Result<(), Failure> {
        let Some(last) = self.ramp.looks().last() else {
            return Ok(());
        };
        let text = text(experiment, last);
        let path = self.experiment_file();
        if path.exists() && files::read_text(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        files::publish(&path, text.as_bytes())
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

/// The decisions of a directory, the bytes of their lines, and those of a last line without an end.
pub(in crate::commands) fn decisions(folder: &Path) -> Result<(Ramp, u64, usize), Failure> {
    let path = folder.join(DECISIONS);
    let text = if path.exists() {
        // It has a line for each look, and no bound but those.
        let bytes = files::read(&path).map_err(Failure::Run)?;
        String::from_utf8(bytes).map_err(|error| {
            Failure::Run(format!("`{}`: {error} (expected UTF-8)", path.display()))
        })?
    } else {
        String::new()
    };
    let (whole, rest) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
    let invalid = |number: usize, why: String| {
        Failure::Run(format!(
            "`{}`, line {}: {why} (expected a look)",
            path.display(),
            number + 1
        ))
    };
    let looks = whole.lines().enumerate().map(|(number, line)| {
        serde_json::from_str(line).map_err(|error| invalid(number, error.to_string()))
    });
    let looks: Vec<Look> = looks.collect::<Result<_, Failure>>()?;
    let ramp =
        Ramp::new(looks).ok_or_else(|| invalid(0, "not the looks of one ramp".to_owned()))?;
    Ok((ramp, whole.len() as u64, rest.len()))
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

/// The experiment file of the servers.
fn text(experiment: &Experiment, look: &Look) -> String {
    // A string of JSON is one of TOML.
    let quoted = |text: &str| {
        serde_json::Value::from(text)
            .to_string()
            .replace('\u{7f}', "\\u007F")
    };
    let baseline = experiment.arms.get(experiment.baseline);
    let baseline = baseline.map_or("", |arm| arm.name.as_str());
    let mut text = format!(
        "# Written by `lastbyte steer`, which overwrites it.\nname = {}\nbaseline = {}\nepoch = {}\n",
        quoted(&experiment.name),
        quoted(baseline),
        look.epoch
    );
    for arm in with_share(experiment, look.share) {
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
