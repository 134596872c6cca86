//! Files, with errors that name them.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the binary is where files are opened"
)]

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Write},
    path::Path,
};

use crate::failure::Failure;

/// A file that is being written.
pub(crate) type Output = BufWriter<File>;

/// Reads a text.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Opens a file to be read.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(Box::new(File::open(path)?))
}

/// Opens a file to be written, in place of what it was.
pub(crate) fn create(path: &Path) -> Result<Output, Failure> {
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    Ok(BufWriter::with_capacity(1 << 16, file))
}

/// Opens a file to be written at its end.
pub(crate) fn append(path: &Path) -> Result<File, Failure> {
    let file = File::options().append(true).create(true).open(path);
    file.map_err(|error| cannot_write(path, &error))
}

/// Reads a file as a whole.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Writes a file as a whole.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = create(path)?;
    let written = file.write_all(bytes).and_then(|()| file.flush());
    written.map_err(|error| cannot_write(path, &error))
}

/// Makes a folder, and those it is in, unless it is there.
pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))
}

/// What was being written could not be.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Run(format!("cannot write `{}`: {error}", path.display()))
}
