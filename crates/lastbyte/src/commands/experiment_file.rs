//! Experiment files, and the built-in experiment.

use std::path::Path;

use lastbyte_congestion::Registry;
use lastbyte_scenario::experiment::Experiment;
use serde::Deserialize;

use crate::{failure::Failure, files};

/// The name of the built-in experiment.
pub(super) const FOUR_ARMS: &str = "four-arms";

/// Reads an experiment file, or takes the built-in experiment.
pub(super) fn read(file: Option<&Path>, registry: &Registry) -> Result<Experiment, Failure> {
    let Some(file) = file.filter(|file| file.as_os_str() != FOUR_ARMS) else {
        return Ok(Experiment::four_arms());
    };
    parse(file, &text(file)?, registry)
}

/// The text of an experiment file.
pub(super) fn text(file: &Path) -> Result<String, Failure> {
    files::read_text(file).map_err(|error| {
        let name = file.to_string_lossy();
        // As in a clone of the repository.
        let in_folder = Path::new("experiments").join(format!("{name}.toml"));
        let hint = match super::nearest(&name, [FOUR_ARMS].into_iter()) {
            _ if in_folder.is_file() => format!("; did you mean `{}`?", in_folder.display()),
            Some(known) => format!("; did you mean `{known}`?"),
            None => format!(" (expected a file, or `{FOUR_ARMS}`)"),
        };
        Failure::Usage(error + &hint)
    })
}

/// The experiment of a file with this text.
pub(super) fn parse(file: &Path, text: &str, registry: &Registry) -> Result<Experiment, Failure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    Experiment::parse_with(text, registry, &mut |name| {
        files::read_text(&folder.join(name))
    })
    .map_err(|error| Failure::Usage(format!("`{}`: {error}", file.display())))
}

/// What `lastbyte steer` notes in an experiment file for servers.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Published {
    /// The number of the shares in effect.
    pub(super) epoch: Option<u32>,
    /// The sum of the decision that began them.
    pub(super) decision: Option<String>,
}

impl Published {
    /// What is noted in this text.
    pub(super) fn of(text: &str) -> Self {
        toml::from_str(text).unwrap_or_default()
    }
}
