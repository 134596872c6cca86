//! The file of sessions, which is kept from one run to the next.

use std::path::Path;

use lastbyte_client::{Memory, SessionFile};
use lastbyte_driver::Clock;

use super::arguments::Arguments;
use crate::terminal::notice;

/// The files with state of earlier runs.
pub(super) struct SavedState<'a> {
    arguments: &'a Arguments,
    sessions: Option<SessionFile>,
}

impl<'a> SavedState<'a> {
    /// Reads the files that exist.
    pub(super) fn open(arguments: &'a Arguments) -> (Self, Memory) {
        let mut sessions = None;
        if let Some(path) = &arguments.connection.session_store {
            // Sessions are an optimization, and nothing depends on them.
            match SessionFile::open(path, Clock::since_epoch) {
                Ok((file, warning)) => {
                    if let Some(warning) = warning {
                        warn_of_file(arguments, path, &warning);
                    }
                    sessions = Some(file);
                }
                Err(error) => {
                    warn_of_file(arguments, path, &format!("cannot keep sessions: {error}"));
                }
            }
        }
        let memory = sessions
            .as_ref()
            .map_or_else(Memory::default, |file| file.memory().clone());
        let saved = Self {
            arguments,
            sessions,
        };
        (saved, memory)
    }

    /// Writes the current state.
    pub(super) fn save(&self) {
        if let (Some(sessions), Some(path)) =
            (&self.sessions, &self.arguments.connection.session_store)
            && let Err(error) = sessions.save()
        {
            warn_of_file(
                self.arguments,
                path,
                &format!("cannot keep sessions: {error}"),
            );
        }
    }
}

/// Prints a warning about a file.
fn warn_of_file(arguments: &Arguments, path: &Path, what: &str) {
    warn(arguments, &format!("`{}`: {what}", path.display()));
}

/// Prints a warning.
fn warn(arguments: &Arguments, what: &str) {
    if !arguments.shown.silent {
        notice(format!("warning: {what}"));
    }
}
