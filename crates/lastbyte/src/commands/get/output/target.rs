//! The destination of one body: the terminal, or a file that is created when the first bytes arrive.

#![expect(
    clippy::disallowed_types,
    reason = "the binary is where files are opened"
)]

use std::{
    fs::{self, File},
    io::{self, BufWriter, IsTerminal as _, Seek as _, Write},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use lastbyte_client::Fetch;

use crate::{
    commands::get::{
        arguments::{Arguments, Output},
        destination::{in_folder, output_of},
    },
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
    makes_folders: bool,
    /// Bytes with a NUL are not written: stdout is a terminal, and `-o -` was not given.
    refuses_binary: bool,
}

impl Target {
    pub(super) fn new(arguments: &Arguments, index: usize, fetch: &Fetch) -> Result<Self, Failure> {
        let output = output_of(arguments, index);
        let path = match &output {
            Output::Stdout => None,
            Output::File(path) => Some(in_folder(arguments, path)),
            Output::RemoteName => {
                let name = fetch.url.file_name();
                let name = name.ok_or_else(|| {
                    Failure::Usage(format!(
                        "`{}` has no file name for -O (expected -o FILE)",
                        fetch.url
                    ))
                })?;
                Some(in_folder(arguments, Path::new(name)))
            }
        };
        Ok(Self {
            path,
            writer: None,
            makes_folders: arguments.shown.create_dirs,
            refuses_binary: output == Output::Stdout
                && arguments.outputs.0.get(index).is_none()
                && io::stdout().is_terminal(),
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
        let file = self.open(path).map_err(|error| {
            let what = format!("`{}`: {error}", path.display());
            io::Error::new(error.kind(), what)
        })?;
        let writer = BufWriter::with_capacity(BUFFER_LEN, file);
        self.writer.insert(writer).write_all(bytes)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        if self.makes_folders
            && let Some(folder) = path.parent()
        {
            fs::create_dir_all(folder)?;
        }
        File::create(path)
    }

    /// Discards what has arrived, as it will be sent again; on the terminal it stays.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        let mut file = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        // A device has no length, and is not truncated.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
            file.rewind()?;
        }
        self.writer = Some(BufWriter::with_capacity(BUFFER_LEN, file));
        Ok(())
    }

    /// Writes all buffered data.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.writer
            .take()
            .map_or(Ok(()), |mut writer| writer.flush())
    }
}
