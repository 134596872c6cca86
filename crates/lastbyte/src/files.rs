//! Access to files. Errors name the file.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "only the binary opens files"
)]

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::fs::{Access, OFlags};

use crate::failure::Failure;

/// A file being written.
pub(crate) type Output = BufWriter<File>;

/// A locked file.
pub(crate) type Lock = File;

/// Maximum size of a text: settings, and traces of a link (an hour takes some 10 MB).
const TEXT_MAX: u64 = 64 << 20;

/// Reads a text.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot read `{}`: {why}", path.display());
    let file = File::open(path).map_err(|error| cannot(&error))?;
    let mut text = String::new();
    let read = file.take(TEXT_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => cannot(&"not a text in UTF-8"),
        _ => cannot(&error),
    })?;
    if text.len() as u64 > TEXT_MAX {
        return Err(cannot(&format_args!(
            "too large (expected at most {} MiB)",
            TEXT_MAX >> 20
        )));
    }
    Ok(text)
}

/// The files of a folder whose names do not start with a dot, by name.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let cannot = |why: &dyn std::fmt::Display| format!("cannot read `{}`: {why}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| cannot(&error))? {
        let entry = entry.map_err(|error| cannot(&error))?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !is_hidden && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(File::open(path)?))
}

/// Whether a path is read once only: a pipe or another device.
pub(crate) fn is_read_once(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|about| !about.is_file() && !about.is_dir())
}

/// Returns an error if the file cannot be opened, or is a folder.
pub(crate) fn check_readable(path: &Path) -> Result<(), String> {
    // A pipe can be opened once, and opening a FIFO waits for a writer.
    let about = match fs::metadata(path) {
        Ok(about) if about.is_file() => File::open(path).map(|_| about),
        about => about,
    };
    let problem = match about {
        Ok(about) if about.is_dir() => io::Error::from(io::ErrorKind::IsADirectory),
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    Err(format!("cannot read `{}`: {problem}", path.display()))
}

/// Creates a file, or truncates an existing one.
pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    Ok(BufWriter::with_capacity(1 << 16, file))
}

/// Returns an error if the file exists; --force overwrites it.
pub(crate) fn check_absent(path: &Path) -> Result<(), Failure> {
    absent(path, "; --force overwrites it")
}

/// Returns an error if the file exists.
pub(crate) fn check_new(path: &Path) -> Result<(), Failure> {
    absent(path, "")
}

fn absent(path: &Path, remedy: &str) -> Result<(), Failure> {
    // A device may be written to.
    if path.metadata().is_ok_and(|about| about.is_file()) {
        return Err(Failure::Usage(format!(
            "`{}` exists (expected a new file{remedy})",
            path.display()
        )));
    }
    Ok(())
}

/// Returns an error if the name of a page has the ending of another format; `other` says what writes that.
pub(crate) fn check_page_name(option: &str, path: &Path, other: &str) -> Result<(), Failure> {
    let extension = path.extension().map(OsStr::to_ascii_lowercase);
    if extension.is_none_or(|it| it == "html" || it == "htm") {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{option}: unknown format `{}` (expected a name that ends in .html{other})",
        path.display()
    )))
}

/// Returns an error if the file exists and is not an HTML page: it may be a log passed as the wrong argument.
pub(crate) fn check_is_page(path: &Path) -> Result<(), Failure> {
    const START: &[u8] = b"<!doctype html>";
    if !path.metadata().is_ok_and(|about| about.is_file()) {
        return Ok(());
    }
    let mut start = Vec::new();
    let file = File::open(path).map_err(|error| cannot_write(path, &error))?;
    let read = file.take(START.len() as u64).read_to_end(&mut start);
    read.map_err(|error| cannot_write(path, &error))?;
    if start.is_empty() || start.eq_ignore_ascii_case(START) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "`{}` exists and is not an HTML page (expected a new file, or a page to overwrite)",
        path.display()
    )))
}

/// Returns an error if the folder of the file does not exist, so that a wrong path fails before a long computation.
pub(crate) fn check_folder_of(path: &Path) -> Result<(), Failure> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    match folder.map(fs::metadata) {
        Some(Err(error)) => Err(cannot_write(path, &error)),
        Some(Ok(about)) if !about.is_dir() => Err(cannot_write(
            path,
            &io::Error::from(io::ErrorKind::NotADirectory),
        )),
        _ => Ok(()),
    }
}

/// Returns an error if there is something else than a regular file: opening a pipe would wait for another process.
pub(crate) fn check_regular(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(about) if !about.is_file() => {
            let path = path.display();
            Err(format!("`{path}`: not a regular file (expected one)"))
        }
        _ => Ok(()),
    }
}

/// Returns an error if the file cannot be opened for appending, or cannot be created. It is not created.
pub(crate) fn check_appendable(path: &Path) -> Result<(), Failure> {
    let is_other = path
        .metadata()
        .is_ok_and(|about| !about.is_file() && !about.is_dir());
    if is_other {
        // Opening a pipe waits for its reader.
        return Ok(());
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    match File::options().append(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            check_folder_of(path)?;
            rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)
                .map_err(|error| cannot_write(path, &error.into()))
        }
        opened => opened.map(drop).map_err(|error| cannot_write(path, &error)),
    }
}

/// Opens a file for appending secrets. A new file is readable by its owner only.
pub(crate) fn append_private(path: &Path) -> Result<File, Failure> {
    // Opening a pipe without a reader would wait for one.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut options = File::options();
    let opened = private(options.append(true).create(true).custom_flags(flags)).open(path);
    let file = opened.map_err(|error| cannot_write(path, &error))?;
    let blocking = rustix::fs::fcntl_setfl(&file, OFlags::APPEND);
    blocking.map_err(|error| cannot_write(path, &error.into()))?;
    Ok(file)
}

/// The most files of one name in a folder.
const NAMES_MAX: u32 = 1_000_000;

/// Creates `STEM.ENDING` in a folder, or `STEM-2.ENDING` and so on if an earlier run has written such files. Only its owner can
/// read it.
pub(crate) fn create_beside(
    folder: &Path,
    stem: &str,
    ending: &str,
) -> Result<(PathBuf, Output), Failure> {
    let mut path = folder.join(format!("{stem}.{ending}"));
    for number in 2..=NAMES_MAX {
        match create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path = folder.join(format!("{stem}-{number}.{ending}"));
            }
            Err(error) => return Err(cannot_write(&path, &error)),
        }
    }
    Err(cannot_write(&path, &io::ErrorKind::AlreadyExists.into()))
}

/// Creates a file that only its owner can read, unless one has its name.
fn create_new(path: &Path) -> io::Result<Output> {
    let file = private(File::options().write(true).create_new(true)).open(path)?;
    Ok(BufWriter::with_capacity(1 << 16, file))
}

/// The permissions of a file if users other than its owner and group can read or write it.
pub(crate) fn exposed_mode(path: &Path) -> Option<u32> {
    let mode = path.metadata().ok()?.mode() & 0o777;
    (mode & 0o007 != 0).then_some(mode)
}

/// The owner of a note by a person, by number, and its first line of at most 200 characters, without those that control a terminal or
/// the direction of text. The line is empty if the note is not a readable file: links are not followed. `None` if it does not exist.
pub(crate) fn note(path: &Path) -> Option<(u32, String)> {
    let about = path.symlink_metadata().ok()?;
    let mut bytes = Vec::new();
    if about.is_file()
        && let Ok(file) = File::open(path)
    {
        // What cannot be read is no line.
        drop(file.take(1024).read_to_end(&mut bytes));
    }
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().next().unwrap_or_default().trim();
    let turns = |char: &char| matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = line
        .chars()
        .filter(|char| !char.is_control() && !turns(char));
    let shown = shown.take(200);
    Some((about.uid(), shown.collect()))
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Writes a whole file. An earlier one is replaced atomically, so that a failed or killed command leaves it as it was.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    // A symbolic link stays, and its target is replaced.
    let target = fs::canonicalize(path);
    let target = target.as_deref().unwrap_or(path);
    let about = target.metadata().ok();
    if about.as_ref().is_some_and(|about| !about.is_file()) {
        return write_in_place(path, bytes);
    }
    match replace_by(target, bytes, PUBLIC) {
        Err(error) if may_write_in_place(&error) => write_in_place(path, bytes),
        Err(error) => Err(cannot_write(path, &error)),
        Ok(()) => Ok(()),
    }
}

/// Whether a folder may have no other file beside a writable one: it is not writable, or the other name is too long.
fn may_write_in_place(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, PermissionDenied};
    matches!(error.kind(), InvalidFilename | PermissionDenied)
}

/// Writes to a file or device.
pub(crate) fn write_in_place(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = create(path)?;
    let written = file.write_all(bytes).and_then(|()| file.flush());
    written.map_err(|error| {
        // A partial file is of no use. A device stays.
        if path.is_file() {
            let _ = fs::remove_file(path);
        }
        cannot_write(path, &error)
    })
}

/// Renames a file.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::rename(from, to).map_err(|error| cannot_write(to, &error))
}

/// Removes a file.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path).map_err(|error| {
        let path = path.display();
        Failure::Run(format!("cannot remove `{path}`: {error}"))
    })
}

/// Endings of files that the commands write.
const FILE_ENDINGS: [&str; 12] = [
    "csv", "gz", "htm", "html", "json", "ndjson", "parquet", "pdf", "png", "qlog", "sqlog", "svg",
];

/// Returns an error if a new folder has the name of a file, so that an option that names one is not taken for a file.
pub(crate) fn check_folder_name(path: &Path) -> Result<(), String> {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    if path.exists() || !FILE_ENDINGS.iter().any(|ending| extension == *ending) {
        return Ok(());
    }
    Err(format!(
        "`{}` is the name of a file (expected a directory)",
        path.display()
    ))
}

/// Creates a folder and its parents, unless they exist.
pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    check_folder_name(path).map_err(Failure::Usage)?;
    fs::create_dir_all(path).map_err(|error| {
        if path.exists() && !path.is_dir() {
            let path = path.display();
            return Failure::Run(format!("cannot write `{path}`: not a directory"));
        }
        cannot_write(path, &error)
    })
}

/// The failure of writing a file.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Run(format!("cannot write `{}`: {error}", path.display()))
}

/// Replaces a file atomically. Only its owner can read the new file. A path that is not a regular file, such as a device, is
/// written to instead.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return write(path, bytes);
    }
    let replaced = replace_by(path, bytes, PRIVATE);
    replaced.map_err(|error| cannot_write(path, &error))
}

/// Replaces a file atomically and durably. An earlier one keeps its mode; that of a new one is what the `umask` allows.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let replaced = replace_by(path, bytes, PUBLIC);
    replaced.map_err(|error| cannot_write(path, &error))?;
    // The new name is durable once its folder is.
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    synced.map_err(|error| cannot_write(path, &error))
}

/// Overwrites a file where it is, which needs no room on the disk. Line feeds follow, up to the length that it has. Returns an error,
/// and writes nothing, if it is shorter.
pub(crate) fn overwrite(path: &Path, text: &str) -> Result<(), Failure> {
    let opened = File::options().write(true).open(path);
    let written = opened.and_then(|mut file| {
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if len < text.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(len, b'\n');
        file.write_all(&bytes)?;
        file.sync_all()
    });
    written.map_err(|error| cannot_write(path, &error))
}

/// The mode of a new file that other users may read, before the `umask`.
const PUBLIC: u32 = 0o666;
/// The mode of a new file that only its owner can read.
const PRIVATE: u32 = 0o600;

/// Replaces a file, or creates one with `mode`. An earlier file that others may read keeps its mode, whatever the `umask`.
fn replace_by(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let old = fs::symlink_metadata(path).ok();
    let old = old.filter(|about| about.is_file() && mode == PUBLIC);
    let kept = old.map(|about| about.mode() & 0o777);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    // A killed process may have left this file behind. `create_new` below neither follows nor opens an existing one.
    let _ = fs::remove_file(&new);
    // No more is permitted at any time than in the end.
    let first = kept.map_or(mode, |kept| mode & kept);
    let mut options = File::options();
    let opened = options.write(true).create_new(true).mode(first).open(&new);
    let written = opened.and_then(|mut file| {
        if let Some(kept) = kept {
            file.set_permissions(fs::Permissions::from_mode(kept))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    });
    // A partial file is of no use.
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Locks a file, which is created, until the result is dropped. `None` if another process has the lock.
pub(crate) fn lock(path: &Path) -> Result<Option<Lock>, Failure> {
    let file = File::options().create(true).append(true).open(path);
    let file = file.map_err(|error| cannot_write(path, &error))?;
    // A process that this one starts has the lock that was dropped, too, until it runs its program.
    for _ in 0..10 {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
            Err(fs::TryLockError::Error(error)) => return Err(cannot_write(path, &error)),
        }
    }
    Ok(None)
}

/// Appends to a file, which is created, and makes that durable. Before, the file is cut to `len` bytes.
pub(crate) fn append(path: &Path, len: u64, bytes: &[u8]) -> Result<(), Failure> {
    let file = File::options().create(true).append(true).open(path);
    let written = file.and_then(|mut file| {
        file.set_len(len)?;
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|error| cannot_write(path, &error))
}

/// The names of files in a folder, made of names that users give.
#[derive(Default)]
pub(crate) struct Names(BTreeSet<String>);

impl Names {
    /// The name, with characters that are valid in file names on any system. If another file has this name already, a
    /// number follows.
    pub(crate) fn unique(&mut self, name: &str) -> String {
        let is_allowed = |c: char| c.is_alphanumeric() || "-_.=".contains(c);
        let plain = name.chars().map(|c| if is_allowed(c) { c } else { '_' });
        let plain: String = plain.collect();
        let mut unique = plain.clone();
        let mut number = 2;
        // Some systems do not distinguish upper and lower case.
        while !self.0.insert(unique.to_lowercase()) {
            unique = format!("{plain}-{number}");
            number += 1;
        }
        unique
    }
}

/// Restricts the permissions of a new file to its owner.
fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    options.mode(PRIVATE)
}

#[cfg(test)]
mod tests;
