//! Request bodies: files, standard input, data on the command line.

#![expect(
    clippy::disallowed_types,
    reason = "the binary is where files are opened"
)]

use std::{
    fmt::Write as _,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    sync::{Mutex, PoisonError},
};

use lastbyte_client::Upload;
use lastbyte_http3::Code;
use lastbyte_quic::stream::{Source, SourceError};

use super::Refusal;
use crate::{commands::get::arguments::Datum, files};

#[cfg(test)]
mod tests;

/// A complete file, `-` for standard input.
pub(super) fn read(path: &str) -> Result<Vec<u8>, Refusal> {
    if path == "-" {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        return match read {
            Ok(_) => Ok(bytes),
            Err(error) => Err((26, format!("cannot read standard input: {error}"))),
        };
    }
    files::read(Path::new(path)).map_err(|what| (26, what))
}

/// The data of `-d` and `--data-binary`, joined by `&`.
pub(super) fn body(data: &[Datum]) -> Result<Option<Vec<u8>>, Refusal> {
    let mut body: Option<Vec<u8>> = None;
    for datum in data {
        let (Datum::Text(text) | Datum::Binary(text)) = datum;
        let bytes = match text.strip_prefix('@') {
            None => text.clone().into_bytes(),
            Some(path) => {
                let mut bytes = read(path)?;
                if matches!(datum, Datum::Text(_)) {
                    bytes.retain(|byte| !b"\r\n\0".contains(byte));
                }
                bytes
            }
        };
        match &mut body {
            None => body = Some(bytes),
            Some(body) => {
                body.push(b'&');
                body.extend(bytes);
            }
        }
    }
    Ok(body)
}

/// A file name as a path segment.
pub(super) fn escaped(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The upload of `-T`: a file that can be read again, or a stream that is read while it is sent.
pub(super) fn file(path: &str) -> Result<Upload, Refusal> {
    // curl does not block for input with `.`; here a thread blocks in any case.
    if path == "-" || path == "." {
        return Ok(Upload::stream(std::io::stdin()));
    }
    let wrong = |error: &dyn std::fmt::Display| (26, format!("cannot read `{path}`: {error}"));
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let about = file.metadata().map_err(|error| wrong(&error))?;
    if about.is_dir() {
        return Err(wrong(&"it is a folder"));
    }
    if !about.is_file() {
        return Ok(Upload::stream(file));
    }
    Ok(Upload::source(FileSource {
        file: Mutex::new(file),
        len: about.len(),
    }))
}

/// A file being sent.
struct FileSource {
    file: Mutex<File>,
    len: u64,
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(buffer))
            .map_err(|_| SourceError {
                code: Code::REQUEST_CANCELLED.into(),
            })
    }
}
