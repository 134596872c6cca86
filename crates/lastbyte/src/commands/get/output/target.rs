//! The destination of one body: the terminal, or a file that is created when the first bytes arrive.

#![expect(
    clippy::disallowed_types,
    reason = "the binary is where files are opened"
)]

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal as _, Write},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use lastbyte_client::Fetch;

use crate::{
    commands::get::arguments::{Arguments, Output},
    failure::Failure,
};

/// Bodies are written in pieces of this size, which is much more than a packet contains.
const BUFFER_LEN: usize = 256 << 10;

/// The same for stdout: a pipe of Linux holds 64 KiB.
const STDOUT_BUFFER_LEN: usize = 128 << 10;

/// Opens stdout, without the line buffer of [`io::stdout`], which would split each piece at its last newline.
pub(super) fn stdout() -> io::Result<BufWriter<File>> {
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    Ok(BufWriter::with_capacity(STDOUT_BUFFER_LEN, stdout))
}

/// The destination of one body.
pub(super) struct Target {
    /// The file; none for the terminal.
    path: Option<PathBuf>,
    writer: Option<BufWriter<File>>,
    /// Bytes with a NUL are not written: stdout is a terminal, and `-o -` was not given.
    refuses_binary: bool,
}

impl Target {
    pub(super) fn new(arguments: &Arguments, index: usize, fetch: &Fetch) -> Result<Self, Failure> {
        let given = arguments.outputs.0.get(index);
        let output = given.unwrap_or(&Output::Stdout);
        let path = match output {
            Output::Stdout => None,
            Output::File(path) => Some(path.clone()),
            Output::RemoteName => {
                let name = fetch.url.file_name();
                let name = name.ok_or_else(|| {
                    Failure::Usage(format!(
                        "`{}` has no file name for -O (expected -o FILE)",
                        fetch.url
                    ))
                })?;
                Some(PathBuf::from(name))
            }
        };
        Ok(Self {
            path,
            writer: None,
            refuses_binary: given.is_none() && io::stdout().is_terminal(),
        })
    }

    /// The path of the file, if it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// # Errors
    ///
    /// Returns the error of creating the file, with its name.
    pub(super) fn write(&mut self, bytes: &[u8], stdout: &mut dyn Write) -> io::Result<()> {
        let Some(path) = &self.path else {
            if self.refuses_binary && bytes.contains(&0) {
                let what = "the content is binary and could disturb the terminal (expected -o FILE, or -o - to write it all the same)";
                return Err(io::Error::other(what));
            }
            return stdout.write_all(bytes);
        };
        if let Some(writer) = &mut self.writer {
            return writer.write_all(bytes);
        }
        let file = File::create(path).map_err(|error| {
            let what = format!("`{}`: {error}", path.display());
            io::Error::new(error.kind(), what)
        })?;
        let writer = BufWriter::with_capacity(BUFFER_LEN, file);
        self.writer.insert(writer).write_all(bytes)
    }

    /// Writes all buffered data.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.writer
            .take()
            .map_or(Ok(()), |mut writer| writer.flush())
    }
}
