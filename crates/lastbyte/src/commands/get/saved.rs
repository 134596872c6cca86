//! Files that are kept from one run to the next: alternative services, sessions, cookies.

use std::{io::Read as _, path::Path};

use lastbyte_client::{AltSvc, CookieJar, Memory, SessionFile};
use lastbyte_driver::Clock;

use super::arguments::Arguments;
use crate::{
    failure::Failure,
    files,
    terminal::{notice, print},
};

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
        if let Some(jar) = cookies(arguments) {
            memory.set_cookies(jar);
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
        if let (Some(path), Some(jar)) = (&self.arguments.request.cookie_jar, memory.cookies()) {
            let text = jar.to_text(Clock::since_epoch());
            if path.as_os_str() == "-" {
                print(text)?;
            } else if files::replace(path, text.as_bytes()).is_err() {
                // The fetches succeeded all the same, as with curl.
                warn_of_file(self.arguments, path, "cannot write cookies");
            }
        }
        Ok(())
    }
}

/// The cookies read from files; `None` if cookies are disabled.
fn cookies(arguments: &Arguments) -> Option<CookieJar> {
    let it = &arguments.request;
    let mut files = it
        .cookie
        .iter()
        .filter(|text| !text.contains('='))
        .peekable();
    if files.peek().is_none() && it.cookie_jar.is_none() {
        return None;
    }
    let mut jar = CookieJar::default();
    // An empty file name enables cookies.
    for name in files.filter(|name| !name.is_empty()) {
        let path = Path::new(name);
        let text = if name == "-" {
            let mut text = String::new();
            let read = std::io::stdin().lock().read_to_string(&mut text);
            read.map(|_| text)
                .map_err(|error| format!("cannot read stdin: {error}"))
        } else {
            files::read_text(path)
        };
        match text {
            Ok(text) => {
                let wrong = jar.read(&text, Clock::since_epoch());
                if wrong > 0 {
                    warn_of_file(
                        arguments,
                        path,
                        &format!("ignored {wrong} lines that are not cookies"),
                    );
                }
            }
            // On the first run the file does not exist yet, and may be created at the end.
            Err(_) if it.cookie_jar.as_deref() == Some(path) && !path.exists() => {}
            Err(what) => warn(arguments, &what),
        }
    }
    if it.junk_session_cookies {
        jar.end_session();
    }
    Some(jar)
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
