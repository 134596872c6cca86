//! What is remembered in files, from one run to the next: alternative services, sessions.

use std::{io::Write, path::Path};

use lastbyte_client::{AltSvc, Memory, SessionFile};
use lastbyte_driver::Clock;

use super::Arguments;
use crate::{failure::Failure, files};

/// The files.
pub(super) struct Keep<'a> {
    arguments: &'a Arguments,
    sessions: Option<SessionFile>,
}

impl<'a> Keep<'a> {
    /// Reads them, as far as they are there.
    pub(super) fn open(arguments: &'a Arguments) -> Result<(Self, Memory), Failure> {
        let mut sessions = None;
        if let Some(path) = &arguments.connection.session_store {
            // Sessions make things faster, and nothing works only with them.
            match SessionFile::open(path, Clock::since_epoch) {
                Ok((file, warning)) => {
                    if let Some(warning) = warning {
                        warn(arguments, path, &warning);
                    }
                    sessions = Some(file);
                }
                Err(error) => warn(arguments, path, &format!("cannot keep sessions: {error}")),
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
                warn(
                    arguments,
                    path,
                    &format!("{wrong} lines are none of curl's, and left out"),
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

    /// Writes what is known now.
    pub(super) fn save(&self, memory: &Memory) -> Result<(), Failure> {
        if let (Some(sessions), Some(path)) =
            (&self.sessions, &self.arguments.connection.session_store)
            && let Err(error) = sessions.save()
        {
            warn(
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

/// Something is not as it should be, and it goes on all the same.
fn warn(arguments: &Arguments, path: &Path, what: &str) {
    if !arguments.shown.silent {
        // Nobody can be told that stderr is gone.
        let _ = writeln!(std::io::stderr(), "warning: `{}`: {what}", path.display());
    }
}
