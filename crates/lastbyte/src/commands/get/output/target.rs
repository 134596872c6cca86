//! The destination of one body: the terminal, or a file that is created when the first bytes arrive.

#![expect(
    clippy::disallowed_types,
    reason = "the binary is where files are opened"
)]

use std::{
    fs::{self, File},
    io::{self, BufWriter, IsTerminal as _, Seek as _, SeekFrom, Write},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

use lastbyte_client::{Fetch, Head, split_unquoted};

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
    /// The server's file name replaces ours.
    takes_name: bool,
    makes_folders: bool,
    /// The download continues at the end of the file.
    appends: bool,
    /// Bytes with a NUL are not written: stdout is a terminal, and `-o -` was not given.
    refuses_binary: bool,
    /// The offset in the file at which it starts.
    begin: u64,
}

impl Target {
    pub(super) fn new(arguments: &Arguments, index: usize, fetch: &Fetch) -> Result<Self, Failure> {
        let output = output_of(arguments, index);
        let path = match &output {
            Output::Stdout => None,
            Output::File(path) => Some(in_folder(arguments, path)),
            Output::RemoteName => {
                let name = fetch.url.file_name();
                let name = name.or(arguments.shown.remote_header_name.then_some("index.html"));
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
            takes_name: arguments.shown.remote_header_name && output == Output::RemoteName,
            makes_folders: arguments.shown.create_dirs,
            appends: arguments.request.continue_at.is_some(),
            refuses_binary: output == Output::Stdout
                && arguments.outputs.0.get(index).is_none()
                && io::stdout().is_terminal(),
            begin: 0,
        })
    }

    /// The path of the file, if it is one.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The server may specify a name.
    pub(super) fn on_head(&mut self, head: &Head<'_>) {
        if self.takes_name
            && let Some(name) = head.text("content-disposition").and_then(name_of)
            && let Some(path) = &mut self.path
        {
            path.set_file_name(name);
        }
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
        self.begin = if self.appends {
            file.metadata()?.len()
        } else {
            0
        };
        let writer = BufWriter::with_capacity(BUFFER_LEN, file);
        self.writer.insert(writer).write_all(bytes)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        if self.makes_folders
            && let Some(folder) = path.parent()
        {
            fs::create_dir_all(folder)?;
        }
        let mut options = File::options();
        options.write(true);
        if self.takes_name {
            // A name chosen by a server must not overwrite an existing file.
            options.create_new(true);
        } else if self.appends {
            options.append(true).create(true);
        } else {
            options.create(true).truncate(true);
        }
        options.open(path)
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
            file.set_len(self.begin)?;
            file.seek(SeekFrom::Start(self.begin))?;
        }
        self.writer = Some(BufWriter::with_capacity(BUFFER_LEN, file));
        Ok(())
    }

    /// Sets the modification time announced by the server, as far as the system permits.
    pub(super) fn set_time(&self, last_modified: &str) {
        if let (Some(path), Ok(time)) = (&self.path, httpdate::parse_http_date(last_modified))
            && let Ok(file) = File::options().append(true).open(path)
        {
            // It is not worth failing the download.
            let _ = file.set_modified(time);
        }
    }

    /// Writes all buffered data.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.writer
            .take()
            .map_or(Ok(()), |mut writer| writer.flush())
    }
}

/// The `filename` of a `content-disposition` (RFC 6266 §4.1): only its last path segment (§4.3). Names of hidden files are
/// ignored, since a server must not create a `.profile`, and so are names that a program would take for an option, and those
/// with control characters.
fn name_of(value: &str) -> Option<String> {
    let mut parameters = split_unquoted(value, ';').filter_map(|it| it.split_once('='));
    let (_, value) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("filename"))?;
    let value = value.trim();
    let quoted = value
        .strip_prefix('"')
        .map(|it| it.strip_suffix('"').unwrap_or(it));
    // Other backslashes separate the segments of a path.
    let name = quoted.unwrap_or(value).replace("\\\"", "\"");
    let name = name.rsplit(['/', '\\']).next()?;
    let is_name = !name.is_empty() && !name.starts_with(['.', '-']);
    (is_name && !name.contains(char::is_control)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc6266_file_names_contain_no_path() {
        for (value, expected) in [
            ("attachment; filename=a.txt", Some("a.txt")),
            ("attachment; FileName=\"a b.txt\"; x=y", Some("a b.txt")),
            ("attachment; filename=\"../../etc/passwd\"", Some("passwd")),
            ("attachment; filename=\"c:\\x\\y\"", Some("y")),
            ("attachment; filename=\"..\"", None),
            ("attachment; filename=\".profile\"", None),
            ("attachment; filename=a/.profile", None),
            ("attachment; filename=\"-rf\"", None),
            ("attachment; filename=\"a/-rf\"", None),
            ("attachment; filename=\"a\u{9b}31m\"", None),
            ("attachment; filename=", None),
            ("attachment; filename", None),
            ("inline", None),
            ("inline; xfilename=\"a\"", None),
            ("attachment; filename*=UTF-8''a; filename = b", Some("b")),
            ("attachment; x=\"; filename=a\"; filename=b", Some("b")),
            (
                "attachment; xfilename=a; filename=\"b;c.txt\"",
                Some("b;c.txt"),
            ),
            ("attachment; filename=\"a\\\"; b\"; c", Some("a\"; b")),
            ("attachment; filename=\"open", Some("open")),
        ] {
            assert_eq!(name_of(value).as_deref(), expected, "{value}");
        }
    }
}
