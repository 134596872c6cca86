//! A directory as a web site.
//!
//! Owns: which file a path means. **Nothing outside the directory is ever opened**: a path is decoded first, then taken
//! apart; `..` is refused, and so is what leads out by a symbolic link. Links that stay inside are followed.

#![expect(
    clippy::disallowed_types,
    reason = "a server opens the files that it serves"
)]

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use lastbyte_quic::stream::{Source, SourceError};
use lastbyte_wire::VarInt;
use percent_encoding::percent_decode_str;

#[cfg(test)]
pub(crate) mod tests;

/// `H3_INTERNAL_ERROR` (RFC 9114 §8.1): a file that was cut short while it was sent.
const INTERNAL_ERROR: VarInt = VarInt::from_u32(0x102);

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found {
    /// A file, with its type.
    File(FileSource, String),
    /// A directory that was named without the slash at its end.
    Directory,
    /// Nothing, or nothing that may be seen.
    Nothing,
    /// It is there, but cannot be read now.
    Failed,
}

/// A directory that is served.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    /// Without links in it.
    root: PathBuf,
}

impl Directory {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root })
    }

    /// What the path of a request, without its query, leads to.
    pub(crate) fn find(&self, path: &str) -> Found {
        let Some(relative) = relative(path) else {
            return Found::Nothing;
        };
        match self.open_inside(&relative, path.ends_with('/')) {
            Ok(found) => found,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::NotADirectory
                | io::ErrorKind::PermissionDenied
                | io::ErrorKind::InvalidInput
                | io::ErrorKind::InvalidFilename => Found::Nothing,
                _ => Found::Failed,
            },
        }
    }

    fn open_inside(&self, relative: &Path, names_directory: bool) -> io::Result<Found> {
        let mut path = fs::canonicalize(self.root.join(relative))?;
        if !path.starts_with(&self.root) {
            return Ok(Found::Nothing);
        }
        if path.is_dir() {
            if !names_directory {
                return Ok(Found::Directory);
            }
            path = fs::canonicalize(path.join("index.html"))?;
            if !path.starts_with(&self.root) {
                return Ok(Found::Nothing);
            }
        } else if names_directory {
            return Ok(Found::Nothing);
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        // Neither a pipe nor a device: to read one could take for ever.
        if !metadata.is_file() {
            return Ok(Found::Nothing);
        }
        let content_type = mime_guess::from_path(&path)
            .first_raw()
            .unwrap_or("application/octet-stream");
        let source = FileSource {
            file,
            len: metadata.len(),
        };
        Ok(Found::File(source, content_type.to_owned()))
    }
}

/// A path as one below the root; `None` if it leads out, or is none.
fn relative(path: &str) -> Option<PathBuf> {
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    let mut relative = PathBuf::new();
    for part in decoded.strip_prefix('/')?.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part if part.contains(['\0', '\\']) => return None,
            part => relative.push(part),
        }
    }
    Some(relative)
}

/// A file as the body of a response: as long as it was when it was opened.
#[derive(Debug)]
pub(crate) struct FileSource {
    file: File,
    len: u64,
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|_| SourceError {
                code: INTERNAL_ERROR,
            })
    }
}
