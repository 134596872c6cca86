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

use lastbyte_scenario::Experiment;
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

impl Store {
    /// Locks the directory, which is created, and reads its decisions.
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        files::create_folder(folder)?;
        let lock = files::lock(&folder.join(LOCK))?.ok_or_else(|| {
            Failure::Run(format!(
                "`{}` is in use by another `lastbyte steer` (expected one at a time)",
                folder.display()
            ))
        })?;
        let path = folder.join(DECISIONS);
        let text = if path.exists() {
            files::read_text(&path).map_err(Failure::Run)?
        } else {
            String::new()
        };
        let (whole, rest) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
        if !rest.is_empty() {
            notice(format!(
                "`{}`: its last line has no end, and does not count",
                path.display()
            ));
        }
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
        Ok(Self {
            folder: folder.to_owned(),
            ramp,
            len: whole.len() as u64,
            _lock: lock,
        })
    }

    pub(super) const fn ramp(&self) -> &Ramp {
        &self.ramp
    }

    /// Whether an operator ends the ramp.
    pub(super) fn is_stopped(&self) -> bool {
        self.folder.join(STOP).exists()
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
        let path = self.folder.join(EXPERIMENT);
        if path.exists() && files::read_text(&path).is_ok_and(|there| there == text) {
            return Ok(());
        }
        files::publish(&path, text.as_bytes())
    }
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
    for (index, arm) in experiment.arms.iter().enumerate() {
        let share = if index == experiment.baseline {
            1.0 - look.share
        } else {
            look.share
        };
        // 1 - 0.95 is not 0.05.
        let share = (share * 1e9).round() / 1e9;
        // Writing to a `String` cannot fail.
        let _ = write!(
            text,
            "\n[[arms]]\nname = {}\nspec = {}\nshare = {share}\n",
            quoted(&arm.name),
            quoted(&arm.spec.to_string())
        );
    }
    text
}
