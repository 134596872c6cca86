//! `--connection-log`: the file.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use lastbyte_load::LineSink;
use lastbyte_record::packed::{PackedLines, Packing};

use crate::{failure::Failure, files, terminal::wrote};

/// A connection log that all threads write to.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lines: PackedLines<files::Output>,
    /// The first error. Later lines are not written.
    failure: Option<std::io::Error>,
}

impl LogFile {
    /// Creates the file.
    pub(super) fn create(path: &Path) -> Result<Arc<Self>, Failure> {
        let name = path.to_string_lossy();
        let lines = PackedLines::new(files::create(path)?, Packing::of_name(&name));
        Ok(Arc::new(Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                lines,
                failure: None,
            }),
        }))
    }

    /// Writes the rest. Returns the first error.
    pub(super) fn finish(&self) -> Result<(), Failure> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = state.failure.take().or_else(|| state.lines.seal().err());
        match failure {
            None => wrote(&self.path),
            Some(error) => return Err(files::cannot_write(&self.path, &error)),
        }
        Ok(())
    }
}

impl LineSink for LogFile {
    fn line(&self, line: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failure.is_none() {
            state.failure = state.lines.line(line).err();
        }
    }
}
