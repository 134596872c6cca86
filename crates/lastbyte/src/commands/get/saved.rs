//! Files that are kept from one run to the next: alternative services, sessions.

use std::path::Path;

use lastbyte_client::{AltSvc, Memory, SessionFile};
use lastbyte_driver::Clock;

use super::arguments::Arguments;
use crate::{failure::Failure, files, terminal::notice};

/// The files with state of earlier runs.
pub(super) struct SavedState<'a> {
    arguments: &'a Arguments,
    sessions: Option<SessionFile>,
}

impl<'a> SavedState<'a> {
    /// Reads the files that exist.
    pub(super) fn open(arguments: &'a Arguments) -> Result<(Self, Memory), Failure> {
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
        if let Some(path) = &arguments.connection.alt_svc
            && path.exists()
        {
            let text = files::read_text(path).map_err(Failure::Run)?;
            let (services, wrong) = AltSvc::from_text(&text);
            if wrong > 0 {
                warn_of_file(
                    arguments,
                    path,
                    &format!("ignored {wrong} invalid lines (expected curl's format)"),
                );
            }
            memory.set_alternatives(services);
        }
        Ok((
            Self {
                arguments,
                sessions,
            },
            memory,
        ))
    }

    /// Writes the current state.
    pub(super) fn save(&self, memory: &Memory) -> Result<(), Failure> {
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
        if let Some(path) = &self.arguments.connection.alt_svc {
            let text = memory.alternatives().to_text(Clock::since_epoch());
            files::replace(path, text.as_bytes())?;
        }
        Ok(())
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
